//! `B` as the windows of an image (im2col): each column has the elements that a filter's weights
//! meet at one position of the result. Panels are built one at a time in the cache, so the whole
//! matrix is never in memory.

use super::panel::{Part, Strips};
use super::tile::VECTORS;
use super::{Matrix, multiply};
use crate::error::Result;
use crate::ops::ConvLayer;
use crate::simd::InstructionSet;
use crate::simd::isa::{Isa, MAX_LANES};

/// The sums of a group's `filters`, weights row by row, over the windows of its channels of one `image`.
/// Lengths have been checked, and there are some of each.
///
/// # Errors
/// `OutOfMemory` where there is no memory for panels.
pub(in crate::simd) fn multiply_patches(
    isa: InstructionSet,
    pieces: usize,
    layer: &ConvLayer,
    [filters, image]: [&[f32]; 2],
    out: &mut [f32],
) -> Result<()> {
    let (rows, cols) = layer.output_shape();
    let shape = [out.len() / (rows * cols), layer.depth(), rows * cols];
    let [channels, _] = layer.of_group();
    let plane = layer.image.input_rows * layer.image.input_cols;
    // Checked again because the kernels' pointers rely on it.
    assert!(filters.len() == shape[0] * shape[1] && out.len() == shape[0] * shape[2]);
    assert!(image.len() == channels * plane);
    let a = Matrix::new(filters, [shape[0], shape[1]], false);
    let windows = Patches {
        image,
        layer,
        cols,
        padding: layer.padding_before(),
    };
    // SAFETY: the lengths are those of the shape, and windows are read by indices.
    unsafe { multiply(isa, pieces, a, windows, shape, out) }
}

#[derive(Clone, Copy)]
struct Patches<'a> {
    image: &'a [f32],
    layer: &'a ConvLayer,
    /// The number of columns of the result.
    cols: usize,
    /// Rows and columns of zeros before the image.
    padding: (usize, usize),
}

impl Strips for Patches<'_> {
    #[inline(always)]
    fn strip<I: Isa>(self, _: I, part: Part, wide: usize, to: &mut [f32]) {
        self.fill(part, wide, to);
    }
}

/// Neighbouring windows in a row of the result: their position in a strip, their number, and the row and column of the
/// image at which the first one begins; numbers before the image wrap around.
#[derive(Clone, Copy, Default)]
struct WindowRun {
    at: usize,
    len: usize,
    row: usize,
    col: usize,
}

/// A position in a kernel.
#[derive(Clone, Copy)]
struct KernelTap {
    channel: usize,
    row: usize,
    col: usize,
}

impl Patches<'_> {
    /// Fills a strip; compiled once for all instruction sets, since it only copies.
    fn fill(&self, part: Part, wide: usize, strip: &mut [f32]) {
        let mut all = [WindowRun::default(); VECTORS * MAX_LANES];
        let runs = self.runs(part.col, part.cols, &mut all);
        let mut tap = self.tap(part.p);
        for values in strip.chunks_exact_mut(wide) {
            for run in runs {
                self.read(tap, *run, &mut values[run.at..run.at + run.len]);
            }
            values[part.cols..].fill(0.0);
            self.advance(&mut tap);
        }
    }

    /// Returns the runs of `used` columns from `first` on.
    fn runs<'a>(&self, first: usize, used: usize, all: &'a mut [WindowRun]) -> &'a [WindowRun] {
        let image = &self.layer.image;
        let (top, left) = self.padding;
        let (mut at, mut count) = (0, 0);
        while at < used {
            let [row, col] = [(first + at) / self.cols, (first + at) % self.cols];
            let len = (used - at).min(self.cols - col);
            all[count] = WindowRun {
                at,
                len,
                row: (row * image.stride_rows).wrapping_sub(top),
                col: (col * image.stride_cols).wrapping_sub(left),
            };
            at += len;
            count += 1;
        }
        &all[..count]
    }

    fn tap(&self, p: usize) -> KernelTap {
        let image = &self.layer.image;
        let row = p / image.kernel_cols;
        KernelTap {
            channel: row / image.kernel_rows,
            row: row % image.kernel_rows,
            col: p % image.kernel_cols,
        }
    }

    fn advance(&self, tap: &mut KernelTap) {
        let image = &self.layer.image;
        tap.col += 1;
        if tap.col == image.kernel_cols {
            tap.col = 0;
            tap.row += 1;
        }
        if tap.row == image.kernel_rows {
            tap.row = 0;
            tap.channel += 1;
        }
    }

    /// Reads the elements that the windows of a run have at a tap, zeros outside the image.
    #[inline]
    fn read(&self, tap: KernelTap, run: WindowRun, to: &mut [f32]) {
        let (layer, image) = (self.layer, &self.layer.image);
        let row = run.row.wrapping_add(tap.row * layer.dilation_rows);
        if row >= image.input_rows {
            return to.fill(0.0);
        }
        let row = &self.image[(tap.channel * image.input_rows + row) * image.input_cols..];
        let row = &row[..image.input_cols];
        let first = run.col.wrapping_add(tap.col * layer.dilation_cols);
        if image.stride_cols == 1
            && let Some(inside) = row.get(first..first.wrapping_add(to.len()))
        {
            return to.copy_from_slice(inside);
        }
        for (i, value) in to.iter_mut().enumerate() {
            let col = first.wrapping_add(i * image.stride_cols);
            *value = row.get(col).copied().unwrap_or(0.0);
        }
    }
}

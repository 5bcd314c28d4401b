//! The input of a convolution as rows in which neighbouring outputs read neighbouring values.

use crate::alloc::try_zeros;
use crate::error::Result;
use crate::ops::Conv2d;
use std::ops::Range;

/// The number of rows of outputs whose input is laid out at a time, so that it stays in the caches.
pub(super) const BAND: usize = 32;

/// The layout of rows: each row is stored as `phases` stretches of `phase_len` elements. At stride
/// `s` and with `p` columns of padding, element `j` of stretch `i` is the input's column `j · s + i
/// − p`.
pub(super) struct Layout<'a> {
    options: &'a Conv2d,
    padding_rows: usize,
    padding_cols: usize,
    /// The columns of the kernel that overlap the input for at least one output.
    taps: Range<usize>,
    phases: usize,
    phase_len: usize,
    /// A band of rows; `None` where the input is read as it is.
    scratch: Option<Vec<f32>>,
}

/// Rows of input that are laid out.
pub(super) struct Source<'a> {
    options: &'a Conv2d,
    padding_rows: usize,
    taps: Range<usize>,
    values: &'a [f32],
    /// The input's row that `values` starts with.
    first_row: usize,
    row_len: usize,
    /// The number of stretches of a row.
    pub(super) phases: usize,
    /// The number of values in each stretch.
    pub(super) phase_len: usize,
}

impl<'a> Layout<'a> {
    /// The layout for `out_cols` outputs a row, at least one, in vectors of `lanes`.
    pub(super) fn new(options: &'a Conv2d, out_cols: usize, lanes: usize) -> Result<Self> {
        let stride = options.stride_cols;
        let (padding_rows, padding_cols) = options.padding_before();
        // Output c and kernel column k meet at the input's column c · stride + k − padding.
        let last = (out_cols - 1) * stride;
        let first_tap = padding_cols.saturating_sub(last);
        let taps = first_tap..options.kernel_cols.min(padding_cols + options.input_cols);
        let padding_cols = padding_cols - first_tap;
        let inside = padding_cols == 0 && last + taps.len() <= options.input_cols;
        let mut layout = Self {
            options,
            padding_rows,
            padding_cols,
            phases: 1,
            phase_len: options.input_cols,
            taps,
            scratch: None,
        };
        if stride > 1 || !inside || out_cols < lanes {
            layout.phases = stride.min(layout.taps.len());
            layout.phase_len = out_cols.max(lanes) + (layout.taps.len() - 1) / stride;
            let rows = (BAND - 1)
                .saturating_mul(options.stride_rows)
                .saturating_add(options.kernel_rows)
                .min(options.input_rows);
            let row_len = layout.phases.saturating_mul(layout.phase_len);
            layout.scratch = Some(try_zeros(rows.saturating_mul(row_len))?);
        }
        Ok(layout)
    }

    /// The rows of input that `BAND` rows of outputs from `row` on need.
    pub(super) fn band<'b>(&'b mut self, input: &'b [f32], row: usize) -> Source<'b> {
        let options = self.options;
        let row_len = self.phases * self.phase_len;
        let first_row = (row * options.stride_rows).saturating_sub(self.padding_rows);
        let first_row = first_row.min(options.input_rows);
        let mut source = Source {
            options,
            padding_rows: self.padding_rows,
            taps: self.taps.clone(),
            values: &input[first_row * options.input_cols..],
            first_row,
            row_len,
            phases: self.phases,
            phase_len: self.phase_len,
        };
        if let Some(scratch) = &mut self.scratch {
            let inputs = source.values.chunks_exact(options.input_cols);
            for (input, row) in inputs.zip(scratch.chunks_exact_mut(row_len)) {
                let stretches = row.chunks_exact_mut(self.phase_len);
                for (phase, stretch) in stretches.enumerate() {
                    // What lies before and after stays zero, the same in every row.
                    let skipped = self.padding_cols.saturating_sub(phase);
                    let start = skipped.div_ceil(options.stride_cols);
                    let col = start * options.stride_cols + phase - self.padding_cols;
                    copy_phase(
                        input.get(col..).unwrap_or_default(),
                        options.stride_cols,
                        stretch.get_mut(start..).unwrap_or_default(),
                    );
                }
            }
            source.values = scratch;
        }
        source
    }
}

/// Every `stride`-th value, as far as both slices go.
fn copy_phase(from: &[f32], stride: usize, to: &mut [f32]) {
    if stride == 1 {
        let len = from.len().min(to.len());
        to[..len].copy_from_slice(&from[..len]);
    } else {
        for (to, &from) in to.iter_mut().zip(from.iter().step_by(stride)) {
            *to = from;
        }
    }
}

impl<'a> Source<'a> {
    /// Columns between two windows.
    #[inline(always)]
    pub(super) fn stride(&self) -> usize {
        self.options.stride_cols
    }

    /// Whether windows are side by side, and so low that a chain gathers the sums of all rows.
    #[inline(always)]
    pub(super) fn is_low(&self) -> bool {
        self.stride() == 1 && self.options.kernel_rows <= super::CHAIN
    }

    /// Columns of the kernel that meet the input.
    #[inline(always)]
    pub(super) fn taps(&self) -> usize {
        self.taps.len()
    }

    /// The rows of the kernel that meet the input at a row of outputs, each with the input's
    /// row as laid out.
    #[inline(always)]
    pub(super) fn rows<'b>(&self, kernel: &'b [f32], row: usize) -> impl Rows<'b>
    where
        'a: 'b,
    {
        let options = self.options;
        // Windows start here, counted from the first row of padding.
        let first = row * options.stride_rows;
        let start = self.padding_rows.saturating_sub(first);
        let end = (options.input_rows + self.padding_rows)
            .saturating_sub(first)
            .min(options.kernel_rows);
        let skipped = self.padding_rows + self.first_row;
        let (values, cols, taps) = (self.values, options.kernel_cols, self.taps.clone());
        let weights = kernel.get(start * cols..end * cols).unwrap_or_default();
        let weights = weights
            .chunks_exact(cols)
            .map(move |row| &row[taps.clone()]);
        let inputs = values.get((first + start - skipped) * self.row_len..);
        weights.zip(inputs.unwrap_or_default().chunks_exact(self.row_len))
    }
}

/// Rows of a kernel, each with a row of the input.
pub(super) trait Rows<'a>: Iterator<Item = (&'a [f32], &'a [f32])> + Clone {}

impl<'a, R: Iterator<Item = (&'a [f32], &'a [f32])> + Clone> Rows<'a> for R {}

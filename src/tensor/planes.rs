//! Parts of a view as planes, which kernels read: rows and columns of elements at constant strides.

// A kernel's target features reach its closure only through inlining: see `simd::isa`.
#![allow(clippy::inline_always)]

use std::ops::Range;

use crate::tensor::TensorView;

/// `rows × cols` elements. The one at row `i` and column `j` has the index
/// `offset + i · row_stride + j · col_stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plane {
    pub(crate) offset: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_stride: usize,
    pub(crate) col_stride: usize,
}

impl Plane {
    pub(crate) fn row_major(rows: usize, cols: usize) -> Self {
        Self {
            offset: 0,
            rows,
            cols,
            row_stride: cols,
            col_stride: 1,
        }
    }

    /// Whether each value follows the one before it, row by row.
    pub(crate) fn is_gapless(&self) -> bool {
        self.col_stride == 1 && self.row_stride == self.cols
    }

    /// Returns the plane transposed, if necessary, so that its rows run along memory, or along the
    /// longer side if neither does.
    #[inline(always)]
    pub(crate) fn along_memory(self) -> Self {
        let dense = |len: usize, stride: usize| len > 1 && stride == 1;
        let by_columns = dense(self.rows, self.row_stride) || self.rows > self.cols;
        if dense(self.cols, self.col_stride) || !by_columns {
            return self;
        }
        Self {
            offset: self.offset,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }

    /// Returns one past the index of the last element of a plane that is not empty.
    pub(crate) fn end(&self) -> usize {
        let last_row = self.rows.saturating_sub(1) * self.row_stride;
        self.offset + last_row + self.cols.saturating_sub(1) * self.col_stride + 1
    }
}

/// Calls `f` with planes that cover the part of a view from `start` on, of this size. The part must
/// lie within the view and have at least one element.
#[inline(always)]
pub(crate) fn for_each_plane(
    view: &TensorView,
    start: [usize; 4],
    size: [usize; 4],
    mut f: impl FnMut(Plane),
) {
    let Some(tiling) = view.tiling else {
        affine(view.index_of(start), size, view.strides, f);
        return;
    };
    for rows in spans(start[0], size[0], tiling.size[0]) {
        for cols in spans(start[1], size[1], tiling.size[1]) {
            let offset = view.index_of([rows.start, cols.start, 0, 0]);
            let size = [rows.len(), cols.len(), 1, 1];
            affine(offset, size, view.strides, &mut f);
        }
    }
}

/// A range cut at the multiples of `step`.
#[inline(always)]
fn spans(start: usize, len: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    let end = start + len;
    let mut at = start;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let next = end.min((at / step + 1).saturating_mul(step));
            std::mem::replace(&mut at, next)..next
        })
    })
}

/// Calls `f` with planes along two dimensions: the one of stride 1, if there is one, and the longest of the others.
#[inline(always)]
fn affine(offset: usize, size: [usize; 4], strides: [usize; 4], mut f: impl FnMut(Plane)) {
    let dense = |dim: &usize| size[*dim] > 1 && strides[*dim] == 1;
    let col = (0..4).find(dense).unwrap_or_else(|| longest(size, 4));
    let row = longest(size, col);
    let mut others = (0..4).filter(|&dim| dim != col && dim != row);
    let (outer, inner) = (others.next().unwrap_or(0), others.next().unwrap_or(0));
    for i in 0..size[outer] {
        for j in 0..size[inner] {
            f(Plane {
                offset: offset + i * strides[outer] + j * strides[inner],
                rows: size[row],
                cols: size[col],
                row_stride: strides[row],
                col_stride: strides[col],
            });
        }
    }
}

/// Returns the longest dimension other than `but`.
#[inline(always)]
fn longest(size: [usize; 4], but: usize) -> usize {
    let first = usize::from(but == 0);
    (0..4).filter(|&dim| dim != but).fold(
        first,
        |best, dim| {
            if size[dim] > size[best] { dim } else { best }
        },
    )
}

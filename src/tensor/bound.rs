//! [`BoundView`]: a view together with its data.

use std::borrow::Cow;

use crate::alloc::try_reserved;
use crate::error::{Error, Result};
use crate::tensor::{MemoryLayout, Plane, TensorView};

/// The number of rows, and of columns, of a tile that is copied at a time, if neighbouring elements are closer along
/// columns than along rows.
const TILE: usize = 16;

/// A view bound to data. [`TensorView::bind`] creates it, and has checked that the view stays within the data.
#[derive(Clone, Copy, Debug)]
pub struct BoundView<'a> {
    data: &'a [f32],
    view: TensorView,
}

impl TensorView {
    /// Binds the view to its data.
    ///
    /// # Errors
    /// `LengthMismatch` if the view reaches beyond the data.
    pub fn bind<'a>(&self, data: &'a [f32]) -> Result<BoundView<'a>> {
        if data.len() < self.reach() {
            return Err(Error::LengthMismatch {
                what: "data",
                expected: self.reach(),
                actual: data.len(),
                reason: " or more",
            });
        }
        Ok(BoundView { data, view: *self })
    }
}

impl<'a> BoundView<'a> {
    /// Returns the shape, strides and offset.
    pub fn view(&self) -> &TensorView {
        &self.view
    }

    /// Returns all data that the view is bound to, including elements outside the view.
    pub fn data(&self) -> &'a [f32] {
        self.data
    }

    /// Returns the element at these indices; `None` outside the shape.
    pub fn get(&self, indices: [usize; 4]) -> Option<f32> {
        self.view
            .linear_index(indices)
            .map(|index| self.data[index])
    }

    /// Returns the elements row-major without gaps: borrowed if they are stored so, otherwise
    /// copied.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no memory for the copy.
    pub fn contiguous(&self) -> Result<Cow<'a, [f32]>> {
        if let Some(values) = self.stored_as(MemoryLayout::RowMajor) {
            return Ok(Cow::Borrowed(values));
        }
        let len = self.view.numel();
        let mut values = try_reserved(len)?;
        if len == 0 {
            return Ok(Cow::Owned(values)); // One side may be as long as it likes.
        }
        match self.plane() {
            Some(plane) => self.copy_plane(plane, &mut values),
            None => self.copy_each(&mut values),
        }
        Ok(Cow::Owned(values))
    }

    fn copy_plane(&self, plane: Plane, to: &mut Vec<f32>) {
        if plane.col_stride > plane.row_stride.max(1) {
            return self.copy_tiles(plane, to);
        }
        for row in 0..plane.rows {
            let row = &self.data[plane.offset + row * plane.row_stride..];
            match plane.col_stride {
                0 => to.extend(std::iter::repeat_n(row[0], plane.cols)),
                1 => to.extend_from_slice(&row[..plane.cols]),
                stride => to.extend(row.iter().step_by(stride).take(plane.cols)),
            }
        }
    }

    /// Copies tile by tile, so that a cache line of a column is used while it is in the cache.
    fn copy_tiles(&self, plane: Plane, to: &mut Vec<f32>) {
        let Plane { rows, cols, .. } = plane;
        to.resize(rows * cols, 0.0);
        for top in (0..rows).step_by(TILE) {
            for left in (0..cols).step_by(TILE) {
                for row in top..rows.min(top + TILE) {
                    let from = &self.data[plane.offset + row * plane.row_stride..];
                    for col in left..cols.min(left + TILE) {
                        to[row * cols + col] = from[col * plane.col_stride];
                    }
                }
            }
        }
    }

    fn copy_each(&self, to: &mut Vec<f32>) {
        let [d0, d1, d2, d3] = self.view.shape();
        for i in 0..d0 {
            for j in 0..d1 {
                for k in 0..d2 {
                    let index = |l: usize| self.view.index_of([i, j, k, l]);
                    to.extend((0..d3).map(|l| self.data[index(l)]));
                }
            }
        }
    }

    /// Returns the elements as stored, if they have this layout without gaps. A vector counts as
    /// row-major.
    pub(crate) fn stored_as(&self, layout: MemoryLayout) -> Option<&'a [f32]> {
        let (view, len) = (&self.view, self.view.numel());
        if view.layout() != Some(layout) {
            return None;
        }
        if len == 0 {
            return Some(&[]);
        }
        self.data.get(view.offset()..view.offset() + len)
    }

    /// Returns a matrix as rows and columns at constant strides; `None` if it is tiled, empty or
    /// has more than two dimensions.
    pub(crate) fn plane(&self) -> Option<Plane> {
        let view = &self.view;
        let [rows, cols, ..] = view.shape();
        let simple = view.tiling.is_none() && view.ndim() <= 2 && !view.is_empty();
        simple.then(|| Plane {
            offset: view.offset(),
            rows,
            cols,
            row_stride: view.strides[0],
            col_stride: view.strides[1],
        })
    }
}

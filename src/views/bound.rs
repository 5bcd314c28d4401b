//! [`BoundView`]: a view together with the values that it shows.

use std::borrow::Cow;

use super::{MemoryLayout, Plane, TensorView};
use crate::error::{Error, Result, try_reserved};

/// A view of values, within which it is known to stay. Made by [`TensorView::bind`].
#[derive(Clone, Copy, Debug)]
pub struct BoundView<'a> {
    data: &'a [f32],
    view: TensorView,
}

impl TensorView {
    /// Ties the view to the values that it shows.
    ///
    /// # Errors
    /// `LengthMismatch` where it reaches beyond them.
    pub fn bind<'a>(&self, data: &'a [f32]) -> Result<BoundView<'a>> {
        if data.len() < self.reach() {
            return Err(Error::LengthMismatch {
                what: "data",
                expected: self.reach(),
                actual: data.len(),
            });
        }
        Ok(BoundView { data, view: *self })
    }
}

impl<'a> BoundView<'a> {
    /// The shape, strides and offset.
    pub fn view(&self) -> &TensorView {
        &self.view
    }

    /// All values that the view was tied to, those included that it does not show.
    pub fn data(&self) -> &'a [f32] {
        self.data
    }

    /// The value at these indices; `None` outside the shape.
    pub fn get(&self, indices: [usize; 4]) -> Option<f32> {
        self.view
            .linear_index(indices)
            .map(|index| self.data[index])
    }

    /// The values row-major and without gaps: copied, unless they lie so already.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no memory for the copy.
    pub fn contiguous(&self) -> Result<Cow<'a, [f32]>> {
        if let Some(values) = self.stored_as(MemoryLayout::RowMajor) {
            return Ok(Cow::Borrowed(values));
        }
        let [d0, d1, d2, d3] = self.view.shape();
        let mut values = try_reserved(self.view.numel())?;
        // The columns of a plane are the last dimension only of a matrix, so go one by one.
        for i in 0..d0 {
            for j in 0..d1 {
                for k in 0..d2 {
                    let index = |l: usize| self.view.index_of([i, j, k, l]);
                    values.extend((0..d3).map(|l| self.data[index(l)]));
                }
            }
        }
        Ok(Cow::Owned(values))
    }

    /// The values as they lie, if they lie in this layout without gaps.
    pub(crate) fn stored_as(&self, layout: MemoryLayout) -> Option<&'a [f32]> {
        let (view, len) = (&self.view, self.view.numel());
        // One row or one column lies alike either way.
        let [rows, cols, ..] = view.shape();
        let vector = view.ndim() <= 2 && rows.min(cols) == 1;
        let stored = view.layout();
        if stored != Some(layout) && !(vector && stored == Some(MemoryLayout::RowMajor)) {
            return None;
        }
        if len == 0 {
            return Some(&[]);
        }
        self.data.get(view.offset()..view.offset() + len)
    }

    /// A matrix as rows and columns at constant strides; `None` where it lies in tiles or has
    /// more than two dimensions, or no values.
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

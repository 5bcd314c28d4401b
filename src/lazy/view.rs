//! Views: how the elements of a tensor lie in a buffer of a batch. Moving axes, slicing and broadcasting change views;
//! only operations that need their elements in order copy them.

use crate::batch::BufferId;
use crate::lazy::shape::{size_of, strides_of};

/// The elements of a buffer at `offset + Σ iₖ · strides[k]`.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) id: BufferId,
    /// The length of the buffer.
    pub(super) len: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<isize>,
    pub(super) offset: isize,
}

/// A view of a view: axis `k` walks along `axes[k]` of the view below by `steps[k]`, or repeats where that is `None`.
/// `starts` has the first index of each axis of the view below.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Walk {
    pub(crate) axes: Vec<Option<usize>>,
    pub(crate) steps: Vec<isize>,
    pub(crate) starts: Vec<usize>,
}

impl Walk {
    /// Returns whether a view of shape `to` shows each element of one of shape `from`.
    pub(super) fn shows_all(&self, from: &[usize], to: &[usize]) -> bool {
        let shows = |(axis, &length): (usize, &usize)| {
            let mut own = self.axes.iter().zip(to);
            length == 1 || own.any(|(&of, &shown)| of == Some(axis) && shown == length)
        };
        from.iter().enumerate().all(shows)
    }
}

impl View {
    /// Returns the view of all elements of a buffer in order.
    pub(super) fn dense(id: BufferId, shape: &[usize]) -> Self {
        Self {
            id,
            len: size_of(shape),
            shape: shape.to_vec(),
            strides: strides_of(shape),
            offset: 0,
        }
    }

    /// Returns the number of elements that the view shows.
    pub(super) fn size(&self) -> usize {
        size_of(&self.shape)
    }

    /// Returns the view of this shape that walks along this one.
    pub(super) fn walked(&self, shape: &[usize], walk: &Walk) -> Self {
        let steps = walk.axes.iter().zip(&walk.steps);
        let strides = steps.map(|(axis, step)| axis.map_or(0, |axis| self.strides[axis] * step));
        let starts = walk.starts.iter().zip(&self.strides);
        let first: isize = starts.map(|(&start, stride)| start as isize * stride).sum();
        Self {
            shape: shape.to_vec(),
            strides: strides.collect(),
            offset: self.offset + first,
            ..*self
        }
    }

    /// Returns the view with its axes in another order; axes that are left out have one element, or repeat.
    pub(super) fn permuted(&self, order: &[usize]) -> Self {
        Self {
            shape: order.iter().map(|&axis| self.shape[axis]).collect(),
            strides: order.iter().map(|&axis| self.strides[axis]).collect(),
            ..*self
        }
    }

    /// Returns the view that repeats its elements up to a shape that it broadcasts to.
    pub(super) fn repeated(&self, shape: &[usize]) -> Self {
        let missing = shape.len() - self.shape.len();
        let stride = |axis: usize| match axis.checked_sub(missing) {
            Some(own) if self.shape[own] == shape[axis] => self.strides[own],
            _ => 0,
        };
        Self {
            shape: shape.to_vec(),
            strides: (0..shape.len()).map(stride).collect(),
            ..*self
        }
    }

    /// Returns the fewest axes that walk the same way, as lengths and strides: neighbours are joined, and axes of
    /// length 1 left out.
    pub(super) fn merged(&self) -> Vec<(usize, isize)> {
        let mut axes: Vec<(usize, isize)> = Vec::new();
        for (&length, &stride) in self.shape.iter().zip(&self.strides) {
            match axes.last_mut() {
                _ if length == 1 => {}
                Some(last) if last.1 == length as isize * stride => {
                    *last = (last.0 * length, stride);
                }
                _ => axes.push((length, stride)),
            }
        }
        axes
    }

    /// Returns whether the view shows all elements of its buffer in order.
    pub(super) fn is_dense(&self) -> bool {
        let in_order = matches!(self.merged()[..], [] | [(_, 1)]);
        in_order && self.offset == 0 && self.size() == self.len
    }

    /// Returns the order of axes in which the view is dense; `None` if there is none.
    pub(super) fn dense_order(&self) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.shape.len()).collect();
        if !self.is_dense() {
            order.sort_unstable_by_key(|&axis| (-self.strides[axis], axis));
        }
        self.permuted(&order).is_dense().then_some(order)
    }

    /// Returns the view of another shape of as many elements without a copy; `None` if the elements do not lie for it.
    pub(super) fn restrided(&self, shape: &[usize]) -> Option<Self> {
        let mut strides = vec![0; shape.len()];
        let mut axis = shape.len();
        for (length, stride) in self.merged().into_iter().rev() {
            let mut rest = length;
            while rest > 1 {
                axis = axis.checked_sub(1)?;
                if !rest.is_multiple_of(shape[axis]) {
                    return None;
                }
                strides[axis] = stride * (length / rest) as isize;
                rest /= shape[axis];
            }
        }
        Some(Self {
            shape: shape.to_vec(),
            strides,
            ..*self
        })
    }
}

/// Returns the order that undoes another.
pub(super) fn inverse(order: &[usize]) -> Vec<usize> {
    let mut back = vec![0; order.len()];
    for (at, &axis) in order.iter().enumerate() {
        back[axis] = at;
    }
    back
}

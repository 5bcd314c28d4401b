//! Axes of strided views.

use std::ops::{Deref, DerefMut};

/// The largest number of axes of a tensor and of a [`Rearrange`](crate::Rearrange).
pub(crate) const MAX_AXES: usize = 6;

/// An axis of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) len: usize,
    /// The distance between neighbours in the buffer; 0 repeats elements.
    pub(crate) stride: isize,
}

/// A list of at most [`MAX_AXES`] entries, which allocates no memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PerAxis<T> {
    count: usize,
    entries: [T; MAX_AXES],
}

impl<T: Copy> PerAxis<T> {
    /// Adds an entry at the end.
    pub(crate) fn push(&mut self, entry: T) {
        self.entries[self.count] = entry;
        self.count += 1;
    }

    /// Moves an entry to another position.
    pub(crate) fn move_to(&mut self, from: usize, to: usize) {
        let entry = self.entries[from];
        self.entries.copy_within(from + 1..self.count, from);
        self.entries.copy_within(to..self.count - 1, to + 1);
        self.entries[to] = entry;
    }
}

impl PerAxis<usize> {
    /// Returns all axes in order.
    pub(crate) fn all(rank: usize) -> Self {
        let mut axes = Self::default();
        for axis in 0..rank {
            axes.push(axis);
        }
        axes
    }
}

impl PerAxis<Axis> {
    /// Returns axes of these lengths that repeat one element.
    pub(crate) fn repeating(shape: &[usize]) -> Self {
        let mut axes = Self::default();
        for &len in shape {
            axes.push(Axis { len, stride: 0 });
        }
        axes
    }

    /// Returns the lengths.
    pub(crate) fn shape(&self) -> PerAxis<usize> {
        let mut shape = PerAxis::default();
        for axis in self.iter() {
            shape.push(axis.len);
        }
        shape
    }

    /// Returns the number of elements.
    pub(crate) fn size(&self) -> usize {
        self.iter().map(|axis| axis.len).product()
    }
}

impl<T> Deref for PerAxis<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.entries[..self.count]
    }
}

impl<T> DerefMut for PerAxis<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.entries[..self.count]
    }
}

/// Returns the fewest axes that walk the same way: neighbours are joined, and axes of length 1 left out.
pub(crate) fn merged(axes: &[Axis]) -> PerAxis<Axis> {
    let mut merged: PerAxis<Axis> = PerAxis::default();
    for &axis in axes {
        match merged.last_mut() {
            _ if axis.len == 1 => {}
            Some(outer) if outer.stride == axis.stride.wrapping_mul(axis.len as isize) => {
                outer.len *= axis.len;
                outer.stride = axis.stride;
            }
            _ => merged.push(axis),
        }
    }
    merged
}

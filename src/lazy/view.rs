//! Views: how the elements of a tensor lie in a buffer. Moving axes, slicing and broadcasting change views; only
//! operations that need their elements in order copy them.

use crate::batch::BufferId;
use crate::lazy::shape::size_of;
use crate::ops::axes::{Axis, PerAxis, merged};

/// The elements of a buffer at `offset + Σ iₖ · axes[k].stride`.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) id: BufferId,
    /// The length of the buffer.
    pub(super) len: usize,
    pub(super) axes: PerAxis<Axis>,
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
        let mut axes = PerAxis::repeating(shape);
        let mut stride = 1;
        for axis in axes.iter_mut().rev() {
            axis.stride = stride;
            stride *= axis.len as isize;
        }
        Self {
            id,
            len: size_of(shape),
            axes,
            offset: 0,
        }
    }

    /// Returns the view of this shape that walks along this one.
    pub(super) fn walked(&self, shape: &[usize], walk: &Walk) -> Self {
        let mut axes = PerAxis::repeating(shape);
        for (axis, (&below, step)) in axes.iter_mut().zip(walk.axes.iter().zip(&walk.steps)) {
            axis.stride = below.map_or(0, |below| self.axes[below].stride * step);
        }
        let mut offset = self.offset;
        for (axis, &start) in self.axes.iter().zip(&walk.starts) {
            offset += start as isize * axis.stride;
        }
        Self {
            axes,
            offset,
            ..*self
        }
    }

    /// Returns the view with its axes in another order; axes that are left out have one element, or repeat.
    pub(super) fn permuted(&self, order: &[usize]) -> Self {
        let mut axes = PerAxis::default();
        for &axis in order {
            axes.push(self.axes[axis]);
        }
        Self { axes, ..*self }
    }

    /// Returns the view that repeats its elements up to a shape that it broadcasts to.
    pub(super) fn repeated(&self, shape: &[usize]) -> Self {
        let mut axes = PerAxis::repeating(shape);
        for (axis, own) in axes.iter_mut().rev().zip(self.axes.iter().rev()) {
            if axis.len == own.len {
                axis.stride = own.stride;
            }
        }
        Self { axes, ..*self }
    }

    /// Returns whether the view shows all elements of its buffer in order.
    pub(super) fn is_dense(&self) -> bool {
        let in_order = matches!(merged(&self.axes)[..], [] | [Axis { stride: 1, .. }]);
        in_order && self.offset == 0 && self.axes.size() == self.len
    }

    /// Returns the order of axes in which the view is dense; `None` if there is none.
    pub(super) fn dense_order(&self) -> Option<PerAxis<usize>> {
        let mut order = PerAxis::all(self.axes.len());
        if self.is_dense() {
            return Some(order);
        }
        for (axis, own) in self.axes.iter().enumerate() {
            let before = &order[..axis];
            let mut closer = before
                .iter()
                .map(|&other| self.axes[other].stride < own.stride);
            let place = closer.position(|is_closer| is_closer);
            order.move_to(axis, place.unwrap_or(axis));
        }
        self.permuted(&order).is_dense().then_some(order)
    }

    /// Returns the view of another shape with the same number of elements, without a copy. Returns `None` if no strides
    /// describe it.
    pub(super) fn restrided(&self, shape: &[usize]) -> Option<Self> {
        let mut axes = PerAxis::repeating(shape);
        let mut left = axes.iter_mut().rev();
        for &Axis { len, stride } in merged(&self.axes).iter().rev() {
            let mut rest = len;
            while rest > 1 {
                let axis = left.next()?;
                if !rest.is_multiple_of(axis.len) {
                    return None;
                }
                axis.stride = stride * (len / rest) as isize;
                rest /= axis.len;
            }
        }
        Some(Self { axes, ..*self })
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::batch::GpuCommandBatch;
    use crate::device::{Backend, GpuDevice};
    use crate::error::Result;

    fn dense(shape: &[usize]) -> Result<View> {
        let device = GpuDevice::builder().backend(Backend::Simd).build()?;
        let id = GpuCommandBatch::new(device).try_placeholder(size_of(shape))?;
        Ok(View::dense(id, shape))
    }

    fn axes(view: &View) -> Vec<(usize, isize)> {
        let axes = view.axes.iter();
        axes.map(|axis| (axis.len, axis.stride)).collect()
    }

    #[test]
    fn permuted_axes_keep_their_strides() -> Result<()> {
        let view = dense(&[2, 3, 4])?.permuted(&[2, 0, 1]);
        assert_eq!(axes(&view), [(4, 1), (2, 12), (3, 4)]);
        assert!(!view.is_dense());
        let order = view.dense_order().expect("all elements are there");
        assert_eq!(order[..], [1, 2, 0]);
        assert_eq!(view.restrided(&[8, 3]).map(|view| axes(&view)), None);
        Ok(())
    }

    #[test]
    fn repeated_axes_have_no_stride() -> Result<()> {
        let view = dense(&[3, 1])?.repeated(&[2, 3, 4]);
        assert_eq!(axes(&view), [(2, 0), (3, 1), (4, 0)]);
        assert!(view.dense_order().is_none());
        Ok(())
    }

    #[test]
    fn other_shapes_of_parts_need_no_copy() -> Result<()> {
        let walk = Walk {
            axes: vec![Some(0), Some(1)],
            steps: vec![2, -1],
            starts: vec![1, 5],
        };
        let part = dense(&[4, 6])?.walked(&[2, 6], &walk);
        assert_eq!((axes(&part), part.offset), (vec![(2, 12), (6, -1)], 11));
        let split = part.restrided(&[2, 2, 3]).map(|view| axes(&view));
        assert_eq!(split, Some(vec![(2, 12), (2, -3), (3, -1)]));
        Ok(())
    }
}

//! Pooling: extremes and means of windows.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::movement::{check_positive, view};
use crate::lazy::node::Node;
use crate::lazy::numeric::pad::{Fill, pad};
use crate::lazy::shape::mismatch;
use crate::lazy::tensor::Tensor;
use crate::lazy::view::Walk;

/// The windows of [`Tensor::max_pool`] and [`Tensor::avg_pool`]. By default they lie side by side, without padding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolOptions {
    window: Vec<usize>,
    stride: Vec<usize>,
    padding: Vec<usize>,
    is_ceil: bool,
    counts_padding: bool,
}

impl PoolOptions {
    /// Creates the options of windows of these lengths along the last axes.
    pub fn new(window: &[usize]) -> Self {
        Self {
            window: window.to_vec(),
            stride: window.to_vec(),
            padding: vec![0; window.len()],
            is_ceil: false,
            counts_padding: true,
        }
    }

    /// Returns the options with these distances between windows, at least 1.
    #[must_use]
    pub fn stride(self, stride: &[usize]) -> Self {
        let stride = stride.to_vec();
        Self { stride, ..self }
    }

    /// Returns the options with these numbers of elements before and after each axis, at most half a window.
    #[must_use]
    pub fn padding(self, padding: &[usize]) -> Self {
        let padding = padding.to_vec();
        Self { padding, ..self }
    }

    /// Returns the options with a last window that may reach beyond the end of an axis, if it starts before.
    #[must_use]
    pub fn ceil(self) -> Self {
        let is_ceil = true;
        Self { is_ceil, ..self }
    }

    /// Returns the options with means of the elements of the tensor alone, without the zeros of the padding.
    #[must_use]
    #[doc(alias = "count_include_pad")]
    pub fn without_padding(self) -> Self {
        let counts_padding = false;
        Self {
            counts_padding,
            ..self
        }
    }

    fn check(&self, op: &'static str, shape: &[usize]) -> Result<()> {
        let axes = self.window.len();
        for (what, list) in [
            ("window", &self.window),
            ("stride", &self.stride),
            ("padding", &self.padding),
        ] {
            if list.len() != axes || axes == 0 || axes > shape.len() {
                let has = format!("`{what}` has {} lengths", list.len());
                let needed =
                    format!("windows have {axes} axes, and shape {shape:?} must have them");
                return Err(mismatch(op, format!("{has}, but {needed}")));
            }
        }
        for (&window, &stride) in self.window.iter().zip(&self.stride) {
            check_positive("window", window)?;
            check_positive("stride", stride)?;
        }
        let mut wide = self.padding.iter().zip(&self.window);
        if let Some((padding, window)) = wide.find(|&(&padding, &window)| padding > window / 2) {
            let requirement = format!("at most half of a window of {window}");
            return Err(Error::invalid("padding", padding.to_string(), requirement));
        }
        Ok(())
    }

    /// Returns the windows of one of the last axes of a shape.
    fn windows(&self, op: &'static str, k: usize, shape: &[usize]) -> Result<Windows> {
        let axis = shape.len() - self.window.len() + k;
        let (len, size, step) = (shape[axis], self.window[k], self.stride[k]);
        let before = self.padding[k];
        let padded = len.saturating_add(2 * before);
        if len == 0 || padded < size {
            let has = format!("a window of {size} elements does not fit into the {padded}");
            let message = format!("{has} of axis {axis} of shape {shape:?}, padding included");
            return Err(mismatch(op, message));
        }
        let mut count = (padded - size) / step + 1;
        // One more window, if it starts within the axis or the padding before.
        if self.is_ceil && !(padded - size).is_multiple_of(step) && count * step < len + before {
            count += 1;
        }
        Ok(Windows {
            axis,
            len,
            size,
            step,
            before,
            count,
        })
    }
}

/// The windows along one axis.
#[derive(Clone, Copy)]
struct Windows {
    axis: usize,
    /// The length of the axis.
    len: usize,
    size: usize,
    step: usize,
    /// The padding before and after the axis.
    before: usize,
    count: usize,
}

impl Windows {
    /// Returns the number of elements of a window, with or without those of the padding.
    fn elements(&self, window: usize, counts_padding: bool) -> usize {
        let start = window * self.step;
        let (first, last) = if counts_padding {
            (0, self.len + 2 * self.before)
        } else {
            (self.before, self.len + self.before)
        };
        (start + self.size).min(last) - start.max(first)
    }
}

/// Pooling along the last axes: one for signals, two for images.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, PoolOptions, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let image = tensors.arange(0.0, 16.0, 1.0)?.reshape(&[1, 4, 4])?;
/// let halves = PoolOptions::new(&[2, 2]);
/// assert_eq!(image.max_pool(&halves)?.read()?, [5.0, 7.0, 13.0, 15.0]);
/// assert_eq!(image.avg_pool(&halves)?.read()?, [2.5, 4.5, 10.5, 12.5]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Returns the largest element of each window, NaN where it has one. Equal largest elements share the gradient.
    ///
    /// # Errors
    /// `ShapeMismatch` for windows that do not fit, `InvalidArgument` for a length of 0 and for a padding of more than
    /// half a window.
    #[doc(alias = "max_pool1d")]
    #[doc(alias = "max_pool2d")]
    pub fn max_pool(&self, options: &PoolOptions) -> Result<Tensor> {
        options.check("max_pool", self.shape())?;
        let mut x = self.clone();
        for k in 0..options.window.len() {
            let windows = options.windows("max_pool", k, x.shape())?;
            x = x.pooled("max_pool", windows, f32::NEG_INFINITY, |a, b| a.maximum(b))?;
        }
        Ok(x)
    }

    /// Returns the mean of each window. The zeros of the padding count, unless the options say otherwise; positions
    /// beyond the padding do not.
    ///
    /// # Errors
    /// The errors of [`max_pool`](Self::max_pool).
    #[doc(alias = "avg_pool1d")]
    #[doc(alias = "avg_pool2d")]
    pub fn avg_pool(&self, options: &PoolOptions) -> Result<Tensor> {
        options.check("avg_pool", self.shape())?;
        let mut x = self.clone();
        for k in 0..options.window.len() {
            let windows = options.windows("avg_pool", k, x.shape())?;
            let sums = x.pooled("avg_pool", windows, 0.0, |a, b| a.add(b))?;
            x = sums.div(&sums.divisors(windows, options.counts_padding)?)?;
        }
        Ok(x)
    }

    /// Combines the elements at the same place of all windows along one axis, place by place.
    fn pooled(
        &self,
        op: &'static str,
        windows: Windows,
        beyond: f32,
        combine: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let Windows {
            axis,
            len,
            size,
            step,
            before,
            count,
        } = windows;
        let after = ((count - 1) * step + size).saturating_sub(len + before);
        let fill = Fill::Number(Node::constant(beyond));
        let padded = pad(op, &self.node, axis, [before, after], &fill)?;
        let place = |at: usize| self.with(strided(&padded, axis, [at, step, count]));
        (1..size).try_fold(place(0), |found, at| combine(&found, &place(at)))
    }

    /// Returns the numbers of elements of windows, for a tensor that they were summed to.
    fn divisors(&self, windows: Windows, counts_padding: bool) -> Result<Tensor> {
        let elements = (0..windows.count).map(|at| windows.elements(at, counts_padding) as f32);
        let elements: Vec<f32> = elements.collect();
        let mut shape = vec![1; self.rank() - windows.axis];
        if elements.iter().all(|&count| count == elements[0]) {
            return self.tensors().tensor(&elements[..1], &shape);
        }
        shape[0] = windows.count;
        self.tensors().tensor(&elements, &shape)
    }
}

/// Records `count` elements of an axis from `start` on that are `step` apart.
fn strided(x: &Arc<Node>, axis: usize, [start, step, count]: [usize; 3]) -> Arc<Node> {
    let (mut walk, mut shape) = (Walk::along(x.shape.len()), x.shape.clone());
    walk.starts[axis] = start;
    walk.steps[axis] = step as isize;
    shape[axis] = count;
    view(x, walk, &shape)
}

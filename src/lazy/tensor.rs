//! [`Tensor`]: a lazy value with a shape.

use std::sync::Arc;

use crate::device::buffer::DeviceBuffer;
use crate::error::Result;
use crate::lazy::node::Node;
use crate::lazy::run::Context;
use crate::lazy::shape::mismatch;
use crate::lazy::tensors::Tensors;

/// A value with a shape on a device, made by [`Tensors`](crate::Tensors). Its methods check shapes, record a
/// computation, and return a tensor at once; reading computes it.
///
/// - Operations of two tensors broadcast as in `NumPy`. A number is a tensor without axes.
/// - Axes count from 0, or from −1 backwards. A tensor has at most 6.
/// - Comparisons and logical operations return 1 and 0.
/// - Moving axes, slicing and broadcasting copy nothing until an operation needs its elements in order.
///
/// Only what a result needs is computed, as one program, which [`Tensors`](crate::Tensors) caches by the structure of
/// the graph. Values and numbers such as the factor of `mul(0.5)` are arguments of the program; parameters
/// such as the bounds of `clip` belong to the structure.
///
/// The operators `+`, `-`, `*` and `/` are those of the methods `add`, `sub`, `mul`, `div` and `neg`: `(&a + 1.0)?`. They
/// return a `Result`, too.
///
/// A tensor that was read is computed again where it is needed again. In a loop, call [`run_async`](Self::run_async) on
/// the tensors that the next iteration uses. Clones are cheap and share one value; memory on the device is released
/// with the last tensor that needs it.
///
/// # Errors
///
/// `ShapeMismatch` if shapes do not fit, `InvalidArgument` for an axis or a number outside its range, `LimitExceeded`
/// for more than 6 axes, and `Foreign` for a tensor of other [`Tensors`](crate::Tensors). Methods that compute return
/// errors of the device, too.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let points = tensors.tensor(&[0.0, 0.0, 0.0, 1.0, 9.0, 8.0, 8.0, 9.0], &[4, 2])?;
/// let centres = tensors.tensor(&[1.0, 1.0, 7.0, 7.0], &[2, 2])?;
/// let half_norms = centres.square()?.sum(1)?.mul(0.5)?;
/// let nearest = points.matmul(&centres.transpose()?)?.sub(&half_norms)?.argmax(1)?;
/// assert_eq!(nearest.read()?, [0.0, 0.0, 1.0, 1.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone)]
#[doc(alias = "array")]
#[doc(alias = "ndarray")]
pub struct Tensor {
    pub(super) context: Arc<Context>,
    pub(super) node: Arc<Node>,
}

impl Tensor {
    /// Returns the tensors of this device that operations combine this one with.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{Error, GpuDevice, Tensor, Tensors};
    ///
    /// fn centred(x: &Tensor) -> Result<Tensor, Error> {
    ///     let weights = x.tensors().tensor(&[0.25, 0.75], &[2])?;
    ///     x - &(x * &weights)?.sum(0)?
    /// }
    ///
    /// let x = Tensors::new(&GpuDevice::new()?).tensor(&[4.0, 8.0], &[2])?;
    /// assert_eq!(centred(&x)?.read()?, [-3.0, 1.0]);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    pub fn tensors(&self) -> Tensors {
        Tensors::of(Arc::clone(&self.context))
    }

    /// Returns the lengths of the axes; a scalar has none.
    pub fn shape(&self) -> &[usize] {
        &self.node.shape
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.node.shape.len()
    }

    /// Returns the number of elements.
    #[doc(alias = "len")]
    pub fn size(&self) -> usize {
        self.node.size()
    }

    /// Returns another tensor of the same device.
    pub(super) fn with(&self, node: Arc<Node>) -> Self {
        let context = Arc::clone(&self.context);
        Self { context, node }
    }

    /// Computes the elements, and returns them in row-major order.
    pub async fn read_async(&self) -> Result<Vec<f32>> {
        let nodes = [Arc::clone(&self.node)];
        let mut values = self.context.read(&nodes).await?;
        Ok(values.pop().unwrap_or_default())
    }

    /// Computes the only element.
    pub async fn item_async(&self) -> Result<f32> {
        let (shape, size) = (self.shape(), self.size());
        if size != 1 {
            let needed = "but must have one; use `read_async`";
            let message = format!("shape {shape:?} has {size} elements, {needed}");
            return Err(mismatch("item", message));
        }
        let values = self.read_async().await?;
        Ok(values.first().copied().unwrap_or(f32::NAN))
    }

    /// Computes the elements, which stay on the device, and releases the recorded computation. Returns the same tensor.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let tensors = Tensors::new(&GpuDevice::new()?);
    /// let mut x = tensors.tensor(&[1.0, 2.0, 3.0], &[3])?;
    /// for _ in 0..3 {
    ///     x = x.mul(0.5)?.add(1.0)?.run()?;
    /// }
    /// assert_eq!(x.read()?, [1.875, 2.0, 2.125]);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    pub async fn run_async(&self) -> Result<Self> {
        self.context.keep(&[Arc::clone(&self.node)]).await?;
        Ok(self.clone())
    }

    /// Computes the elements, which stay on the device, and returns them in row-major order as a buffer for methods of
    /// the device, batches and programs. The buffer shares the tensor's memory.
    ///
    /// ```
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let device = GpuDevice::new()?;
    /// let tensors = Tensors::new(&device);
    /// let x = tensors.tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?.transpose()?;
    /// let y = tensors.from_buffer(x.to_buffer()?, &[4])?;
    /// assert_eq!(y.read()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), relampago::Error>(())
    /// ```
    pub async fn to_buffer_async(&self) -> Result<DeviceBuffer> {
        self.context.buffer(&self.node).await
    }
}

/// Blocking versions, on native targets.
#[cfg(not(target_arch = "wasm32"))]
impl Tensor {
    /// Blocking version of [`Tensor::read_async`].
    pub fn read(&self) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.read_async())
    }

    /// Blocking version of [`Tensor::item_async`].
    pub fn item(&self) -> Result<f32> {
        crate::runtime::block_on(self.item_async())
    }

    /// Blocking version of [`Tensor::to_bytes_async`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        crate::runtime::block_on(self.to_bytes_async())
    }

    /// Blocking version of [`Tensor::run_async`].
    pub fn run(&self) -> Result<Self> {
        crate::runtime::block_on(self.run_async())
    }

    /// Blocking version of [`Tensor::to_buffer_async`].
    pub fn to_buffer(&self) -> Result<DeviceBuffer> {
        crate::runtime::block_on(self.to_buffer_async())
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Tensor");
        debug.field("shape", &self.shape());
        debug.finish_non_exhaustive()
    }
}

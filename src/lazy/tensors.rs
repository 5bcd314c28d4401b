//! [`Tensors`]: a device with the programs of its tensors.

use std::sync::Arc;

use crate::device::GpuDevice;
use crate::device::buffer::DeviceBuffer;
use crate::error::{Error, Result};
use crate::lazy::movement;
use crate::lazy::node::{Node, Source};
use crate::lazy::run::Context;
use crate::lazy::shape::{check_shape, mismatch, size_of};
use crate::lazy::tensor::Tensor;

/// Makes the [`Tensor`]s of a device, and caches the programs that compute them: the 64 that were used last, by the
/// structure of the graph.
///
/// Clones are cheap and share the cache. Tensors of one `Tensors` and its clones can be combined with each other; the
/// tensors of another one belong to it, even on the same device.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
/// let (sum, mean) = (x.sum(0)?, x.mean(..)?);
/// // One submission computes both.
/// let values = tensors.read(&[&sum, &mean])?;
/// assert_eq!(values, [vec![5.0, 7.0, 9.0], vec![3.5]]);
/// assert_eq!(tensors.planned(), 1);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensors {
    context: Arc<Context>,
}

impl Tensors {
    /// Creates an empty cache of programs for a device.
    pub fn new(device: &GpuDevice) -> Self {
        let context = Arc::new(Context::new(device.clone()));
        Self { context }
    }

    pub(super) fn of(context: Arc<Context>) -> Self {
        Self { context }
    }

    /// Creates a tensor of elements in row-major order, which are copied. A scalar has the shape `&[]`.
    ///
    /// # Errors
    /// `ShapeMismatch` if the shape has more or fewer elements, `LimitExceeded` for more than 6 axes, `OutOfMemory`.
    pub fn tensor(&self, values: &[f32], shape: &[usize]) -> Result<Tensor> {
        check_size("tensor", values.len(), shape)?;
        self.own(self.context.device.cpu().copy(values)?, shape)
    }

    /// Creates a tensor of elements in row-major order without copying them.
    ///
    /// # Errors
    /// The errors of [`tensor`](Self::tensor).
    pub(crate) fn own(&self, values: Vec<f32>, shape: &[usize]) -> Result<Tensor> {
        check_size("tensor", values.len(), shape)?;
        Ok(self.leaf(shape, Source::Values(Arc::new(values))))
    }

    /// Creates a tensor of the elements of a buffer, without copying them.
    ///
    /// # Errors
    /// `Foreign` for a buffer of another device, and the errors of [`tensor`](Self::tensor).
    pub fn from_buffer(&self, buffer: DeviceBuffer, shape: &[usize]) -> Result<Tensor> {
        if !buffer.device().same_device(&self.context.device) {
            let (what, owner) = ("buffer", "device");
            return Err(Error::Foreign { what, owner });
        }
        check_size("from_buffer", buffer.len(), shape)?;
        Ok(self.leaf(shape, Source::Buffer(buffer)))
    }

    /// Returns a tensor all of whose elements are one number, which is an argument of programs.
    ///
    /// # Errors
    /// `LimitExceeded` for more than 6 axes, `ShapeOverflow`.
    pub fn full(&self, shape: &[usize], value: f32) -> Result<Tensor> {
        let node = movement::broadcast_to(&Node::number(value), shape)?;
        Ok(self.with(node))
    }

    /// Returns a tensor of zeros.
    ///
    /// # Errors
    /// The errors of [`full`](Self::full).
    pub fn zeros(&self, shape: &[usize]) -> Result<Tensor> {
        self.full(shape, 0.0)
    }

    /// Returns a tensor of ones.
    ///
    /// # Errors
    /// The errors of [`full`](Self::full).
    pub fn ones(&self, shape: &[usize]) -> Result<Tensor> {
        self.full(shape, 1.0)
    }

    /// Computes several tensors, on a GPU in one submission, and returns their elements.
    ///
    /// # Errors
    /// `Foreign` for a tensor of other `Tensors`, and errors of the device.
    pub async fn read_async(&self, tensors: &[&Tensor]) -> Result<Vec<Vec<f32>>> {
        self.context.read(&self.nodes(tensors)?).await
    }

    /// Computes several tensors, on a GPU in one submission. Their elements stay on the device.
    ///
    /// # Errors
    /// The errors of [`read_async`](Self::read_async).
    pub async fn run_async(&self, tensors: &[&Tensor]) -> Result<()> {
        self.context.keep(&self.nodes(tensors)?).await
    }

    /// Returns the number of programs that were planned so far.
    pub fn planned(&self) -> usize {
        self.context.programs().planned
    }

    /// Returns the number of programs in the cache, at most 64.
    pub fn cached(&self) -> usize {
        self.context.programs().cached()
    }

    /// Returns the device that computes the tensors.
    pub fn device(&self) -> &GpuDevice {
        &self.context.device
    }

    pub(super) fn leaf(&self, shape: &[usize], source: Source) -> Tensor {
        self.with(Node::leaf(shape, source))
    }

    pub(super) fn with(&self, node: Arc<Node>) -> Tensor {
        let context = Arc::clone(&self.context);
        Tensor { context, node }
    }

    fn nodes(&self, tensors: &[&Tensor]) -> Result<Vec<Arc<Node>>> {
        let owned = tensors.iter().map(|tensor| {
            if Arc::ptr_eq(&tensor.context, &self.context) {
                return Ok(Arc::clone(&tensor.node));
            }
            let (what, owner) = ("tensors", "`Tensors`");
            Err(Error::Foreign { what, owner })
        });
        owned.collect()
    }
}

/// Blocking versions, on native targets.
#[cfg(not(target_arch = "wasm32"))]
impl Tensors {
    /// Blocking version of [`Tensors::read_async`].
    pub fn read(&self, tensors: &[&Tensor]) -> Result<Vec<Vec<f32>>> {
        crate::runtime::block_on(self.read_async(tensors))
    }

    /// Blocking version of [`Tensors::run_async`].
    pub fn run(&self, tensors: &[&Tensor]) -> Result<()> {
        crate::runtime::block_on(self.run_async(tensors))
    }
}

impl std::fmt::Debug for Tensors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Tensors");
        debug.field("planned", &self.planned());
        debug.field("cached", &self.cached());
        debug.finish_non_exhaustive()
    }
}

pub(super) fn check_size(op: &'static str, len: usize, shape: &[usize]) -> Result<()> {
    check_shape(shape)?;
    let size = size_of(shape);
    if size == len {
        return Ok(());
    }
    let has = format!("there are {len} values");
    Err(mismatch(
        op,
        format!("{has}, but shape {shape:?} has {size}"),
    ))
}

//! A GPU with its loaded kernels and a queue for work.

use super::buffer::{CudaBuffer, Element};
use super::context::{self, Context};
use super::error::{Error, Result};
use super::event;
use super::launch::{Argument, CudaKernel, Loaded};
use super::pinned::PinnedBuffer;
use super::queue::{MemoryUse, Queue, Submission};
use relampago_ptx::{Kernel, Target};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An NVIDIA GPU. Clones refer to the same GPU.
///
/// Operations run in the order of the calls, and also wait for earlier work on all streams of the
/// device. [`super::Stream::device`] returns a handle whose operations wait for other streams only
/// if they use the same memory.
#[derive(Clone, Debug)]
pub struct CudaDevice {
    inner: Arc<Inner>,
    queue: Queue,
}

#[derive(Debug)]
struct Inner {
    context: Arc<Context>,
    /// Loaded kernels by name. A kernel's name identifies its text for one target.
    kernels: Mutex<HashMap<String, Arc<Loaded>>>,
}

impl CudaDevice {
    /// Returns the number of GPUs.
    ///
    /// # Errors
    /// [`Error::NoDriver`] without a driver.
    pub fn count() -> Result<usize> {
        context::count()
    }

    /// Opens the GPU with this index.
    ///
    /// # Errors
    /// [`Error::NoDriver`] without a driver, [`Error::NoDevice`] if there is no such GPU or it is
    /// older than Volta.
    pub fn open(ordinal: usize) -> Result<Self> {
        Ok(CudaDevice {
            inner: Arc::new(Inner {
                context: Arc::new(Context::open(ordinal)?),
                kernels: Mutex::new(HashMap::new()),
            }),
            queue: Queue::Default,
        })
    }

    /// Returns the GPU's index.
    pub fn ordinal(&self) -> usize {
        self.inner.context.ordinal
    }

    /// Returns the GPU's product name.
    pub fn name(&self) -> &str {
        &self.inner.context.name
    }

    /// Returns the compute capability, major and minor.
    pub fn capability(&self) -> (u32, u32) {
        self.inner.context.capability
    }

    /// Returns the target for which kernels are built on this GPU.
    pub fn target(&self) -> Target {
        self.inner.context.target
    }

    /// Returns the number of multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.inner.context.multiprocessors
    }

    /// Returns the highest clock rates of the multiprocessors and the memory, in MHz; 0 where the
    /// driver does not report it.
    pub fn clocks(&self) -> [u32; 2] {
        self.inner.context.clocks.map(|khz| khz / 1000)
    }

    /// Returns the free and the total memory, in bytes.
    ///
    /// # Errors
    /// [`Error::Driver`] if the query fails.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.inner.context.memory()
    }

    /// Opens every supported GPU. GPUs older than Volta are skipped.
    ///
    /// # Errors
    /// [`Error::NoDriver`] without a driver, [`Error::Driver`] if a GPU cannot be opened.
    pub fn open_all() -> Result<Vec<Self>> {
        let opened = (0..Self::count()?).map(Self::open);
        opened
            .filter(|device| !matches!(device, Err(Error::NoDevice { .. })))
            .collect()
    }

    /// Whether [`CudaBuffer::copy_from`] copies directly from `other` to this GPU, and not through
    /// host memory.
    ///
    /// # Errors
    /// [`Error::Driver`] if the query fails.
    pub fn reaches(&self, other: &CudaDevice) -> Result<bool> {
        self.inner.context.reaches(&other.inner.context)
    }

    /// Whether both handles refer to the same opened GPU.
    pub(super) fn is(&self, other: &CudaDevice) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }

    /// Returns a handle of the same GPU with another queue.
    pub(super) fn with_queue(&self, queue: Queue) -> Self {
        CudaDevice {
            inner: self.inner.clone(),
            queue,
        }
    }

    /// Submits work that uses memory, ordered after earlier uses of that memory.
    pub(super) fn ordered(
        &self,
        uses: &[MemoryUse<'_>],
        work: impl FnOnce(&mut Submission<'_>) -> Result<()>,
    ) -> Result<()> {
        self.inner.context.enter()?;
        // A graph uses its buffers without borrowing them, so another thread may submit work on the
        // same buffers.
        let _turn = self.inner.context.turn();
        self.queue.turn(uses, work)
    }

    /// Submits one kernel, ordered after earlier uses of its memory.
    ///
    /// # Safety
    /// See [`CudaKernel::launch`]. The kernel is ordered with other streams only if `uses` lists
    /// all memory that it accesses.
    pub(super) unsafe fn submit(
        &self,
        kernel: &dyn Kernel,
        uses: &[MemoryUse<'_>],
        arguments: &[Argument],
    ) -> Result<()> {
        let kernel = self.load(kernel)?;
        // SAFETY: the caller guarantees the same.
        let launch = |turn: &mut Submission<'_>| unsafe { turn.launch(&kernel, arguments) };
        self.ordered(uses, launch)
    }

    /// Blocks until all work submitted to the GPU so far, on all streams, has finished.
    ///
    /// # Errors
    /// [`Error::Driver`] if any of it failed.
    pub fn synchronize(&self) -> Result<()> {
        event::synchronize(&self.inner.context)
    }

    /// Allocates a buffer and copies `values` to it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not enough memory.
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<CudaBuffer<T>> {
        let mut buffer = CudaBuffer::uninitialised(self, values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// Allocates a buffer of zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not enough memory.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<CudaBuffer<T>> {
        let buffer = CudaBuffer::uninitialised(self, len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// Allocates a page-locked host buffer of zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not enough memory.
    pub fn pinned<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        PinnedBuffer::new(&self.inner.context, len)
    }

    /// Builds and compiles a kernel for this GPU. Loaded kernels are cached by
    /// [name](Kernel::name), so a custom kernel's name must identify its text. Launches go to this
    /// device's queue.
    ///
    /// # Errors
    /// [`Error::Ptx`] if this GPU lacks a feature of the kernel, [`Error::Compile`] with the
    /// compiler's log if the driver rejects the text.
    pub fn load(&self, kernel: &dyn Kernel) -> Result<CudaKernel> {
        let name = kernel.name();
        let kernels = || {
            let kernels = self.inner.kernels.lock();
            kernels.unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(loaded) = kernels().get(&name) {
            return Ok(CudaKernel::new(self, loaded.clone()));
        }
        // Compile outside the lock, so that other threads can load kernels meanwhile.
        let built = kernel.build(self.target())?;
        let loaded = Arc::new(Loaded::compile(&self.inner.context, built)?);
        kernels().insert(name, loaded.clone());
        Ok(CudaKernel::new(self, loaded))
    }
}

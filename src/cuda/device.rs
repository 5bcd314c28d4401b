//! A GPU, with the kernels loaded on it, and a queue for what it is asked to do.

use super::buffer::{CudaBuffer, Element};
use super::context::{self, Context};
use super::error::{Error, Result};
use super::event;
use super::launch::{Argument, CudaKernel, Loaded};
use super::pinned::PinnedBuffer;
use super::queue::{Queue, Turn, Use};
use crate::ptx::{Kernel, Target};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An NVIDIA GPU. Clones share it.
///
/// What a device is asked to do starts when everything asked before is done, on its streams, too;
/// what comes later waits for it. [`super::Stream::device`] gives the same device with operations that
/// do not wait for those of other streams, unless they use the same memory.
#[derive(Clone, Debug)]
pub struct CudaDevice {
    inner: Arc<Inner>,
    queue: Queue,
}

#[derive(Debug)]
struct Inner {
    context: Arc<Context>,
    /// Loaded kernels by name: a kernel's name says all that its text depends on but the target.
    kernels: Mutex<HashMap<String, Arc<Loaded>>>,
}

impl CudaDevice {
    /// How many GPUs there are.
    ///
    /// # Errors
    /// [`Error::NoDriver`] without a driver.
    pub fn count() -> Result<usize> {
        context::count()
    }

    /// The GPU of this number, from 0 on.
    ///
    /// # Errors
    /// [`Error::NoDriver`] without a driver,
    /// [`Error::NoDevice`] if there is no such GPU or it is older than Volta.
    pub fn open(ordinal: usize) -> Result<Self> {
        Ok(CudaDevice {
            inner: Arc::new(Inner {
                context: Arc::new(Context::open(ordinal)?),
                kernels: Mutex::new(HashMap::new()),
            }),
            queue: Queue::Default,
        })
    }

    /// The GPU's number.
    pub fn ordinal(&self) -> usize {
        self.inner.context.ordinal
    }

    /// What its maker calls it.
    pub fn name(&self) -> &str {
        &self.inner.context.name
    }

    /// Compute capability, major and minor.
    pub fn capability(&self) -> (u32, u32) {
        self.inner.context.capability
    }

    /// What kernels are written for on this GPU.
    pub fn target(&self) -> Target {
        self.inner.context.target
    }

    /// How many multiprocessors it has.
    pub fn multiprocessors(&self) -> u32 {
        self.inner.context.multiprocessors
    }

    /// The fastest that its multiprocessors are clocked, and its memory, in MHz; 0 where the driver
    /// does not tell.
    pub fn clocks(&self) -> [u32; 2] {
        self.inner.context.clocks.map(|khz| khz / 1000)
    }

    /// Free and total memory, in bytes.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver refuses to say.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.inner.context.memory()
    }

    /// Every GPU that kernels are written for, each opened once; those older than Volta are left out.
    ///
    /// # Errors
    /// [`Error::NoDriver`] without a driver, [`Error::Driver`] if it
    /// refuses to open one.
    pub fn open_all() -> Result<Vec<Self>> {
        let opened = (0..Self::count()?).map(Self::open);
        opened
            .filter(|device| !matches!(device, Err(Error::NoDevice { .. })))
            .collect()
    }

    /// Whether [`CudaBuffer::copy_from`] need not go through the host's memory from `other` to this GPU.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver refuses to say.
    pub fn reaches(&self, other: &CudaDevice) -> Result<bool> {
        self.inner.context.reaches(&other.inner.context)
    }

    /// Whether both are of one GPU, opened once.
    pub(super) fn is(&self, other: &CudaDevice) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }

    /// The same GPU with another queue.
    pub(super) fn with_queue(&self, queue: Queue) -> Self {
        CudaDevice {
            inner: self.inner.clone(),
            queue,
        }
    }

    /// Asks for work on memory, in its turn.
    pub(super) fn ordered(
        &self,
        uses: &[Use<'_>],
        work: impl FnOnce(&mut Turn<'_>) -> Result<()>,
    ) -> Result<()> {
        self.inner.context.enter()?;
        // A graph uses its buffers without being lent them: another thread may be at the same ones.
        let _turn = self.inner.context.turn();
        self.queue.turn(uses, work)
    }

    /// Asks for one kernel, in its turn.
    ///
    /// # Safety
    /// As [`CudaKernel::launch`]; streams are waited for if `uses` has all memory that is used.
    pub(super) unsafe fn submit(
        &self,
        kernel: &dyn Kernel,
        uses: &[Use<'_>],
        arguments: &[Argument],
    ) -> Result<()> {
        let kernel = self.load(kernel)?;
        // SAFETY: the caller promises the same.
        let launch = |turn: &mut Turn<'_>| unsafe { turn.launch(&kernel, arguments) };
        self.ordered(uses, launch)
    }

    /// Waits for everything asked of the GPU so far, on all streams.
    ///
    /// # Errors
    /// [`Error::Driver`] if any of it failed.
    pub fn synchronize(&self) -> Result<()> {
        event::synchronize(&self.inner.context)
    }

    /// A buffer with a copy of `values`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not enough.
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<CudaBuffer<T>> {
        let mut buffer = CudaBuffer::uninitialised(self, values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// A buffer of zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not enough.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<CudaBuffer<T>> {
        let buffer = CudaBuffer::uninitialised(self, len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// Zeros in memory of the host that the GPU copies from and to by itself.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not enough.
    pub fn pinned<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        PinnedBuffer::new(&self.inner.context, len)
    }

    /// A kernel, written for this GPU and compiled; the second time it is at hand, known by its
    /// [name](Kernel::name), which has to be its text's alone. It is launched where this device's operations go.
    ///
    /// # Errors
    /// [`Error::Ptx`] if this GPU does not have what the kernel needs,
    /// [`Error::Compile`] with the compiler's log if the driver refuses it.
    pub fn load(&self, kernel: &dyn Kernel) -> Result<CudaKernel> {
        let name = kernel.name();
        let kernels = || {
            let kernels = self.inner.kernels.lock();
            kernels.unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(loaded) = kernels().get(&name) {
            return Ok(CudaKernel::new(self, loaded.clone()));
        }
        // Not under the lock: others may load while this compiles.
        let built = kernel.build(self.target())?;
        let loaded = Arc::new(Loaded::compile(&self.inner.context, built)?);
        kernels().insert(name, loaded.clone());
        Ok(CudaKernel::new(self, loaded))
    }
}

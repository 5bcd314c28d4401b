//! Memory on the GPU.

use super::context::Context;
use super::device::CudaDevice;
use super::driver::{check, check_alloc};
use super::error::{Error, Result};
use super::launch::Argument;
use super::pinned::bytes_of;
use super::queue::{Marks, Queue, Turn, Use};
use cudarc::driver::sys;
use std::marker::PhantomData;
use std::sync::Arc;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for u32 {}
    impl Sealed for u16 {}
    impl Sealed for u8 {}
}

/// What buffers hold: numbers of which every pattern of bits is one. f16 and bf16 are `u16`.
pub trait Element: Copy + Default + sealed::Sealed {}
impl Element for f32 {}
impl Element for u32 {}
impl Element for u16 {}
impl Element for u8 {}

/// Values in a GPU's memory, freed when dropped.
#[derive(Debug)]
pub struct CudaBuffer<T> {
    device: CudaDevice,
    memory: Arc<Memory>,
    len: usize,
    values: PhantomData<T>,
}

/// What a buffer's values lie in; graphs that use it keep it.
#[derive(Debug)]
pub(super) struct Memory {
    context: Arc<Context>,
    address: sys::CUdeviceptr,
    pub(super) marks: Marks,
}

impl Memory {
    fn new(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        context.enter()?;
        let mut address = 0;
        // SAFETY: the pointer is to a living address. The driver refuses zero bytes.
        let code = unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes.max(1)) };
        check_alloc("cuMemAlloc", code, bytes)?;
        Ok(Memory {
            context: context.clone(),
            address,
            marks: Marks::default(),
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // What streams have to do with it; after a failure nothing runs any more.
        let _ = self.marks.wait(true);
        if self.context.enter().is_ok() {
            // SAFETY: the address is its own, and is used no more. The call waits for kernels of
            // the default queue that still use it.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}

impl<T: Element> CudaBuffer<T> {
    /// Memory that holds whatever was there.
    pub(super) fn uninitialised(device: &CudaDevice, len: usize) -> Result<Self> {
        Ok(CudaBuffer {
            device: device.with_queue(Queue::Default),
            memory: Arc::new(Memory::new(device.context(), bytes_of::<T>(len)?)?),
            len,
            values: PhantomData,
        })
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What it was made with.
    pub fn device(&self) -> &CudaDevice {
        &self.device
    }

    /// Where it lies in the GPU's memory.
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// What a kernel gets that takes its values from this one on.
    pub(super) fn from(&self, value: usize) -> Argument {
        Argument::Pointer(self.address() + (value * size_of::<T>()) as u64)
    }

    /// What work that reads it says of it.
    pub(super) fn input(&self) -> Use<'_> {
        Use {
            marks: &self.memory.marks,
            memory: Some(&self.memory),
            writes: false,
        }
    }

    /// What work that writes it says of it; whoever calls it was lent the buffer exclusively.
    pub(super) fn output(&self) -> Use<'_> {
        Use {
            writes: true,
            ..self.input()
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    pub(super) fn clear(&self) -> Result<()> {
        self.device.context().enter()?;
        // SAFETY: the buffer has so many bytes, and zeros are values of every element.
        check("cuMemsetD8", unsafe {
            sys::cuMemsetD8_v2(self.address(), 0, self.bytes())
        })
    }

    /// Replaces all values.
    ///
    /// # Errors
    /// [`Error::Length`] if there are not as many.
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        self.expect("values", values.len())?;
        self.device.context().enter()?;
        // SAFETY: both places have so many bytes; the call returns when the host's have been read.
        check("cuMemcpyHtoD", unsafe {
            sys::cuMemcpyHtoD_v2(self.address(), values.as_ptr().cast(), self.bytes())
        })
    }

    /// Copies all values, once everything asked of the GPU before is done.
    ///
    /// # Errors
    /// [`Error::Length`] if `to` does not have as many, [`Error::Driver`] if earlier work failed.
    pub fn read(&self, to: &mut [T]) -> Result<()> {
        self.expect("to", to.len())?;
        self.device.context().enter()?;
        // SAFETY: both places have so many bytes, and every pattern of bits is a value.
        check("cuMemcpyDtoH", unsafe {
            sys::cuMemcpyDtoH_v2(to.as_mut_ptr().cast(), self.address(), self.bytes())
        })
    }

    /// All values.
    ///
    /// # Errors
    /// As [`CudaBuffer::read`].
    pub fn download(&self) -> Result<Vec<T>> {
        let mut values = vec![T::default(); self.len];
        self.read(&mut values)?;
        Ok(values)
    }

    /// Replaces all values by another buffer's, which may be on another GPU: then directly where the
    /// two can reach each other's memory, and through the host's where they cannot. Waits for what
    /// both GPUs were asked for before, and they for it.
    ///
    /// # Errors
    /// [`Error::Length`] if there are not as many.
    pub fn copy_from(&mut self, from: &CudaBuffer<T>) -> Result<()> {
        self.expect("from", from.len())?;
        let (own, other) = (self.device.context(), from.device.context());
        own.reach(other)?;
        // SAFETY: both places have so many bytes. The call is ordered with all work on both
        // contexts, and so with what frees the memory.
        check("cuMemcpyPeer", unsafe {
            sys::cuMemcpyPeer(
                self.address(),
                own.handle,
                from.address(),
                other.handle,
                self.bytes(),
            )
        })
    }

    pub(super) fn expect(&self, what: &'static str, actual: usize) -> Result<()> {
        let expected = self.len;
        let error = Error::Length {
            what,
            expected,
            actual,
        };
        (actual == expected).then_some(()).ok_or(error)
    }
}

/// Memory for what kernels hand to each other: taken and given back in their turn, without
/// waiting for any.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) address: sys::CUdeviceptr,
    stream: sys::CUstream,
}

impl Scratch {
    pub(super) fn new(turn: &Turn<'_>, bytes: usize) -> Result<Self> {
        let stream = turn.stream;
        let mut address = 0;
        // SAFETY: the pointer is to a living address; the context is current in its turn.
        let code = unsafe { sys::cuMemAllocAsync(&raw mut address, bytes.max(1), stream) };
        check_alloc("cuMemAllocAsync", code, bytes)?;
        Ok(Scratch { address, stream })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the address is its own, and what was launched before in the same turn is done with it
        // by then. The stream exists: a turn is shorter than its stream's life.
        let _ = unsafe { sys::cuMemFreeAsync(self.address, self.stream) };
    }
}

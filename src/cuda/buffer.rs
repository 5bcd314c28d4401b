//! Buffers in GPU memory.

use super::context::Context;
use super::device::CudaDevice;
use super::driver::{check, check_alloc};
use super::error::{Error, Result};
use super::launch::Argument;
use super::pinned::bytes_of;
use super::queue::{LastUses, MemoryUse, Queue, Submission};
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

/// A number type that a buffer can hold. Every bit pattern is a valid value; f16 and bf16 are
/// stored as `u16`.
pub trait Element: Copy + Default + sealed::Sealed {}
impl Element for f32 {}
impl Element for u32 {}
impl Element for u16 {}
impl Element for u8 {}

/// An array in GPU memory, freed when dropped.
#[derive(Debug)]
pub struct CudaBuffer<T> {
    device: CudaDevice,
    memory: Arc<Memory>,
    len: usize,
    values: PhantomData<T>,
}

/// The allocation behind a buffer. Graphs that use the buffer keep it alive.
#[derive(Debug)]
pub(super) struct Memory {
    context: Arc<Context>,
    address: sys::CUdeviceptr,
    pub(super) last_uses: LastUses,
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
            last_uses: LastUses::default(),
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Wait for the streams that use the memory. After a failure nothing runs any more, so the
        // result is ignored.
        let _ = self.last_uses.wait(true);
        if self.context.enter().is_ok() {
            // SAFETY: this owns the address, which is not used any more. The call waits for kernels
            // of the default queue that still use it.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}

impl<T: Element> CudaBuffer<T> {
    /// Allocates a buffer without initialising it.
    pub(super) fn uninitialised(device: &CudaDevice, len: usize) -> Result<Self> {
        Ok(CudaBuffer {
            device: device.with_queue(Queue::Default),
            memory: Arc::new(Memory::new(device.context(), bytes_of::<T>(len)?)?),
            len,
            values: PhantomData,
        })
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device that the buffer was made with.
    pub fn device(&self) -> &CudaDevice {
        &self.device
    }

    /// Returns the buffer's address in GPU memory.
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// Returns a kernel argument that points at element `value`.
    pub(super) fn from(&self, value: usize) -> Argument {
        Argument::Pointer(self.address() + (value * size_of::<T>()) as u64)
    }

    /// Declares a read of the buffer.
    pub(super) fn input(&self) -> MemoryUse<'_> {
        MemoryUse {
            last_uses: &self.memory.last_uses,
            memory: Some(&self.memory),
            writes: false,
        }
    }

    /// Declares a write of the buffer. The caller must hold the buffer exclusively.
    pub(super) fn output(&self) -> MemoryUse<'_> {
        MemoryUse {
            writes: true,
            ..self.input()
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    pub(super) fn clear(&self) -> Result<()> {
        self.device.context().enter()?;
        // SAFETY: the buffer has that many bytes, and zero is a valid value of every element type.
        check("cuMemsetD8", unsafe {
            sys::cuMemsetD8_v2(self.address(), 0, self.bytes())
        })
    }

    /// Overwrites the buffer with `values`.
    ///
    /// # Errors
    /// [`Error::Length`] if the lengths differ.
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        self.expect("values", values.len())?;
        self.write_first(values)
    }

    /// Overwrites the first elements. The caller must hold the buffer exclusively.
    pub(super) fn write_first(&self, values: &[T]) -> Result<()> {
        self.write_from(0, values)
    }

    /// Overwrites elements from one on. The caller must hold the buffer exclusively.
    pub(super) fn write_from(&self, first: usize, values: &[T]) -> Result<()> {
        self.expect_room("values", first.saturating_add(values.len()))?;
        self.device.context().enter()?;
        let to = self.address() + (first * size_of::<T>()) as u64;
        // SAFETY: source and destination have that many bytes; the call returns when the host
        // memory has been read.
        check("cuMemcpyHtoD", unsafe {
            sys::cuMemcpyHtoD_v2(to, values.as_ptr().cast(), size_of_val(values))
        })
    }

    /// Copies the buffer to `to`, after all earlier work on the GPU has finished.
    ///
    /// # Errors
    /// [`Error::Length`] if the lengths differ, [`Error::Driver`] if earlier work failed.
    pub fn read(&self, to: &mut [T]) -> Result<()> {
        self.expect("to", to.len())?;
        self.read_first(to)
    }

    /// Copies the first elements to `to`, after all earlier work on the GPU has finished.
    pub(super) fn read_first(&self, to: &mut [T]) -> Result<()> {
        self.expect_room("to", to.len())?;
        self.device.context().enter()?;
        // SAFETY: source and destination have that many bytes, and every bit pattern is a valid
        // value.
        check("cuMemcpyDtoH", unsafe {
            sys::cuMemcpyDtoH_v2(to.as_mut_ptr().cast(), self.address(), size_of_val(to))
        })
    }

    /// Returns a copy of the buffer's elements.
    ///
    /// # Errors
    /// The errors of [`CudaBuffer::read`], and [`Error::OutOfMemory`] if the host has no room for the elements.
    pub fn download(&self) -> Result<Vec<T>> {
        let mut values = Vec::new();
        let reserved = values.try_reserve_exact(self.len);
        reserved.map_err(|_| Error::OutOfMemory {
            bytes: self.bytes() as u64,
        })?;
        values.resize(self.len, T::default());
        self.read(&mut values)?;
        Ok(values)
    }

    /// Overwrites the buffer with the elements of `from`, which may be on another GPU. The copy
    /// between GPUs is direct if they can access each other's memory, and goes through host memory
    /// otherwise. It waits for all earlier work on both GPUs, and later work on both waits for it.
    ///
    /// # Errors
    /// [`Error::Length`] if the lengths differ.
    pub fn copy_from(&mut self, from: &CudaBuffer<T>) -> Result<()> {
        self.expect("from", from.len())?;
        let (own, other) = (self.device.context(), from.device.context());
        own.reach(other)?;
        // SAFETY: source and destination have that many bytes. The call is ordered with all work on
        // both contexts, and so with freeing the memory.
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

    /// Checks that there are at least this many elements.
    fn expect_room(&self, what: &'static str, actual: usize) -> Result<()> {
        if actual <= self.len {
            return Ok(());
        }
        self.expect(what, actual)
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

/// Temporary memory between kernels, allocated and freed in stream order, without blocking.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) address: sys::CUdeviceptr,
    stream: sys::CUstream,
}

impl Scratch {
    pub(super) fn new(turn: &Submission<'_>, bytes: usize) -> Result<Self> {
        let stream = turn.stream;
        let mut address = 0;
        // SAFETY: the pointer is valid for writes; the context is current during a submission.
        let code = unsafe { sys::cuMemAllocAsync(&raw mut address, bytes.max(1), stream) };
        check_alloc("cuMemAllocAsync", code, bytes)?;
        Ok(Scratch { address, stream })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: this owns the address, and the stream frees it after everything launched before
        // in the same submission. The stream exists, since a submission does not outlive it.
        let _ = unsafe { sys::cuMemFreeAsync(self.address, self.stream) };
    }
}

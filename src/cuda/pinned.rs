//! Page-locked host memory, which the GPU copies from and to on its own.

use super::buffer::Element;
use super::context::Context;
use super::driver::check_alloc;
use super::error::{Error, Result};
use super::queue::{LastUses, MemoryUse};
use cudarc::driver::sys;
use std::ptr::NonNull;
use std::sync::Arc;

/// An array in page-locked host memory ([`super::CudaDevice::pinned`]). [`super::Stream`]s copy
/// from and to it while the host does other work. Accessing the elements blocks until pending
/// copies have finished.
///
/// The operating system cannot move or page out such memory, so use it for transfers only.
#[derive(Debug)]
pub struct PinnedBuffer<T> {
    context: Arc<Context>,
    values: NonNull<T>,
    len: usize,
    last_uses: LastUses,
}

// SAFETY: this owns its elements, which are plain numbers.
unsafe impl<T: Send> Send for PinnedBuffer<T> {}
// SAFETY: a shared reference only gives shared access to the elements; the pending uses are behind
// a mutex.
unsafe impl<T: Sync> Sync for PinnedBuffer<T> {}

impl<T: Element> PinnedBuffer<T> {
    pub(super) fn new(context: &Arc<Context>, len: usize) -> Result<Self> {
        let bytes = bytes_of::<T>(len)?;
        context.enter()?;
        let mut address = std::ptr::null_mut();
        let portable = sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: the pointer is to a living address. The memory is for all contexts.
        let code = unsafe { sys::cuMemHostAlloc(&raw mut address, bytes.max(1), portable) };
        check_alloc("cuMemHostAlloc", code, bytes)?;
        // SAFETY: there are that many bytes, and zero is a valid value of every element type.
        unsafe { address.cast::<u8>().write_bytes(0, bytes) };
        let none = Error::Driver {
            call: "cuMemHostAlloc",
            message: "there is no address".to_owned(),
        };
        Ok(PinnedBuffer {
            context: context.clone(),
            // Pages are aligned for every element type.
            values: NonNull::new(address.cast()).ok_or(none)?,
            len,
            last_uses: LastUses::default(),
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

    /// Returns the elements. Blocks until pending writes have finished.
    ///
    /// # Errors
    /// [`Error::Driver`] if that work failed.
    pub fn as_slice(&self) -> Result<&[T]> {
        self.last_uses.wait(false)?;
        // SAFETY: there are that many elements, and nothing writes them: earlier writes have
        // finished, and later writes need the buffer exclusively.
        Ok(unsafe { std::slice::from_raw_parts(self.values.as_ptr(), self.len) })
    }

    /// Returns the elements for modification. Blocks until pending uses have finished.
    ///
    /// # Errors
    /// [`Error::Driver`] if that work failed.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        self.last_uses.wait(true)?;
        // SAFETY: there are that many elements, and nothing uses them, for the same reason.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.values.as_ptr(), self.len) })
    }

    pub(super) fn address(&self) -> *mut T {
        self.values.as_ptr()
    }

    pub(super) fn input(&self) -> MemoryUse<'_> {
        MemoryUse {
            last_uses: &self.last_uses,
            memory: None,
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
}

impl<T> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        // After a failure nothing runs any more, so the result is ignored.
        let _ = self.last_uses.wait(true);
        if self.context.enter().is_ok() {
            // SAFETY: this owns the memory, and its uses have ended.
            let _ = unsafe { sys::cuMemFreeHost(self.values.as_ptr().cast()) };
        }
    }
}

/// Returns the size of `len` elements in bytes.
pub(super) fn bytes_of<T>(len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>()).ok_or(Error::Limit {
        what: "len",
        value: len,
        limit: usize::MAX / size_of::<T>(),
    })
}

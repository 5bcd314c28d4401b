//! Memory of the host that the GPU copies from and to by itself.

use super::buffer::Element;
use super::context::Context;
use super::driver::check_alloc;
use super::error::{Error, Result};
use super::queue::{Marks, Use};
use cudarc::driver::sys;
use std::ptr::NonNull;
use std::sync::Arc;

/// Values in page-locked memory ([`super::CudaDevice::pinned`]), which [`super::Stream`]s copy from and
/// to while the host does something else. Whoever looks at them waits until they are there.
///
/// The operating system cannot move or page out such memory: use it for what is on its way.
#[derive(Debug)]
pub struct PinnedBuffer<T> {
    context: Arc<Context>,
    values: NonNull<T>,
    len: usize,
    marks: Marks,
}

// SAFETY: it owns its values, which are plain numbers.
unsafe impl<T: Send> Send for PinnedBuffer<T> {}
// SAFETY: shared, it only gives out shared values; its marks are behind a mutex.
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
        // SAFETY: there are so many bytes, and zeros are values of every element.
        unsafe { address.cast::<u8>().write_bytes(0, bytes) };
        let none = Error::Driver {
            call: "cuMemHostAlloc",
            message: "there is no address".to_owned(),
        };
        Ok(PinnedBuffer {
            context: context.clone(),
            // Whole pages, and so aligned to all elements.
            values: NonNull::new(address.cast()).ok_or(none)?,
            len,
            marks: Marks::default(),
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

    /// The values, once everything that was asked to write them is done.
    ///
    /// # Errors
    /// [`Error::Driver`] if that failed.
    pub fn as_slice(&self) -> Result<&[T]> {
        self.marks.wait(false)?;
        // SAFETY: there are so many values, and nothing writes them: what did has ended, and what is
        // to needs the buffer exclusively.
        Ok(unsafe { std::slice::from_raw_parts(self.values.as_ptr(), self.len) })
    }

    /// The values, to be changed, once everything that was asked to use them is done.
    ///
    /// # Errors
    /// [`Error::Driver`] if that failed.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        self.marks.wait(true)?;
        // SAFETY: there are so many values, and nothing uses them, as above.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.values.as_ptr(), self.len) })
    }

    pub(super) fn address(&self) -> *mut T {
        self.values.as_ptr()
    }

    pub(super) fn input(&self) -> Use<'_> {
        Use {
            marks: &self.marks,
            memory: None,
            writes: false,
        }
    }

    /// Whoever calls it was lent the buffer exclusively.
    pub(super) fn output(&self) -> Use<'_> {
        Use {
            writes: true,
            ..self.input()
        }
    }
}

impl<T> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        // After a failure nothing runs any more.
        let _ = self.marks.wait(true);
        if self.context.enter().is_ok() {
            // SAFETY: the memory is its own, and what used it has ended.
            let _ = unsafe { sys::cuMemFreeHost(self.values.as_ptr().cast()) };
        }
    }
}

/// The size of so many values, as far as sizes go.
pub(super) fn bytes_of<T>(len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>()).ok_or(Error::Limit {
        what: "len",
        value: len,
        limit: usize::MAX / size_of::<T>(),
    })
}

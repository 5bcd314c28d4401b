//! Values that in browsers belong to the thread that made them, as JavaScript's do.

use std::mem::ManuallyDrop;
#[cfg(target_feature = "atomics")]
use std::thread::{self, ThreadId};

/// A value in a type that every thread may have. In WebAssembly only the thread that made it gets the value, natively every
/// thread. Without atomic instructions a module has one thread.
#[derive(Debug)]
pub(crate) struct OnOneThread<T> {
    value: ManuallyDrop<T>,
    #[cfg(target_feature = "atomics")]
    thread: ThreadId,
}

// SAFETY: only the thread that made the value reads or drops it.
#[cfg(target_arch = "wasm32")]
unsafe impl<T> Send for OnOneThread<T> {}
// SAFETY: as above.
#[cfg(target_arch = "wasm32")]
unsafe impl<T> Sync for OnOneThread<T> {}

impl<T> OnOneThread<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: ManuallyDrop::new(value),
            #[cfg(target_feature = "atomics")]
            thread: thread::current().id(),
        }
    }

    /// Returns the value; in WebAssembly `None` on any thread but the one that made it.
    pub(crate) fn get(&self) -> Option<&T> {
        self.is_here().then_some(&*self.value)
    }

    #[cfg(target_feature = "atomics")]
    fn is_here(&self) -> bool {
        thread::current().id() == self.thread
    }

    #[cfg(not(target_feature = "atomics"))]
    #[allow(clippy::unused_self)] // The other one compares threads.
    const fn is_here(&self) -> bool {
        true
    }
}

/// On another thread the value stays, since its thread alone can give it back.
impl<T> Drop for OnOneThread<T> {
    fn drop(&mut self) {
        if self.is_here() {
            // SAFETY: nothing reads the value after this.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

//! Running futures: blocking where threads may block, and spawning elsewhere.

mod clock;
#[cfg_attr(not(feature = "gpu"), allow(dead_code))]
// It holds values of a GPU and functions of JavaScript.
mod one_thread;
#[cfg(feature = "llm-core")]
mod pause;

pub(crate) use clock::seconds;
#[cfg(not(target_arch = "wasm32"))]
pub use native::block_on;
pub(crate) use one_thread::OnOneThread;
#[cfg(feature = "llm-core")]
pub(crate) use pause::{Slice, pause};

/// Whether this is a native target, where code may be larger for speed. Conditions on it fold, so that
/// WebAssembly's modules hold no native code.
pub(crate) const NATIVE: bool = sync_available();

/// Returns whether this target can block until a result is ready, and so has the blocking methods:
/// true on native targets, false in WebAssembly.
pub const fn sync_available() -> bool {
    cfg!(not(target_arch = "wasm32"))
}

/// Runs a future to its end on the browser's event loop, without waiting for it.
#[cfg(target_arch = "wasm32")]
pub fn spawn_local(future: impl Future<Output = ()> + 'static) {
    wasm_bindgen_futures::spawn_local(future);
}

/// Runs a future to its end without waiting for it: on the browser's event loop, or on native
/// targets on a new thread.
///
/// # Panics
/// If the operating system cannot make a thread.
///
/// ```
/// let (sender, receiver) = std::sync::mpsc::channel();
/// relampago::runtime::spawn_local(async move { sender.send(42).unwrap() });
/// assert_eq!(receiver.recv().unwrap(), 42);
/// ```
#[cfg(not(target_arch = "wasm32"))]
pub fn spawn_local(future: impl Future<Output = ()> + Send + 'static) {
    std::thread::spawn(move || block_on(future));
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use std::cell::Cell;

    thread_local! {
        /// The depth of nested [`block_on`] calls on this thread.
        static BLOCKING: Cell<usize> = const { Cell::new(0) };
    }

    /// Decrements the depth when `block_on` ends, also by a panic of the future.
    struct BlockingGuard;

    impl Drop for BlockingGuard {
        fn drop(&mut self) {
            BLOCKING.set(BLOCKING.get() - 1);
        }
    }

    /// Blocks this thread until a future completes.
    ///
    /// Futures of this crate poll the GPU themselves inside this function. On other executors a
    /// watching thread polls it for them.
    pub fn block_on<F: Future>(future: F) -> F::Output {
        BLOCKING.set(BLOCKING.get() + 1);
        let _leave = BlockingGuard;
        pollster::block_on(future)
    }

    /// Returns whether the current thread is inside [`block_on`], so that it may block on the GPU.
    pub(crate) fn is_blocking() -> bool {
        BLOCKING.get() > 0
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use native::is_blocking;

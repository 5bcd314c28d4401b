//! Running futures: blocking where threads may block, spawning where they may not.

#[cfg(not(target_arch = "wasm32"))]
pub use native::block_on;

/// Whether this target can wait for a result without returning to an event loop, and so has
/// the synchronous methods. True natively, false in WebAssembly.
pub const fn sync_available() -> bool {
    cfg!(not(target_arch = "wasm32"))
}

/// Runs a future to its end on the browser's event loop, without waiting for it.
#[cfg(target_arch = "wasm32")]
pub fn spawn_local(future: impl Future<Output = ()> + 'static) {
    wasm_bindgen_futures::spawn_local(future);
}

/// Runs a future to its end without waiting for it: on the browser's event loop, and natively
/// on a thread of its own.
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
        /// How many [`block_on`] calls this thread is in.
        static BLOCKING: Cell<usize> = const { Cell::new(0) };
    }

    /// Leaves `block_on`, also by a panic of the future.
    struct Leave;

    impl Drop for Leave {
        fn drop(&mut self) {
            BLOCKING.set(BLOCKING.get() - 1);
        }
    }

    /// Waits for a future on this thread.
    ///
    /// Futures of this crate poll the GPU themselves while they are waited for here, which
    /// spares them the watching thread that they need on other executors.
    pub fn block_on<F: Future>(future: F) -> F::Output {
        BLOCKING.set(BLOCKING.get() + 1);
        let _leave = Leave;
        pollster::block_on(future)
    }

    /// Whether the current thread waits in [`block_on`], so that it may as well wait for the GPU.
    pub(crate) fn is_blocking() -> bool {
        BLOCKING.get() > 0
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use native::is_blocking;

//! A model's passes where there is one thread.

/// The caller's thread.
#[derive(Debug)]
pub(in crate::llm) struct Threads;

impl Threads {
    pub(in crate::llm) fn new(_: usize) -> Self {
        Self
    }

    /// Runs a pass.
    #[allow(clippy::unused_self)] // The other one has threads.
    pub(super) fn run<T>(&self, pass: impl FnOnce() -> T) -> T {
        pass()
    }
}

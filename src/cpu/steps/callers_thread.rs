//! A model's passes on the caller's thread: where there is one thread, and in WebAssembly, where that thread is one of
//! those that share the work.

use crate::simd::Cpu;

/// The threads that share a pass.
#[derive(Debug)]
pub(super) struct Threads {
    count: usize,
}

impl Threads {
    pub(super) fn new(cpu: Cpu) -> Self {
        Self { count: cpu.threads }
    }

    /// Runs a part of a pass with the number of its threads.
    pub(super) fn run<T>(&self, _sequence: u64, part: impl FnOnce(usize) -> T) -> T {
        part(self.count)
    }
}

//! A model's passes where there is one thread.

use crate::simd::Cpu;

/// The caller's thread.
#[derive(Debug)]
pub(super) struct Threads;

impl Threads {
    pub(super) fn new(_: Cpu) -> Self {
        Self
    }

    /// Runs a part of a pass with the number of its threads.
    #[allow(clippy::unused_self)] // The other one has threads.
    pub(super) fn run<T>(&self, _sequence: u64, part: impl FnOnce(usize) -> T) -> T {
        part(1)
    }
}

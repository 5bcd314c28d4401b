//! Passes on threads of rayon's pool, which share each product among them in microseconds. Any other thread sleeps while
//! the pool works and is woken after each product: two threads would answer no faster than one.

use std::sync::{Mutex, PoisonError};

/// Returns whether a pass with so many threads should run on a thread of the pool: it takes most of them, and is not on
/// one yet.
pub(super) fn is_wanted(threads: usize) -> bool {
    let is_most = threads > 1 && 2 * threads > rayon::current_num_threads();
    is_most && rayon::current_thread_index().is_none()
}

/// Runs a pass on a thread of the pool, after those of other threads. A thread that waits for a part of its product takes
/// up what else there is to do, so a second pass would run on top of the first one's stack.
pub(super) fn run<T: Send>(pass: impl FnOnce() -> T + Send) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    rayon::scope(|_| pass())
}

//! An allocator that counts the memory of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

pub(crate) struct Counting;

/// The memory that a function allocated, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allocated {
    /// The largest allocation.
    pub(crate) largest: usize,
    /// The most memory at a time beyond that of before.
    pub(crate) peak: usize,
}

impl Allocated {
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            largest: self.largest.max(other.largest),
            peak: self.peak.max(other.peak),
        }
    }
}

thread_local! {
    /// Below zero where a thread frees memory of before, or of another thread.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static ALLOCATED: Cell<Allocated> = const { Cell::new(Allocated { largest: 0, peak: 0 }) };
}

/// Runs a function, and returns its result with the memory that it allocated in this thread.
pub(crate) fn measured<T>(run: impl FnOnce() -> T) -> (T, Allocated) {
    LIVE.set(0);
    ALLOCATED.set(Allocated::default());
    let result = run();
    (result, ALLOCATED.get())
}

fn count(more: usize, less: usize) {
    // At a thread's end its counters are gone.
    let live = LIVE.try_with(|live| {
        live.set(live.get() + more as isize - less as isize);
        live.get().max(0) as usize
    });
    let peak = live.unwrap_or_default();
    let counted = Allocated {
        largest: more,
        peak,
    };
    let _ = ALLOCATED.try_with(|all| all.set(all.get().max(counted)));
}

// SAFETY: the system's allocator does everything; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promise is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promise is the system's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's promise is the system's.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller's promise is the system's.
        unsafe { System.realloc(memory, layout, size) }
    }
}

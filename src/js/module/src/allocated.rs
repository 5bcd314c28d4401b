//! Counts the bytes that are in use. JavaScript's collector knows nothing of this memory, and finalizers run only between
//! tasks. Scripts use this number to leave a task in time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use wasm_bindgen::prelude::wasm_bindgen;

struct Counting {
    bytes: AtomicUsize,
}

#[global_allocator]
static ALLOCATOR: Counting = Counting {
    bytes: AtomicUsize::new(0),
};

/// The bytes of all allocations that were not freed.
#[wasm_bindgen(js_name = allocatedBytes)]
pub fn allocated_bytes() -> usize {
    ALLOCATOR.bytes.load(Relaxed)
}

impl Counting {
    /// Counts an allocation unless it failed.
    fn counted(&self, memory: *mut u8, layout: Layout) -> *mut u8 {
        if !memory.is_null() {
            self.bytes.fetch_add(layout.size(), Relaxed);
        }
        memory
    }
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.counted(unsafe { System.alloc(layout) }, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.counted(unsafe { System.alloc_zeroed(layout) }, layout)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        self.bytes.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let moved = unsafe { System.realloc(memory, layout, size) };
        if !moved.is_null() {
            self.bytes
                .fetch_add(size.wrapping_sub(layout.size()), Relaxed);
        }
        moved
    }
}

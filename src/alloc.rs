//! Memory for elements: fallible allocations, and scratch memory cached by each thread.

#[cfg(all(target_arch = "wasm32", feature = "js"))]
pub(crate) mod js_array;
pub(crate) mod scratch;

use std::mem::MaybeUninit;

use crate::error::{Error, Result};

/// Returns a vector of `len` zeros, or [`Error::OutOfMemory`] where `vec!` would abort. The
/// operating system's zero pages are not written, so the first thread that writes to a page waits
/// for it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn try_zeros(len: usize) -> Result<Vec<f32>> {
    let bytes = bytes(len);
    let layout = std::alloc::Layout::array::<f32>(len);
    let layout = layout.map_err(|_| Error::OutOfMemory { bytes })?;
    if len == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout is not empty, and that of so many values, whose alignment it has; zero bits
    // are 0.0.
    #[allow(clippy::cast_ptr_alignment)]
    unsafe {
        let values = std::alloc::alloc_zeroed(layout).cast::<f32>();
        if values.is_null() {
            return Err(Error::OutOfMemory { bytes });
        }
        let values = std::ptr::slice_from_raw_parts_mut(values, len);
        Ok(Box::from_raw(values).into_vec())
    }
}

/// Returns a vector of `len` zeros, or [`Error::OutOfMemory`] where `vec!` would abort.
#[cfg(target_arch = "wasm32")]
pub(crate) fn try_zeros(len: usize) -> Result<Vec<f32>> {
    let mut values = try_reserved(len)?;
    values.resize(len, 0.0);
    Ok(values)
}

/// Returns a vector of `len` elements that `write` fills, which is faster than zeroing new memory
/// first.
///
/// # Safety
/// `write` must initialise every element if it succeeds.
#[cfg(any(relampago_threads, feature = "js"))]
pub(crate) unsafe fn try_written(
    len: usize,
    write: impl FnOnce(&mut [MaybeUninit<f32>]) -> Result<()>,
) -> Result<Vec<f32>> {
    let mut values = try_reserved(len)?;
    write(&mut values.spare_capacity_mut()[..len])?;
    // SAFETY: the caller's promise; there is room for them.
    unsafe { values.set_len(len) };
    Ok(values)
}

/// Returns a slice as uninitialised memory.
///
/// # Safety
/// Only initialised elements may be written to it.
pub(crate) unsafe fn as_places(values: &mut [f32]) -> &mut [MaybeUninit<f32>] {
    // SAFETY: the same layout, and the caller's promise.
    unsafe { &mut *(std::ptr::from_mut(values) as *mut [MaybeUninit<f32>]) }
}

/// Returns the size of `len` elements in bytes, saturating.
fn bytes(len: usize) -> u64 {
    (len as u64).saturating_mul(4)
}

/// Makes a vector `len` elements long; new ones are 0.
#[cfg(feature = "llm-core")]
pub(crate) fn try_resize(values: &mut Vec<f32>, len: usize) -> Result<()> {
    if let Some(more) = len.checked_sub(values.len()) {
        let reserved = values.try_reserve_exact(more);
        reserved.map_err(|_| Error::OutOfMemory { bytes: bytes(len) })?;
    }
    values.resize(len, 0.0);
    Ok(())
}

/// Returns an empty vector with capacity for `len` elements.
pub(crate) fn try_reserved(len: usize) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    let bytes = bytes(len);
    let reserved = values.try_reserve_exact(len);
    reserved.map_err(|_| Error::OutOfMemory { bytes })?;
    Ok(values)
}

//! The NVIDIA driver: found at run time, initialised once, with its codes turned into errors.

use super::error::{Error, Result};
use cudarc::driver::sys;
use std::ffi::CStr;
use std::sync::OnceLock;

/// The oldest driver version that has every function called here.
const OLDEST: i32 = 12_000;

/// Checks that there is a driver and initialises it. Every other function of the driver must be
/// called after this: cudarc panics if the library is missing.
pub(super) fn init() -> Result<()> {
    static READY: OnceLock<Result<()>> = OnceLock::new();
    READY.get_or_init(try_init).clone()
}

fn try_init() -> Result<()> {
    let no_driver = |reason: String| Error::NoDriver { reason };
    // SAFETY: this only opens the library, whose initialisers have no preconditions.
    if !unsafe { sys::is_culib_present() } {
        return Err(no_driver("its library cannot be opened".to_owned()));
    }
    // SAFETY: the library is there, and `cuInit` may be called at any time.
    let code = unsafe { sys::cuInit(0) };
    check("cuInit", code).map_err(|error| no_driver(error.to_string()))?;
    let mut version = 0;
    // SAFETY: the pointer is to a living integer.
    check("cuDriverGetVersion", unsafe {
        sys::cuDriverGetVersion(&raw mut version)
    })?;
    if version < OLDEST {
        let [has, needs] = [version, OLDEST].map(|v| format!("{}.{}", v / 1000, v % 1000 / 10));
        return Err(no_driver(format!(
            "it is for CUDA {has}, and {needs} is needed"
        )));
    }
    Ok(())
}

/// Returns the driver's version: 12040 is CUDA 12.4.
pub(super) fn version() -> Result<i32> {
    init()?;
    let mut version = 0;
    // SAFETY: the driver is there, and the pointer is to a living integer.
    let code = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    check("cuDriverGetVersion", code)?;
    Ok(version)
}

/// Converts a driver code to a result.
pub(super) fn check(call: &'static str, code: sys::CUresult) -> Result<()> {
    if code == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut text = std::ptr::null();
    // SAFETY: the driver writes the address of a constant string, or null for a code that it
    // does not know.
    let message = unsafe {
        let _ = sys::cuGetErrorString(code, &raw mut text);
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    let message = message.unwrap_or_else(|| format!("{code:?}"));
    Err(Error::Driver { call, message })
}

/// Converts the code of a call that allocates `bytes` to a result.
pub(super) fn check_alloc(call: &'static str, code: sys::CUresult, bytes: usize) -> Result<()> {
    if code == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        let bytes = bytes as u64;
        return Err(Error::OutOfMemory { bytes });
    }
    check(call, code)
}

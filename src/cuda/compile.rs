//! Compiles PTX to machine code with the driver's compiler, and caches the result on disk.

use super::cache;
use super::context::Context;
use super::driver::{check, version};
use super::error::{Error, Result};
use cudarc::driver::sys;
use std::ffi::c_void;
use std::path::PathBuf;

/// Returns the machine code of a PTX text for this GPU.
pub(super) fn cubin(context: &Context, kernel: &str, text: &str) -> Result<Vec<u8>> {
    let file = cache_file(context, text)?;
    if let Some(code) = file.as_deref().and_then(cache::read) {
        return Ok(code);
    }
    let code = compile(context, kernel, text)?;
    // A cache that cannot be written is no error.
    if let Some(file) = file {
        let _ = cache::write(&file, &code);
    }
    Ok(code)
}

/// Returns the cache file for a text on this GPU model with this driver, or `None` without a folder
/// for caches.
fn cache_file(context: &Context, text: &str) -> Result<Option<PathBuf>> {
    let (major, minor) = context.capability;
    let key = format!("{} {major}.{minor} {}\n{text}", context.name, version()?);
    Ok(cache::folder().map(|folder| folder.join(cache::name(&key))))
}

/// The driver's linker, which also compiles PTX.
struct Link(sys::CUlinkState);

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: the state was made by `cuLinkCreate` and is destroyed once.
        let _ = unsafe { sys::cuLinkDestroy(self.0) };
    }
}

fn compile(context: &Context, kernel: &str, text: &str) -> Result<Vec<u8>> {
    context.enter()?;
    let mut log = vec![0u8; 16 * 1024];
    let mut options = [
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    // The size option is passed and returned by value in the pointer.
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), log.len() as *mut c_void];
    let mut state = std::ptr::null_mut();
    // SAFETY: both arrays have two entries; they and the log live until the link is destroyed.
    check("cuLinkCreate", unsafe {
        sys::cuLinkCreate_v2(2, options.as_mut_ptr(), values.as_mut_ptr(), &raw mut state)
    })?;
    let link = Link(state);
    let compiled = link_text(&link, text);
    drop(link);
    compiled.map_err(|error| {
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        Error::Compile {
            kernel: kernel.to_owned(),
            log: format!("{error}\n{}", String::from_utf8_lossy(&log[..end])),
            text: text.to_owned(),
        }
    })
}

fn link_text(link: &Link, text: &str) -> Result<Vec<u8>> {
    let mut source = text.as_bytes().to_vec();
    source.push(0);
    // SAFETY: the source has that many bytes and ends with a zero; there are no options.
    check("cuLinkAddData", unsafe {
        sys::cuLinkAddData_v2(
            link.0,
            sys::CUjitInputType::CU_JIT_INPUT_PTX,
            source.as_mut_ptr().cast(),
            source.len(),
            c"relampago".as_ptr(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    })?;
    let (mut code, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: both pointers are valid for writes.
    check("cuLinkComplete", unsafe {
        sys::cuLinkComplete(link.0, &raw mut code, &raw mut bytes)
    })?;
    // SAFETY: the driver's code has that many bytes and lives as long as the link.
    Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), bytes) }.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::CudaDevice;
    use relampago_ptx::{GemmKernel, Kernel as _, PtxModule};

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn a_second_compilation_comes_from_the_cache() {
        let device = CudaDevice::open(0).expect("an NVIDIA GPU");
        let context = device.context();
        let built = GemmKernel::tiled().build(device.target()).unwrap();
        let module = PtxModule::new(device.target()).with(built).unwrap();
        // Another text in each process: nothing is cached for it yet.
        let text = format!("{}\n// {}\n", module.emit(), std::process::id());
        let file = cache_file(context, &text).unwrap();
        let file = file.expect("a folder for caches");
        assert_eq!(cache::read(&file), None);
        let code = cubin(context, "gemm", &text).unwrap();
        assert_eq!(cache::read(&file), Some(code));
        // Marked code comes back only if nothing is compiled.
        cache::write(&file, b"from the cache").unwrap();
        assert_eq!(cubin(context, "gemm", &text).unwrap(), b"from the cache");
        std::fs::remove_file(file).unwrap();
    }
}

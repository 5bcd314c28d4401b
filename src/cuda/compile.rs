//! Text to machine code: by the driver's compiler the first time, from a file after that.

use super::context::Context;
use super::driver::{check, version};
use super::error::{Error, Result};
use cudarc::driver::sys;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// The machine code of a text for this GPU.
pub(super) fn cubin(context: &Context, kernel: &str, text: &str) -> Result<Vec<u8>> {
    let file = cache_file(context, text)?;
    if let Some(code) = file.as_deref().and_then(|file| fs::read(file).ok())
        && code.starts_with(b"\x7fELF")
    {
        return Ok(code);
    }
    let code = compile(context, kernel, text)?;
    // A cache that cannot be written only costs time.
    if let Some(file) = file {
        let _ = store(&file, &code);
    }
    Ok(code)
}

/// The file for a text on this model of GPU with this driver; none where there is no folder for
/// caches.
fn cache_file(context: &Context, text: &str) -> Result<Option<PathBuf>> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .or_else(|| absolute("LOCALAPPDATA"));
    let (major, minor) = context.capability;
    let key = format!("{} {major}.{minor} {}\n{text}", context.name, version()?);
    let name = format!("{:016x}{:016x}.cubin", fnv1a(&key, 0), fnv1a(&key, 1));
    Ok(folder.map(|folder| folder.join("relampago/cubin").join(name)))
}

/// FNV-1a (Fowler, Noll and Vo), from one of several starts: not for secrets, but the same on
/// every machine.
fn fnv1a(text: &str, start: u64) -> u64 {
    let hash = 0xcbf2_9ce4_8422_2325 ^ start;
    text.bytes().fold(hash, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Written beside its place and moved there whole, so that a half one is never found.
fn store(file: &Path, code: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let partial = file.with_extension(format!("{}.partial", process::id()));
    fs::write(&partial, code)?;
    fs::rename(partial, file)
}

/// The driver's linker, which compiles PTX on its way.
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
    // The size goes in, and comes back, in the pointer's place.
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
    // SAFETY: the source has so many bytes, the last of them zero; there are no options.
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
    // SAFETY: both pointers are to living places.
    check("cuLinkComplete", unsafe {
        sys::cuLinkComplete(link.0, &raw mut code, &raw mut bytes)
    })?;
    // SAFETY: the driver's code has so many bytes and lives as long as the link.
    Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), bytes) }.to_vec())
}

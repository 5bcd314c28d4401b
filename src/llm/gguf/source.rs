//! Where a file's bytes are.

#[cfg(not(target_arch = "wasm32"))]
use super::invalid;
#[cfg(not(target_arch = "wasm32"))]
use crate::error::Result;

/// The bytes of a file.
#[derive(Debug)]
pub(super) enum Source {
    Bytes(Vec<u8>),
    #[cfg(not(target_arch = "wasm32"))]
    Map(memmap2::Mmap),
}

impl Source {
    /// Maps a file.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn open(path: &std::path::Path) -> Result<Self> {
        let fault = |error: std::io::Error| invalid(error.to_string(), path.display().to_string());
        let file = std::fs::File::open(path).map_err(fault)?;
        // SAFETY: the map is read only; `Gguf::open` tells callers that the file must not change.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(fault)?;
        Ok(Self::Map(map))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            #[cfg(not(target_arch = "wasm32"))]
            Self::Map(map) => map,
        }
    }
}

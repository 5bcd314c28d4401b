//! Where a file's bytes are.

/// The bytes of a file, in memory or mapped into it.
pub(super) struct Source(Box<dyn AsRef<[u8]> + Send + Sync>);

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({} bytes)", self.bytes().len())
    }
}

impl Source {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self(Box::new(bytes))
    }

    /// Maps a file.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn open(path: &std::path::Path) -> crate::error::Result<Self> {
        let fault =
            |error: std::io::Error| super::invalid(error.to_string(), path.display().to_string());
        let file = std::fs::File::open(path).map_err(fault)?;
        // SAFETY: the map is read only; `Gguf::open` tells callers that the file must not change.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(fault)?;
        Ok(Self(Box::new(map)))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

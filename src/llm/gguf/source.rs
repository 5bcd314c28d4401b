//! Where a file's bytes are.

/// The bytes of a file, in memory or mapped into it, or those at its beginning.
pub(super) struct Source {
    bytes: Box<dyn AsRef<[u8]> + Send + Sync>,
    /// The size of the whole file, which may exceed a WebAssembly module's memory.
    len: u64,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({} bytes)", self.bytes().len())
    }
}

impl Source {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u64;
        Self::head(bytes, len)
    }

    /// The first bytes of a file of `len` bytes.
    pub(super) fn head(bytes: Vec<u8>, len: u64) -> Self {
        Self {
            len: len.max(bytes.len() as u64),
            bytes: Box::new(bytes),
        }
    }

    /// Maps a file.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn open(path: &std::path::Path) -> crate::error::Result<Self> {
        let unreadable = |error| crate::error::Error::file(path, &error);
        let file = std::fs::File::open(path).map_err(unreadable)?;
        // SAFETY: the map is read only; `Gguf::open` tells callers that the file must not change.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(unreadable)?;
        Ok(Self {
            len: map.len() as u64,
            bytes: Box::new(map),
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    /// The size of the whole file in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the end of the file is missing.
    pub(super) fn is_head(&self) -> bool {
        (self.bytes().len() as u64) < self.len
    }
}

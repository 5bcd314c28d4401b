//! The source of a file's bytes.

use std::collections::BTreeMap;
use std::ops::Range;

/// The bytes of a file, in memory or mapped into it, or those at its beginning.
pub(super) struct Source {
    bytes: Box<dyn AsRef<[u8]> + Send + Sync>,
    /// The size of the whole file, which may exceed a WebAssembly module's memory.
    len: u64,
    /// Bytes behind these, where the rest of the file is not in memory.
    pieces: Pieces,
}

/// Pieces of a file by their positions.
#[derive(Debug, Default)]
pub(in crate::llm) struct Pieces(BTreeMap<u64, Vec<u8>>);

impl Pieces {
    pub(in crate::llm) fn insert(&mut self, position: u64, bytes: Vec<u8>) {
        self.0.insert(position, bytes);
    }

    /// Returns a range of one piece.
    pub(in crate::llm) fn get(&self, range: Range<u64>) -> Option<&[u8]> {
        let (position, bytes) = self.0.range(..=range.start).next_back()?;
        part(bytes, range.start - position..range.end - position)
    }

    /// Drops the bytes of the piece at a position behind its first ones.
    pub(in crate::llm) fn cut(&mut self, position: u64, len: usize) {
        if let Some(bytes) = self.0.get_mut(&position) {
            // In place, they would stay in the middle of memory that other pieces need as a whole.
            *bytes = bytes[..len.min(bytes.len())].to_vec();
        }
    }
}

/// Returns a range of bytes; `None` beyond their end.
fn part(bytes: &[u8], range: Range<u64>) -> Option<&[u8]> {
    bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
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
            pieces: Pieces::default(),
        }
    }

    /// Adds pieces of a file of `len` bytes. The rest of the file is not in memory.
    pub(super) fn add_pieces(&mut self, pieces: Pieces, len: u64) {
        self.pieces = pieces;
        self.len = len;
    }

    /// Returns a range of the file, if it is in memory.
    pub(super) fn slice(&self, range: Range<u64>) -> Option<&[u8]> {
        part(self.bytes(), range.clone()).or_else(|| self.pieces.get(range))
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
            pieces: Pieces::default(),
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
        self.pieces.0.is_empty() && (self.bytes().len() as u64) < self.len
    }

    /// Returns whether parts of the file are not in memory, since a GPU has their weights.
    pub(super) fn is_partial(&self) -> bool {
        !self.pieces.0.is_empty()
    }
}

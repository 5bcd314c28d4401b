//! The reader of GGUF files, versions 2 and 3.
//!
//! Metadata and the table of tensors are parsed when a file is opened; strings, arrays and weights stay where they are
//! in the file. Memory grows only with the actual content of the file.

mod cursor;
mod head;
mod source;
mod split;
mod tensors;
mod typed;
mod value;
mod writer;

use crate::error::{Error, Result};
#[cfg(all(target_arch = "wasm32", feature = "js-llm"))]
pub(crate) use head::HeadProgress;
pub(crate) use head::HeadReader;
pub(super) use source::Pieces;
use source::Source;
use std::collections::HashMap;
pub use tensors::TensorInfo;
pub(super) use typed::{described, misfit};
use value::Stored;
pub use value::{Array, Value};
pub use writer::GgufWriter;

/// Creates an error that names a place in the file.
pub(super) fn invalid(what: impl Into<String>, place: impl Into<String>) -> Error {
    Error::InvalidModel {
        what: what.into(),
        place: place.into(),
    }
}

/// A GGUF file: its metadata and its tensors.
///
/// ```
/// use relampago::llm::Gguf;
///
/// let error = Gguf::from_bytes(b"GGUF".to_vec()).unwrap_err();
/// assert_eq!(error.code(), "INVALID_MODEL");
/// ```
#[derive(Debug)]
pub struct Gguf {
    /// The file, or the parts that the model is split into.
    sources: Vec<Source>,
    version: u32,
    /// Metadata in the file's order, that of the first part.
    metadata: Vec<(String, Stored)>,
    keys: HashMap<String, usize>,
    tensors: Vec<TensorInfo>,
    names: HashMap<String, usize>,
}

impl Gguf {
    /// Reads a file that is in memory.
    ///
    /// # Errors
    /// `InvalidModel` says what is wrong, and where.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        Self::from_parts(vec![bytes])
    }

    /// Maps a file into memory and reads it. The file must not change while it is open.
    ///
    /// If a model is split into files, such as `model-00001-of-00003.gguf`, this is the first one; the others lie
    /// beside it.
    ///
    /// # Errors
    /// `File` if a file cannot be read; `InvalidModel` says what is wrong with its content.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let paths = split::paths(path.as_ref());
        let sources = paths.iter().map(|path| Source::open(path));
        Self::parse(sources.collect::<Result<_>>()?)
    }

    /// Reads a model that is split into several files, in their order.
    ///
    /// # Errors
    /// `InvalidModel` says what is wrong, and where: parts that are missing, in another order or of another model, too.
    pub fn from_parts(parts: Vec<Vec<u8>>) -> Result<Self> {
        Self::parse(parts.into_iter().map(Source::new).collect())
    }

    /// Reads the metadata and the table of tensors of a model from the first bytes of each of its files, which come with
    /// the file's size and have all that stands before the weights. There are no weights.
    ///
    /// # Errors
    /// `LimitExceeded` if more bytes of a file are needed, `InvalidModel` as for whole files.
    pub fn from_heads(heads: Vec<(Vec<u8>, u64)>) -> Result<Self> {
        let heads = heads.into_iter();
        Self::parse(heads.map(|(bytes, len)| Source::head(bytes, len)).collect())
    }

    fn parse(sources: Vec<Source>) -> Result<Self> {
        let mut heads = Vec::new();
        for (index, source) in sources.iter().enumerate() {
            let head = HeadReader::read_all(source.bytes(), source.len());
            heads.push(head.map_err(|error| split::in_part(error, index, sources.len()))?);
        }
        split::check(&heads)?;
        let (mut start, mut tensors) = (0u64, Vec::new());
        for (head, source) in heads.iter_mut().zip(&sources) {
            let moved = head.tensors.drain(..).map(|tensor| tensor.moved(start));
            tensors.extend(moved);
            start = start.saturating_add(source.len());
        }
        let names = unique(tensors.iter().map(TensorInfo::name), "tensor")?;
        let missing = || invalid("there is no file", "part 1");
        let first = heads.into_iter().next().ok_or_else(missing)?;
        Ok(Self {
            sources,
            version: first.version,
            metadata: first.metadata,
            keys: first.keys,
            tensors,
            names,
        })
    }

    /// The version of the format, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The keys of the metadata, in the file's order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.iter().map(|(key, _)| key.as_str())
    }

    /// The value of a metadata key.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        let (_, stored) = self.metadata.get(*self.keys.get(key)?)?;
        Some(stored.value(self.sources.first()?.bytes()))
    }

    /// The tensors, in the file's order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of a name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(*self.names.get(name)?)
    }

    /// The blocks of a tensor of this file.
    pub fn data(&self, tensor: &TensorInfo) -> &[u8] {
        self.slice(tensor.range())
    }

    /// Returns the position of the first tensor.
    pub(crate) fn weights_start(&self) -> u64 {
        let starts = self.tensors.iter().map(|tensor| tensor.range().start);
        starts.min().unwrap_or_default()
    }

    /// Returns the first `most` bytes of a tensor, or all of them if it has fewer.
    pub(super) fn beginning(&self, tensor: &TensorInfo, most: usize) -> &[u8] {
        let start = tensor.range().start;
        self.slice(start..start + tensor.bytes().min(most as u64))
    }

    /// Adds pieces to the first bytes of a file of `len` bytes. The rest of the file is not in memory.
    pub(super) fn add_pieces(&mut self, pieces: Pieces, len: u64) {
        if let [source] = &mut self.sources[..] {
            source.add_pieces(pieces, len);
        }
    }

    /// Returns the weights of a tensor of this file.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn dequantized(&self, tensor: &TensorInfo) -> Result<Vec<f32>> {
        let len = usize::try_from(tensor.len()).unwrap_or(usize::MAX);
        let mut weights = crate::alloc::try_zeros(len)?;
        let kind = tensor.weight_type();
        kind.dequantize(self.data(tensor), &mut weights);
        Ok(weights)
    }

    /// A range of the file, or of its parts one after the other; none of two parts.
    pub(super) fn slice(&self, range: std::ops::Range<u64>) -> &[u8] {
        let std::ops::Range { mut start, mut end } = range;
        for source in &self.sources {
            if start < source.len() {
                return source.slice(start..end).unwrap_or_default();
            }
            start -= source.len();
            end -= source.len();
        }
        &[]
    }

    /// The size of the file in bytes, or of all its parts.
    pub fn bytes(&self) -> u64 {
        let sizes = self.sources.iter().map(Source::len);
        sizes.fold(0, u64::saturating_add)
    }

    /// Returns whether weights are missing, since a GPU has them.
    pub(super) fn is_partial(&self) -> bool {
        self.sources.iter().any(Source::is_partial)
    }

    /// Returns whether weights are missing, since only the beginnings of the files were read.
    pub(super) fn is_head(&self) -> bool {
        self.sources.iter().any(Source::is_head)
    }
}

/// The positions of names that must differ.
fn unique<'a>(names: impl Iterator<Item = &'a str>, kind: &str) -> Result<HashMap<String, usize>> {
    let mut positions = HashMap::new();
    for (position, name) in names.enumerate() {
        if positions.insert(name.to_owned(), position).is_some() {
            return Err(invalid("the name occurs twice", format!("{kind} `{name}`")));
        }
    }
    Ok(positions)
}

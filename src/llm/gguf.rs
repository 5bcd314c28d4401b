//! The reader of GGUF files, versions 2 and 3.
//!
//! Metadata and the table of tensors are parsed when a file is opened; strings, arrays and
//! weights stay where they are in the file. Memory grows only with what the file holds.

mod cursor;
mod source;
mod tensors;
mod value;
mod writer;

use crate::error::{Error, Result};
use cursor::Cursor;
use source::Source;
use std::collections::HashMap;
pub use tensors::TensorInfo;
use value::Stored;
pub use value::{Array, Value};
pub use writer::GgufWriter;

/// An error about a place in the file.
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
    source: Source,
    version: u32,
    /// Metadata in the file's order.
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
        Self::parse(Source::new(bytes))
    }

    /// Maps a file into memory and reads it. The file must not change while it is open.
    ///
    /// # Errors
    /// `InvalidModel` if the file cannot be opened, or says what is wrong with it.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::parse(Source::open(path.as_ref())?)
    }

    fn parse(source: Source) -> Result<Self> {
        let mut cursor = Cursor::new(source.bytes());
        let version = header(&mut cursor)?;
        let tensor_count = cursor.count("the number of tensors", tensors::LEAST_BYTES)?;
        let metadata_count = cursor.count("the number of metadata entries", value::LEAST_BYTES)?;
        let metadata = value::read_all(&mut cursor, metadata_count)?;
        let keys = unique(metadata.iter().map(|(key, _)| key.as_str()), "metadata key")?;
        let alignment = alignment(&metadata, &keys)?;
        let tensors = tensors::read_all(&mut cursor, tensor_count, alignment)?;
        let names = unique(tensors.iter().map(TensorInfo::name), "tensor")?;
        Ok(Self {
            source,
            version,
            metadata,
            keys,
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
        Some(stored.value(self.source.bytes()))
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

    /// Returns the weights of a tensor of this file.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn dequantized(&self, tensor: &TensorInfo) -> Result<Vec<f32>> {
        let mut weights = crate::alloc::try_zeros(tensor.len())?;
        let kind = tensor.weight_type();
        kind.dequantize(self.data(tensor), &mut weights);
        Ok(weights)
    }

    /// A part of the file.
    pub(super) fn slice(&self, range: std::ops::Range<usize>) -> &[u8] {
        self.source.bytes().get(range).unwrap_or_default()
    }

    /// The size of the file in bytes.
    pub fn bytes(&self) -> usize {
        self.source.bytes().len()
    }
}

fn header(cursor: &mut Cursor<'_>) -> Result<u32> {
    if cursor.take(4)? != b"GGUF" {
        return Err(invalid("the file does not begin with `GGUF`", "byte 0"));
    }
    let version = cursor.u32()?;
    match version {
        2 | 3 => Ok(version),
        _ if matches!(version.swap_bytes(), 1..=3) => {
            Err(invalid("the file is big-endian", "byte 4"))
        }
        _ => Err(invalid(
            format!("version {version}, but 2 and 3 are supported"),
            "byte 4",
        )),
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

fn alignment(metadata: &[(String, Stored)], keys: &HashMap<String, usize>) -> Result<usize> {
    const KEY: &str = "general.alignment";
    let Some(&position) = keys.get(KEY) else {
        return Ok(32);
    };
    let alignment = metadata[position].1.unsigned();
    let valid = alignment.filter(|value| value.is_power_of_two() && (1..=1 << 16).contains(value));
    let fault = || {
        invalid(
            "not a power of two up to 65536",
            format!("metadata `{KEY}`"),
        )
    };
    Ok(valid.ok_or_else(fault)? as usize)
}

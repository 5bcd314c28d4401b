//! A writer of GGUF files.

use super::tensors::{MOST_NAME, size};
use super::value::{ARRAY, BOOL, STRING};
use crate::error::{Error, Result};
use crate::tensor::ggml::WeightType;
use std::collections::{BTreeMap, BTreeSet};

/// The types of numbers in metadata.
const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;

/// The alignment of tensors, which is the format's default, and the key of another one.
const ALIGNMENT: usize = 32;
const ALIGNMENT_KEY: &str = "general.alignment";

/// A GGUF file of version 3 in the making, for models and adapters that a program computes. Metadata that is set
/// again replaces the earlier value. Tensors are aligned to 32 bytes, so `general.alignment` is left out.
///
/// ```
/// use relampago::llm::{Gguf, GgufWriter, WeightType};
///
/// let mut writer = GgufWriter::default();
/// writer.string("general.architecture", "llama");
/// writer.f32_tensor("output_norm.weight", &[2], &[1.0, 1.0])?;
/// let file = Gguf::from_bytes(writer.finish())?;
/// assert_eq!(file.tensors()[0].weight_type(), WeightType::F32);
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct GgufWriter {
    /// The type and value of each key.
    metadata: BTreeMap<String, Vec<u8>>,
    /// The table of tensors, and their data.
    table: Vec<u8>,
    names: BTreeSet<String>,
    data: Vec<u8>,
}

fn string(text: &str) -> impl Iterator<Item = u8> {
    let len = text.len() as u64;
    len.to_le_bytes().into_iter().chain(text.bytes())
}

impl GgufWriter {
    fn entry(&mut self, key: &str, kind: u32, value: impl IntoIterator<Item = u8>) {
        // Metadata copied from another file may state that file's alignment.
        if key != ALIGNMENT_KEY {
            let kind = kind.to_le_bytes().into_iter();
            self.metadata
                .insert(key.to_owned(), kind.chain(value).collect());
        }
    }

    fn array(&mut self, key: &str, kind: u32, len: usize, values: impl Iterator<Item = u8>) {
        let header = kind.to_le_bytes().into_iter();
        let header = header.chain((len as u64).to_le_bytes());
        self.entry(key, ARRAY, header.chain(values));
    }

    /// Sets a string of the metadata.
    pub fn string(&mut self, key: &str, value: &str) {
        self.entry(key, STRING, string(value));
    }

    /// Sets an unsigned integer of the metadata.
    pub fn unsigned(&mut self, key: &str, value: u32) {
        self.entry(key, U32, value.to_le_bytes());
    }

    /// Sets a number of the metadata.
    pub fn float(&mut self, key: &str, value: f32) {
        self.entry(key, F32, value.to_le_bytes());
    }

    /// Sets a truth value of the metadata.
    pub fn boolean(&mut self, key: &str, value: bool) {
        self.entry(key, BOOL, [u8::from(value)]);
    }

    /// Sets an array of strings of the metadata.
    pub fn strings(&mut self, key: &str, values: &[impl AsRef<str>]) {
        let bytes = values.iter().flat_map(|value| string(value.as_ref()));
        self.array(key, STRING, values.len(), bytes);
    }

    /// Sets an array of integers of the metadata.
    pub fn integers(&mut self, key: &str, values: &[i32]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.array(key, I32, values.len(), bytes);
    }

    /// Sets an array of numbers of the metadata.
    pub fn floats(&mut self, key: &str, values: &[f32]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.array(key, F32, values.len(), bytes);
    }

    /// Adds a tensor of weights in blocks. `shape` has the innermost dimension first: a matrix's columns, then its
    /// rows.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that another tensor has or that has not 1 to 64 bytes, and for a shape that has not 1
    /// to 4 dimensions of at least 1, has no whole blocks, or overflows. `LengthMismatch` if `blocks` has another number
    /// of bytes than the shape needs.
    pub fn tensor(
        &mut self,
        name: &str,
        shape: &[usize],
        kind: WeightType,
        blocks: &[u8],
    ) -> Result<()> {
        self.check(name, shape, kind, ("blocks", blocks.len(), 1))?;
        self.names.insert(name.to_owned());
        self.table.extend(string(name));
        self.table.extend((shape.len() as u32).to_le_bytes());
        let shape = shape.iter().flat_map(|&len| (len as u64).to_le_bytes());
        self.table.extend(shape);
        self.table.extend(kind.id().to_le_bytes());
        self.table.extend((self.data.len() as u64).to_le_bytes());
        self.data.extend(blocks);
        let len = self.data.len().next_multiple_of(ALIGNMENT);
        self.data.resize(len, 0);
        Ok(())
    }

    /// Adds a tensor of `f32`.
    ///
    /// # Errors
    /// The errors of [`GgufWriter::tensor`]. `LengthMismatch` if `values` has another number of elements than the shape.
    pub fn f32_tensor(&mut self, name: &str, shape: &[usize], values: &[f32]) -> Result<()> {
        let given = ("values", values.len(), size_of::<f32>());
        self.check(name, shape, WeightType::F32, given)?;
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.tensor(name, shape, WeightType::F32, &bytes)
    }

    /// Checks a tensor, given the number of its parts and the size of each in bytes.
    fn check(
        &self,
        name: &str,
        shape: &[usize],
        kind: WeightType,
        (what, actual, part): (&'static str, usize, usize),
    ) -> Result<()> {
        if !(1..=MOST_NAME).contains(&name.len()) || self.names.contains(name) {
            let requirement = format!("1 to {MOST_NAME} bytes that no other tensor is named by");
            return Err(Error::invalid("name", format!("`{name}`"), requirement));
        }
        let dimensions = (1..=4).contains(&shape.len()) && !shape.contains(&0);
        let bytes = dimensions.then(|| size(shape, kind)).flatten();
        let Some(bytes) = bytes.and_then(|bytes| usize::try_from(bytes).ok()) else {
            let requirement = format!(
                "1 to 4 dimensions of at least 1 that do not overflow, with rows of whole blocks of {kind:?}"
            );
            return Err(Error::invalid("shape", format!("{shape:?}"), requirement));
        };
        let expected = bytes / part;
        if actual != expected {
            return Err(Error::LengthMismatch {
                what,
                expected,
                actual,
                reason: "",
            });
        }
        Ok(())
    }

    /// Returns the file.
    pub fn finish(self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend((self.names.len() as u64).to_le_bytes());
        file.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in self.metadata {
            file.extend(string(&key));
            file.extend(value);
        }
        file.extend(self.table);
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
        file.extend(self.data);
        file
    }
}

//! The reader of a file's head: its metadata and its table of tensors.

use super::cursor::{Cursor, short};
use super::tensors::{self, TensorInfo};
use super::value::{self, OpenArray, Read, Stored};
use super::{invalid, unique};
use crate::error::{Error, Result};
use std::collections::HashMap;

/// The metadata of a file, and its table of tensors.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) version: u32,
    pub(super) metadata: Vec<(String, Stored)>,
    pub(super) keys: HashMap<String, usize>,
    pub(super) tensors: Vec<TensorInfo>,
}

impl Head {
    /// Returns the value of a key that is a non-negative integer.
    pub(super) fn unsigned(&self, key: &str) -> Option<u64> {
        let (_, stored) = self.metadata.get(*self.keys.get(key)?)?;
        stored.unsigned()
    }
}

/// The result of [`HeadReader::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadProgress {
    /// At least this many bytes of the file's beginning are needed to go on.
    Needs(u64),
    /// All bytes before the weights are there, and were read.
    Complete,
}

/// A reader that takes the first bytes of a file as they arrive: each call gets all bytes so far and continues after
/// the last complete value.
#[derive(Debug)]
pub(crate) struct HeadReader {
    /// The size of the whole file.
    file: u64,
    /// The position of the next value.
    at: usize,
    /// The number of bytes without which the next value is incomplete.
    needed: u64,
    stage: Stage,
    /// The numbers of entries of the metadata and of tensors.
    counts: [usize; 2],
    head: Head,
}

/// The value that a reader reads next.
#[derive(Debug)]
enum Stage {
    Header,
    Metadata,
    /// The next elements of an array of the metadata, with its key.
    Array(String, OpenArray),
    Tensors,
    /// The bytes between the table of tensors and the first tensor.
    Padding,
    Complete,
}

impl HeadReader {
    /// Creates a reader of a file of `file` bytes; `u64::MAX` if its size is not known.
    pub(crate) fn new(file: u64) -> Self {
        Self {
            file,
            at: 0,
            needed: 0,
            stage: Stage::Header,
            counts: [0; 2],
            head: Head::default(),
        }
    }

    /// Reads on. `bytes` begin with those of the call before.
    ///
    /// # Errors
    /// `InvalidModel` says what is wrong with the head, and where. All further calls return an error, too.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<HeadProgress> {
        if (bytes.len() as u64) < self.needed {
            return Ok(HeadProgress::Needs(self.needed));
        }
        while !matches!(self.stage, Stage::Complete) {
            let mut cursor = Cursor::of_file(bytes, self.file, self.at);
            match self.read_value(&mut cursor) {
                Ok(()) => self.at = cursor.at(),
                Err(Error::LimitExceeded { value, .. }) => {
                    self.needed = value;
                    return Ok(HeadProgress::Needs(value));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(HeadProgress::Complete)
    }

    /// Returns the head of a file whose first bytes are `bytes`.
    ///
    /// # Errors
    /// `InvalidModel` as for [`HeadReader::read`]; `LimitExceeded` if more bytes are needed.
    pub(super) fn read_all(bytes: &[u8], file: u64) -> Result<Head> {
        let mut reader = Self::new(file);
        match reader.read(bytes)? {
            HeadProgress::Complete => Ok(reader.head),
            HeadProgress::Needs(needed) => Err(short(needed, bytes.len())),
        }
    }

    /// Reads the next value. After an error it is still the next one.
    fn read_value(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let head = &mut self.head;
        match &mut self.stage {
            Stage::Header => {
                head.version = version(cursor)?;
                let tensors = cursor.count("the number of tensors", tensors::LEAST_BYTES)?;
                let entries = cursor.count("the number of metadata entries", value::LEAST_BYTES)?;
                self.counts = [entries, tensors];
                self.stage = Stage::Metadata;
            }
            Stage::Metadata if head.metadata.len() == self.counts[0] => {
                head.keys = unique(head.metadata.iter().map(|(key, _)| &**key), "metadata key")?;
                self.stage = Stage::Tensors;
            }
            Stage::Metadata => match value::read(cursor)? {
                (key, Read::Value(value)) => head.metadata.push((key, value)),
                (key, Read::Array(array)) => self.stage = Stage::Array(key, array),
            },
            Stage::Array(key, array) => {
                // A vocabulary is most of a head: its strings are not read again.
                if array.read_element(cursor)? {
                    return Ok(());
                }
                let value = array.stored(cursor);
                head.metadata.push((std::mem::take(key), value));
                self.stage = Stage::Metadata;
            }
            Stage::Tensors => {
                let alignment = alignment(head)?;
                if head.tensors.len() < self.counts[1] {
                    head.tensors.push(tensors::read(cursor, alignment)?);
                    return Ok(());
                }
                tensors::place(&mut head.tensors, cursor, alignment)?;
                self.stage = Stage::Padding;
            }
            Stage::Padding => {
                let starts = head.tensors.iter().map(|tensor| tensor.range().start);
                let padding = starts.min().unwrap_or_default();
                let padding = padding.saturating_sub(cursor.at() as u64);
                cursor.take(usize::try_from(padding).unwrap_or(usize::MAX))?;
                self.stage = Stage::Complete;
            }
            Stage::Complete => {}
        }
        Ok(())
    }
}

/// Reads the magic bytes of the format and the version.
fn version(cursor: &mut Cursor<'_>) -> Result<u32> {
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

fn alignment(head: &Head) -> Result<u64> {
    const KEY: &str = "general.alignment";
    if !head.keys.contains_key(KEY) {
        return Ok(32);
    }
    let alignment = head.unsigned(KEY);
    let valid = alignment.filter(|value| value.is_power_of_two() && (1..=1 << 16).contains(value));
    let fault = || {
        invalid(
            "not a power of two up to 65536",
            format!("metadata `{KEY}`"),
        )
    };
    valid.ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use super::{HeadProgress, HeadReader};
    use crate::llm::GgufWriter;

    /// Returns a file with a value of each form.
    fn file() -> Vec<u8> {
        let mut writer = GgufWriter::default();
        writer.string("general.architecture", "llama");
        writer.strings("tokenizer.ggml.tokens", &["a", "", "long enough", "ü"]);
        writer.floats("tokenizer.ggml.scores", &[0.0, 1.0, 2.0, 3.0]);
        writer.f32_tensor("a.weight", &[4, 3], &[0.5; 12]).unwrap();
        writer.finish()
    }

    #[test]
    fn heads_are_read_alike_in_pieces_of_every_length() {
        let bytes = file();
        let len = bytes.len() as u64;
        let whole = HeadReader::read_all(&bytes, len).unwrap();
        let weights = whole.tensors[0].range().start as usize;
        for piece in 1..weights + 2 {
            let mut reader = HeadReader::new(len);
            let mut given = 0;
            while let HeadProgress::Needs(needed) = reader.read(&bytes[..given]).unwrap() {
                assert!(needed as usize > given && needed as usize <= weights);
                given = (given + piece).min(bytes.len());
            }
            assert!((weights..weights + piece).contains(&given), "{given}");
            let read = reader.head;
            assert_eq!(
                (read.version, read.keys),
                (whole.version, whole.keys.clone())
            );
            assert_eq!(read.tensors, whole.tensors);
            assert_eq!(
                format!("{:?}", read.metadata),
                format!("{:?}", whole.metadata)
            );
        }
    }

    #[test]
    fn a_reader_that_gets_what_it_needs_takes_no_weights() {
        let bytes = file();
        let mut reader = HeadReader::new(u64::MAX);
        let mut given = 0;
        while let HeadProgress::Needs(needed) = reader.read(&bytes[..given]).unwrap() {
            given = needed as usize;
        }
        assert_eq!(given as u64, reader.head.tensors[0].range().start);
    }

    #[test]
    fn damage_is_found_as_soon_as_its_bytes_arrive() {
        let mut bytes = file();
        bytes[4] = 9;
        let mut reader = HeadReader::new(bytes.len() as u64);
        assert!(matches!(
            reader.read(&bytes[..7]),
            Ok(HeadProgress::Needs(8))
        ));
        assert_eq!(
            reader.read(&bytes[..8]).unwrap_err().code(),
            "INVALID_MODEL"
        );
        assert_eq!(reader.read(&bytes).unwrap_err().code(), "INVALID_MODEL");
    }
}

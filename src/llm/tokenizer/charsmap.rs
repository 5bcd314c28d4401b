//! The replacements of characters that `SentencePiece` makes before it looks for tokens, as its files hold them: a trie in
//! an array of two interleaved ones (Aoe, "An efficient digital search algorithm by using a double-array structure",
//! 1989), in the layout of the library Darts-clone, and the new texts one after the other, each ended by a zero.

use crate::error::Result;
use crate::llm::Value;
use crate::llm::gguf::{Gguf, invalid};

const KEY: &str = "tokenizer.ggml.precompiled_charsmap";

/// Replacements of texts. Without any, all texts stay.
#[derive(Debug, Default)]
pub(super) struct CharsMap {
    units: Vec<u32>,
    replacements: String,
}

impl CharsMap {
    /// Reads the replacements of a file, if it has some.
    ///
    /// # Errors
    /// `InvalidModel` for values that are no bytes, a trie that is longer than all bytes, and texts that are not UTF-8.
    pub(super) fn new(file: &Gguf) -> Result<Self> {
        let Some(values) = file.array(KEY, "an array of bytes")? else {
            return Ok(Self::default());
        };
        let fault = |what: &str| invalid(what, format!("metadata `{KEY}`"));
        let bytes = values.iter().map(byte);
        let bytes: Option<Vec<u8>> = bytes.collect();
        let bytes = bytes.ok_or_else(|| fault("a value that is no byte"))?;
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let parts = bytes.split_first_chunk().and_then(|(len, rest)| {
            let len = u32::from_le_bytes(*len) as usize;
            rest.split_at_checked(len)
        });
        let (units, replacements) = parts.ok_or_else(|| fault("a trie beyond the end"))?;
        let (units, _) = units.as_chunks();
        let replacements = std::str::from_utf8(replacements);
        Ok(Self {
            units: units.iter().map(|unit| u32::from_le_bytes(*unit)).collect(),
            replacements: replacements
                .map_err(|_| fault("text that is not UTF-8"))?
                .to_owned(),
        })
    }

    /// Returns the text that replaces the beginning of a text, the longest for which there is a replacement or else the
    /// first character, and the length of that beginning. Both are empty at the end.
    pub(super) fn next<'a>(&'a self, text: &'a str) -> (&'a str, usize) {
        let first = text.chars().next().map_or(0, char::len_utf8);
        self.replacement(text).unwrap_or((&text[..first], first))
    }

    fn replacement(&self, text: &str) -> Option<(&str, usize)> {
        let mut node = offset(*self.units.first()?);
        let mut longest = None;
        for (index, byte) in text.bytes().enumerate() {
            node ^= usize::from(byte);
            let Some(&unit) = self
                .units
                .get(node)
                .filter(|&&unit| label(unit) == u32::from(byte))
            else {
                break;
            };
            node ^= offset(unit);
            if has_value(unit) {
                let value = self.units.get(node).map(|&unit| value(unit));
                longest = value.map(|value| (value, index + 1)).or(longest);
            }
        }
        let (start, len) = longest?;
        let replacement = self.replacements.get(start..)?;
        let end = replacement.find('\0').unwrap_or(replacement.len());
        // A trie that does not come from texts may end within a character.
        text.is_char_boundary(len)
            .then_some((&replacement[..end], len))
    }
}

/// The distance from a node to its children.
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 0x200) >> 6)) as usize
}

/// The byte that leads to a node; of the unit of a value no byte.
fn label(unit: u32) -> u32 {
    unit & 0x8000_00ff
}

fn has_value(unit: u32) -> bool {
    unit & 0x100 != 0
}

fn value(unit: u32) -> usize {
    (unit & 0x7fff_ffff) as usize
}

fn byte(value: Value<'_>) -> Option<u8> {
    match value {
        Value::Unsigned(value) => u8::try_from(value).ok(),
        Value::Signed(value) => match i8::try_from(value) {
            Ok(value) => Some(value.cast_unsigned()),
            Err(_) => u8::try_from(value).ok(),
        },
        _ => None,
    }
}

//! Text to tokens and back, from what a GGUF file holds.

mod bpe;
mod byte_level;
mod decode;
mod split;
mod vocabulary;

use super::Value;
use super::gguf::{Gguf, invalid};
use crate::error::Result;
use bpe::Merges;
pub(super) use decode::Utf8Stream;
use split::Pretokenizer;
use vocabulary::{Added, Vocabulary};

/// A tokenizer of byte-level pairs.
#[derive(Debug)]
pub(super) struct Tokenizer {
    vocabulary: Vocabulary,
    merges: Merges,
    splitter: Pretokenizer,
    /// The tokens of the 256 bytes, of which a file may leave some out.
    bytes: Vec<Option<u32>>,
    /// The token that begins every text, if the file asks for one.
    bos: Option<u32>,
}

impl Tokenizer {
    /// Reads the tokenizer of a file.
    pub(super) fn new(file: &Gguf) -> Result<Self> {
        let text = |key: &str| file.get(key).and_then(Value::as_str).unwrap_or_default();
        let model = text("tokenizer.ggml.model");
        if model != "gpt2" {
            let what = format!("a tokenizer of kind `{model}`, but only `gpt2` is supported");
            return Err(invalid(what, "metadata `tokenizer.ggml.model`"));
        }
        let splitter = Pretokenizer::new(text("tokenizer.ggml.pre"))?;
        let vocabulary = Vocabulary::new(file)?;
        let merges = Merges::new(file, &vocabulary)?;
        let bytes = byte_level::tokens(&vocabulary);
        let begins = file
            .get("tokenizer.ggml.add_bos_token")
            .and_then(Value::as_bool);
        let bos = begins
            .unwrap_or(false)
            .then(|| token_id(file, "bos"))
            .flatten()
            .filter(|&id| (id as usize) < vocabulary.len());
        Ok(Self {
            vocabulary,
            merges,
            splitter,
            bytes,
            bos,
        })
    }

    /// The number of tokens.
    pub(super) fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// The token that begins every text.
    pub(super) fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The token of this text, special ones included.
    pub(super) fn id(&self, text: &str) -> Option<u32> {
        self.vocabulary.id(text.as_bytes())
    }

    /// The tokens of a text. Control tokens are recognised in it only if `special` is true.
    pub(super) fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some((at, id, len)) = self.vocabulary.first_added(rest, special) {
            self.encode_plain(&rest[..at], &mut tokens)?;
            tokens.push(id);
            rest = &rest[at + len..];
        }
        self.encode_plain(rest, &mut tokens)?;
        Ok(tokens)
    }

    /// Appends a text's tokens. Bytes without a token are left out; nothing is merged across them.
    fn encode_plain(&self, text: &str, tokens: &mut Vec<u32>) -> Result<()> {
        for word in self.splitter.split(text)? {
            let bytes: Vec<Option<u32>> = word
                .bytes()
                .map(|byte| self.bytes[usize::from(byte)])
                .collect();
            for run in bytes.split(Option::is_none) {
                self.merges.merge(run.iter().flatten(), tokens);
            }
        }
        Ok(())
    }

    /// Appends the bytes of a token; those of control tokens only if `special` is true.
    pub(super) fn decode(&self, token: u32, special: bool, to: &mut Vec<u8>) {
        let Some(text) = self.vocabulary.text(token) else {
            return;
        };
        match self.vocabulary.added(token) {
            None => byte_level::decode(text, to),
            Some(Added::Control) if !special => {}
            Some(_) => to.extend_from_slice(text),
        }
    }
}

/// Returns the id that a file's metadata gives for a special token, such as `bos`.
pub(super) fn token_id(file: &Gguf, name: &str) -> Option<u32> {
    let id = file.get(&format!("tokenizer.ggml.{name}_token_id"))?;
    u32::try_from(id.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::byte_level;

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for byte in 0..=255u8 {
            let character = byte_level::character(byte);
            assert!(seen.insert(character));
            let (mut text, mut bytes) = ([0; 4], Vec::new());
            byte_level::decode(character.encode_utf8(&mut text).as_bytes(), &mut bytes);
            assert_eq!(bytes, [byte]);
        }
    }
}

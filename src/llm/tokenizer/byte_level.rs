//! Tokenizers of byte-level pairs, whose vocabularies write each byte as a character.
//!
//! Printable characters of Latin-1 stand for themselves; the other 68 bytes are U+0100 to U+0143
//! in order.

use super::bpe::Merges;
use super::split::Pretokenizer;
use super::vocabulary::{TokenKind, Vocabulary};
use crate::error::Result;
use crate::llm::gguf::Gguf;

/// The character of each byte.
const CHARACTERS: [char; 256] = characters();

const fn characters() -> [char; 256] {
    let mut characters = ['\0'; 256];
    let (mut byte, mut other) = (0, 0x100);
    while byte < 256 {
        characters[byte] = byte as u8 as char;
        if !matches!(byte as u8, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff) {
            // No value up to U+0143 is a surrogate.
            characters[byte] = match char::from_u32(other) {
                Some(character) => character,
                None => unreachable!(),
            };
            other += 1;
        }
        byte += 1;
    }
    characters
}

/// The byte of each character up to U+0143 that stands for one.
const BYTES: [Option<u8>; 0x144] = bytes();

const fn bytes() -> [Option<u8>; 0x144] {
    let mut bytes = [None; 0x144];
    let mut byte = 0;
    while byte < 256 {
        bytes[CHARACTERS[byte] as usize] = Some(byte as u8);
        byte += 1;
    }
    bytes
}

/// A tokenizer by byte-level BPE: it merges pairs of tokens, beginning with single bytes.
#[derive(Debug)]
pub(super) struct ByteLevel {
    merges: Merges,
    splitter: Pretokenizer,
    /// The tokens of the 256 bytes; a file may omit some.
    bytes: Vec<Option<u32>>,
}

impl ByteLevel {
    pub(super) fn new(file: &Gguf, vocabulary: &Vocabulary) -> Result<Self> {
        let name = file.text("tokenizer.ggml.pre")?;
        let token = |&character: &char| {
            let mut text = [0; 4];
            vocabulary.id(character.encode_utf8(&mut text).as_bytes())
        };
        Ok(Self {
            splitter: Pretokenizer::new(name.unwrap_or_default())?,
            merges: Merges::new(file, vocabulary)?,
            bytes: CHARACTERS.iter().map(token).collect(),
        })
    }

    /// Whether texts begin with a token if the file does not say so.
    pub(super) fn adds_bos(&self) -> bool {
        self.splitter.adds_bos()
    }

    /// Appends a text's tokens. Bytes without a token are left out; nothing is merged across them.
    pub(super) fn encode(
        &self,
        vocabulary: &Vocabulary,
        text: &str,
        to: &mut Vec<u32>,
    ) -> Result<()> {
        for word in self.splitter.split(text)? {
            if self.splitter.takes_whole_words()
                && let Some(token) = whole_word(vocabulary, word)
            {
                to.push(token);
                continue;
            }
            let tokens = word.bytes().map(|byte| self.bytes[usize::from(byte)]);
            let tokens: Vec<Option<u32>> = tokens.collect();
            for run in tokens.split(Option::is_none) {
                self.merges.merge(run.iter().flatten(), to);
            }
        }
        Ok(())
    }
}

/// The token that is a word, unless it is a control token.
fn whole_word(vocabulary: &Vocabulary, word: &str) -> Option<u32> {
    let text: String = word.bytes().map(|byte| CHARACTERS[byte as usize]).collect();
    let token = vocabulary.id(text.as_bytes())?;
    (vocabulary.kind(token) != TokenKind::Control).then_some(token)
}

/// Appends the bytes that a token's characters stand for.
pub(super) fn decode(text: &[u8], to: &mut Vec<u8>) {
    for character in String::from_utf8_lossy(text).chars() {
        if let Some(&Some(byte)) = BYTES.get(character as usize) {
            to.push(byte);
        } else {
            to.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHARACTERS, decode};

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for byte in 0..=255u8 {
            let character = CHARACTERS[usize::from(byte)];
            assert!(seen.insert(character));
            let (mut text, mut bytes) = ([0; 4], Vec::new());
            decode(character.encode_utf8(&mut text).as_bytes(), &mut bytes);
            assert_eq!(bytes, [byte]);
        }
        assert_eq!(CHARACTERS[usize::from(b' ')], 'Ġ');
    }
}

//! The tokens of a file: copied once into one piece of memory, found by hash.

use crate::error::Result;
use crate::llm::Value;
use crate::llm::gguf::{Gguf, invalid, misfit};
use std::hash::{BuildHasher, RandomState};

const KEY: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";

/// Tokens that end or structure texts, which some files describe as text.
const CONTROL: &[&str] = &[
    "</s>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<EOT>",
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
    "<|fim_pad|>",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<fim_prefix>",
    "<fim_suffix>",
    "<fim_middle>",
    "<fim_pad>",
    "<fim-prefix>",
    "<fim-suffix>",
    "<fim-middle>",
    "<fim-pad>",
    "<fim-repo>",
    "<PRE>",
    "<SUF>",
    "<MID>",
    "<PAD>",
    "<REPO>",
    "<reponame>",
];

/// All tokens.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// The tokens' texts one after the other.
    texts: Vec<u8>,
    /// Where each text ends.
    ends: Vec<u32>,
    kinds: Vec<TokenKind>,
    /// Open addressing: a token and one, or 0, at its text's hash or behind it.
    table: Vec<u32>,
    hasher: RandomState,
    /// The length of the longest text in bytes.
    longest: usize,
}

/// The meaning of a token's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Text in the writing of the tokenizer.
    Normal,
    /// Text without a token.
    Unknown,
    /// The structure of a conversation, for example.
    Control,
    /// Text as it is.
    UserDefined,
    /// A byte, written `<0x0A>`.
    Byte,
    /// Nothing.
    Unused,
}

impl TokenKind {
    fn new(number: Option<u64>) -> Self {
        match number {
            Some(1) => Self::Normal,
            Some(2) => Self::Unknown,
            Some(3) => Self::Control,
            Some(4) => Self::UserDefined,
            Some(6) => Self::Byte,
            _ => Self::Unused,
        }
    }
}

impl Vocabulary {
    pub(super) fn new(file: &Gguf) -> Result<Self> {
        let place = format!("metadata `{KEY}`");
        let requirement = "an array of 1 to 16 million tokens";
        let tokens = file.array(KEY, requirement)?;
        let tokens = tokens.filter(|tokens| !tokens.is_empty() && tokens.len() < 1 << 24);
        let tokens = tokens.ok_or_else(|| misfit(KEY, file.get(KEY), requirement))?;
        let mut vocabulary = Self {
            texts: Vec::new(),
            ends: Vec::with_capacity(tokens.len()),
            kinds: kinds(file, tokens.len())?,
            table: vec![0; (tokens.len() * 2).next_power_of_two()],
            hasher: RandomState::new(),
            longest: 0,
        };
        for token in tokens.iter() {
            let Value::String(text) = token else {
                return Err(invalid("a token that is no string", &place));
            };
            vocabulary.push(text)?;
        }
        for text in CONTROL {
            if let Some(id) = vocabulary.id(text.as_bytes()) {
                vocabulary.kinds[id as usize] = TokenKind::Control;
            }
        }
        Ok(vocabulary)
    }

    fn push(&mut self, text: &[u8]) -> Result<()> {
        self.texts.extend_from_slice(text);
        let end = u32::try_from(self.texts.len());
        let end =
            end.map_err(|_| invalid("more than 4 GB of tokens", format!("metadata `{KEY}`")))?;
        let id = self.ends.len() as u32;
        self.ends.push(end);
        self.longest = self.longest.max(text.len());
        let slot = self.slot(text);
        // The first of equal tokens counts.
        if self.table[slot] == 0 {
            self.table[slot] = id + 1;
        }
        Ok(())
    }

    /// Where the table has this text, or would have it.
    fn slot(&self, text: &[u8]) -> usize {
        let mask = self.table.len() - 1;
        let mut slot = self.hasher.hash_one(text) as usize & mask;
        while let Some(id) = self.table[slot].checked_sub(1) {
            if self.text(id) == text {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The token of a text.
    pub(super) fn id(&self, text: &[u8]) -> Option<u32> {
        if text.len() > self.longest {
            return None;
        }
        self.table[self.slot(text)].checked_sub(1)
    }

    /// A token's text, which is empty for a token beyond the vocabulary.
    pub(super) fn text(&self, id: u32) -> &[u8] {
        let end = |id: u32| self.ends.get(id as usize).map(|&end| end as usize);
        let range = end(id).map(|to| id.checked_sub(1).and_then(end).unwrap_or(0)..to);
        range.map_or(&[], |range| &self.texts[range])
    }

    /// A token's kind.
    pub(super) fn kind(&self, id: u32) -> TokenKind {
        let kind = self.kinds.get(id as usize);
        kind.copied().unwrap_or(TokenKind::Unused)
    }
}

/// The kinds of all tokens, which are normal if the file does not say otherwise.
fn kinds(file: &Gguf, len: usize) -> Result<Vec<TokenKind>> {
    let Some(types) = file.array_of_tokens(TYPES, len)? else {
        return Ok(vec![TokenKind::Normal; len]);
    };
    let kinds = types.iter().map(|kind| match kind {
        Value::Unsigned(_) | Value::Signed(_) => Some(TokenKind::new(kind.as_u64())),
        _ => None,
    });
    let kinds: Option<Vec<TokenKind>> = kinds.collect();
    kinds.ok_or_else(|| invalid("a type that is no integer", format!("metadata `{TYPES}`")))
}

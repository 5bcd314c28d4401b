//! The tokens of a file: copied once into one piece of memory, found by hash.

use crate::error::Result;
use crate::llm::Value;
use crate::llm::gguf::{Gguf, invalid};
use std::hash::{BuildHasher, RandomState};

const CONTROL: u64 = 3;
const USER_DEFINED: u64 = 4;
const KEY: &str = "tokenizer.ggml.tokens";

/// All tokens.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// The tokens' texts one after the other.
    texts: Vec<u8>,
    /// Where each text ends.
    ends: Vec<u32>,
    /// Open addressing: a token and one, or 0, at its text's hash or behind it.
    table: Vec<u32>,
    hasher: RandomState,
    /// The added tokens, the longest first.
    added: Vec<(u32, Added)>,
}

/// The kinds of tokens that are found in a text before it is split into words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Added {
    Control,
    UserDefined,
}

impl Vocabulary {
    pub(super) fn new(file: &Gguf) -> Result<Self> {
        let place = format!("metadata `{KEY}`");
        let tokens = file.get(KEY).and_then(Value::as_array);
        let tokens = tokens.filter(|tokens| !tokens.is_empty() && tokens.len() < 1 << 24);
        let tokens =
            tokens.ok_or_else(|| invalid("no array of up to 16 million tokens", &place))?;
        let mut vocabulary = Self {
            texts: Vec::new(),
            ends: Vec::new(),
            table: vec![0; (tokens.len() * 2).next_power_of_two()],
            hasher: RandomState::new(),
            added: Vec::new(),
        };
        for token in tokens.iter() {
            let Value::String(text) = token else {
                return Err(invalid("a token that is no string", &place));
            };
            vocabulary.push(text)?;
        }
        vocabulary.read_types(file)?;
        Ok(vocabulary)
    }

    fn push(&mut self, text: &[u8]) -> Result<()> {
        self.texts.extend_from_slice(text);
        let end = u32::try_from(self.texts.len());
        let end =
            end.map_err(|_| invalid("more than 4 GB of tokens", format!("metadata `{KEY}`")))?;
        let id = self.ends.len() as u32;
        self.ends.push(end);
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
            if self.text(id) == Some(text) {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn read_types(&mut self, file: &Gguf) -> Result<()> {
        let Some(types) = file.get("tokenizer.ggml.token_type") else {
            return Ok(());
        };
        let types = types.as_array().filter(|types| types.len() == self.len());
        let types = types.ok_or_else(|| {
            invalid(
                "not as many types as tokens",
                "metadata `tokenizer.ggml.token_type`",
            )
        })?;
        for (id, kind) in types.iter().enumerate() {
            let kind = match kind.as_u64() {
                Some(CONTROL) => Added::Control,
                Some(USER_DEFINED) => Added::UserDefined,
                _ => continue,
            };
            self.added.push((id as u32, kind));
        }
        let texts = |id: u32| self.text(id).unwrap_or_default();
        let mut added = self.added.clone();
        added.retain(|&(id, _)| !texts(id).is_empty());
        added.sort_by_key(|&(id, _)| std::cmp::Reverse(texts(id).len()));
        self.added = added;
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The token of a text.
    pub(super) fn id(&self, text: &[u8]) -> Option<u32> {
        self.table[self.slot(text)].checked_sub(1)
    }

    /// A token's text.
    pub(super) fn text(&self, id: u32) -> Option<&[u8]> {
        let end = *self.ends.get(id as usize)? as usize;
        let start = (id as usize)
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        self.texts.get(start..end)
    }

    /// Returns the kind of an added token, or `None` for any other token.
    pub(super) fn added(&self, id: u32) -> Option<Added> {
        let (_, kind) = self.added.iter().find(|(added, _)| *added == id)?;
        Some(*kind)
    }

    /// The first added token in a text, its position and its length; of several there the longest.
    /// Control tokens count only if `control` is true.
    pub(super) fn first_added(&self, text: &str, control: bool) -> Option<(usize, u32, usize)> {
        let tokens = self
            .added
            .iter()
            .filter(|(_, kind)| control || *kind != Added::Control);
        let found = tokens.filter_map(|&(id, _)| {
            let token = std::str::from_utf8(self.text(id)?).ok()?;
            Some((text.find(token)?, id, token.len()))
        });
        found.min_by_key(|&(at, _, len)| (at, std::cmp::Reverse(len)))
    }
}

//! Merging of pairs, those first that the file lists first.

use super::chain::Chain;
use super::vocabulary::Vocabulary;
use crate::error::Result;
use crate::llm::Value;
use crate::llm::gguf::{Gguf, invalid, misfit};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

const KEY: &str = "tokenizer.ggml.merges";

/// The rank and the result of each pair of tokens that may be merged.
#[derive(Debug)]
pub(super) struct Merges(HashMap<(u32, u32), (u32, u32)>);

impl Merges {
    pub(super) fn new(file: &Gguf, vocabulary: &Vocabulary) -> Result<Self> {
        let place = || format!("metadata `{KEY}`");
        let requirement = "an array of merges";
        let merges = file.array(KEY, requirement)?;
        let merges = merges.ok_or_else(|| misfit(KEY, None, requirement))?;
        let mut pairs = HashMap::with_capacity(merges.len());
        let mut joined = Vec::new();
        for (rank, merge) in merges.iter().enumerate() {
            let Value::String(text) = merge else {
                return Err(invalid("a merge that is no string", place()));
            };
            let space = text.iter().skip(1).position(|&byte| byte == b' ');
            let space =
                space.ok_or_else(|| invalid(format!("merge {rank} is no pair"), place()))? + 1;
            let (left, right) = (&text[..space], &text[space + 1..]);
            joined.clear();
            joined.extend_from_slice(left);
            joined.extend_from_slice(right);
            let ids = [left, right, &joined[..]].map(|text| vocabulary.id(text));
            if let [Some(left), Some(right), Some(both)] = ids {
                pairs.entry((left, right)).or_insert((rank as u32, both));
            }
        }
        Ok(Self(pairs))
    }

    /// Merges a word's tokens and appends the resulting tokens.
    pub(super) fn merge<'a>(&self, tokens: impl Iterator<Item = &'a u32>, to: &mut Vec<u32>) {
        let mut word = Chain::new(tokens.copied());
        let mut queue = BinaryHeap::new();
        for left in 1..word.len() {
            self.offer(&word, left - 1, &mut queue);
        }
        while let Some(Reverse((_, left, pair, both))) = queue.pop() {
            // A token of the pair may have become part of another one since.
            if word.pair(left) == Some(pair) {
                word.join(left, both);
                self.offer(&word, left, &mut queue);
                if let Some(before) = word.before(left) {
                    self.offer(&word, before, &mut queue);
                }
            }
        }
        to.extend(word.into_symbols());
    }

    fn offer(&self, word: &Chain<u32>, left: usize, queue: &mut BinaryHeap<Reverse<Candidate>>) {
        let Some(pair) = word.pair(left) else {
            return;
        };
        if let Some(&(rank, both)) = self.0.get(&pair) {
            queue.push(Reverse((rank, left, pair, both)));
        }
    }
}

/// The rank, the position of the left token, the pair and the merged token.
type Candidate = (u32, usize, (u32, u32), u32);

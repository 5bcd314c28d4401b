//! The unigram tokenizer of `SentencePiece` (Kudo, "Subword regularization", 2018): of all divisions of a text into tokens
//! the one whose scores have the highest sum.

use super::charsmap::CharsMap;
use super::sentencepiece::{SPACE, scores};
use super::vocabulary::{TokenKind, Vocabulary};
use crate::error::Result;
use crate::llm::gguf::{Gguf, misfit};

/// The score of a character without a token, below the lowest score of a token.
const UNKNOWN: f64 = -10.0;

/// A unigram tokenizer.
#[derive(Debug)]
pub(super) struct Unigram {
    charsmap: CharsMap,
    scores: Vec<f32>,
    /// The tokens of texts in the order of their texts, of equal texts the first only.
    sorted: Vec<u32>,
    unknown: u32,
    /// The score of a character without a token.
    unknown_score: f64,
    /// Whether a space is put before a text.
    adds_space: bool,
    /// Whether spaces at both ends and after spaces are left out.
    removes_spaces: bool,
}

impl Unigram {
    /// # Errors
    /// `InvalidModel` if the file has no unknown token, or settings that are damaged.
    pub(super) fn new(file: &Gguf, vocabulary: &Vocabulary, unknown: Option<u32>) -> Result<Self> {
        const KEY: &str = "tokenizer.ggml.unknown_token_id";
        let scores = scores(file, vocabulary.len())?;
        let of_text = |&id: &u32| vocabulary.kind(id) == TokenKind::Normal;
        let mut sorted: Vec<u32> = (0..vocabulary.len() as u32).filter(of_text).collect();
        let lowest = sorted.iter().map(|&id| f64::from(scores[id as usize]));
        let lowest = lowest.fold(0.0, f64::min);
        sorted.sort_by_key(|&id| (vocabulary.text(id), id));
        sorted.dedup_by_key(|id| vocabulary.text(*id));
        sorted.retain(|&id| !vocabulary.text(id).is_empty());
        Ok(Self {
            charsmap: CharsMap::new(file)?,
            scores,
            sorted,
            unknown: unknown
                .ok_or_else(|| misfit(KEY, file.get(KEY), "the token of unknown characters"))?,
            unknown_score: lowest + UNKNOWN,
            adds_space: file
                .truth("tokenizer.ggml.add_space_prefix")?
                .unwrap_or(true),
            removes_spaces: file
                .truth("tokenizer.ggml.remove_extra_whitespaces")?
                .unwrap_or(false),
        })
    }

    /// Whether a space is put before a text.
    pub(super) fn adds_space(&self) -> bool {
        self.adds_space
    }

    /// Appends the tokens of a text.
    pub(super) fn encode(&self, vocabulary: &Vocabulary, text: &str, to: &mut Vec<u32>) {
        let text = self.normalized(text);
        let best = self.best_ends(vocabulary, &text);
        let start = to.len();
        let mut end = text.len();
        while let Some(Best { token, from, .. }) = best.get(end).copied().flatten() {
            // Characters without tokens that follow each other are one token.
            if token != self.unknown || to[start..].last() != Some(&token) {
                to.push(token);
            }
            end = from;
        }
        to[start..].reverse();
    }

    /// Replaces characters by the file's rules, and spaces by U+2581.
    fn normalized(&self, text: &str) -> String {
        let (mut normalized, mut rest) = (String::new(), text);
        let mut after_space = self.removes_spaces;
        while !rest.is_empty() {
            let (mut next, len) = self.charsmap.next(rest);
            rest = &rest[len..];
            if after_space {
                next = next.trim_start_matches(' ');
            }
            if next.is_empty() {
                continue;
            }
            if normalized.is_empty() && self.adds_space {
                normalized.push(SPACE);
            }
            normalized.extend(next.chars().map(|c| if c == ' ' { SPACE } else { c }));
            after_space = self.removes_spaces && next.ends_with(' ');
        }
        if self.removes_spaces {
            normalized.truncate(normalized.trim_end_matches(SPACE).len());
        }
        normalized
    }

    /// Returns for each end of a token the best division up to it.
    fn best_ends(&self, vocabulary: &Vocabulary, text: &str) -> Vec<Option<Best>> {
        let mut best: Vec<Option<Best>> = vec![None; text.len() + 1];
        for (start, character) in text.char_indices() {
            let before = match best[start] {
                Some(best) => best.score,
                None if start == 0 => 0.0,
                None => continue,
            };
            let mut offer = |len: usize, token: u32, score: f64| {
                let (to, score) = (&mut best[start + len], before + score);
                if to.is_none_or(|to| score > to.score) {
                    *to = Some(Best {
                        score,
                        token,
                        from: start,
                    });
                }
            };
            let single = character.len_utf8();
            let mut has_single = false;
            self.prefixes(vocabulary, &text.as_bytes()[start..], |len, token| {
                has_single |= len == single;
                offer(len, token, self.scores[token as usize].into());
            });
            if !has_single {
                offer(single, self.unknown, self.unknown_score);
            }
        }
        best
    }

    /// Passes the length and the token of each token at the beginning of a text to a function, the shortest first.
    fn prefixes(&self, vocabulary: &Vocabulary, text: &[u8], mut each: impl FnMut(usize, u32)) {
        // All of these tokens begin with the bytes so far.
        let mut tokens = &self.sorted[..];
        for (index, byte) in text.iter().enumerate() {
            let at = |id: &u32| vocabulary.text(*id).get(index);
            tokens = &tokens[tokens.partition_point(|id| at(id) < Some(byte))..];
            tokens = &tokens[..tokens.partition_point(|id| at(id) <= Some(byte))];
            let Some(&first) = tokens.first() else {
                return;
            };
            if vocabulary.text(first).len() == index + 1 {
                each(index + 1, first);
            }
        }
    }
}

/// The last token of the best division up to a position.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    token: u32,
    /// Where the token begins.
    from: usize,
}

//! Tokenizers of `SentencePiece`: pairs of pieces are merged, those first whose piece has the highest
//! score. Characters without a piece become the tokens of their bytes.

use super::chain::Chain;
use super::vocabulary::{TokenKind, Vocabulary};
use crate::error::Result;
use crate::llm::Value;
use crate::llm::gguf::{Gguf, invalid};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Stands for a space in pieces.
pub(super) const SPACE: char = '\u{2581}';

/// A tokenizer of `SentencePiece`.
#[derive(Debug)]
pub(super) struct SentencePiece {
    /// The scores of the tokens.
    scores: Vec<f32>,
    /// The tokens of the 256 bytes; a file may omit some.
    bytes: Vec<Option<u32>>,
    /// The token of bytes that have none.
    unknown: Option<u32>,
    /// Whether a space is put before a text.
    adds_space: bool,
}

impl SentencePiece {
    pub(super) fn new(file: &Gguf, vocabulary: &Vocabulary, unknown: Option<u32>) -> Result<Self> {
        let adds_space = file.truth("tokenizer.ggml.add_space_prefix")?;
        Ok(Self {
            scores: scores(file, vocabulary.len())?,
            bytes: (0..=255).map(|byte| byte_token(vocabulary, byte)).collect(),
            unknown,
            adds_space: adds_space.unwrap_or(true),
        })
    }

    /// Whether a space is put before a text.
    pub(super) fn adds_space(&self) -> bool {
        self.adds_space
    }

    /// Appends the tokens of a text, which follows a special token or nothing if `first` is true.
    pub(super) fn encode(
        &self,
        vocabulary: &Vocabulary,
        text: &str,
        first: bool,
        to: &mut Vec<u32>,
    ) {
        let mut escaped = String::with_capacity(text.len() + SPACE.len_utf8());
        if first && self.adds_space {
            escaped.push(SPACE);
        }
        let spaced = |character| if character == ' ' { SPACE } else { character };
        escaped.extend(text.chars().map(spaced));
        for piece in self.merge(vocabulary, &escaped).into_symbols() {
            let piece = &escaped.as_bytes()[piece.start..piece.end];
            if let Some(token) = text_token(vocabulary, piece) {
                to.push(token);
            } else {
                let bytes = piece.iter().map(|&byte| self.bytes[usize::from(byte)]);
                to.extend(bytes.filter_map(|token| token.or(self.unknown)));
            }
        }
    }

    fn merge(&self, vocabulary: &Vocabulary, text: &str) -> Chain<Piece> {
        let characters = text.char_indices().map(|(start, character)| Piece {
            start,
            end: start + character.len_utf8(),
        });
        let mut pieces = Chain::new(characters);
        let mut queue = BinaryHeap::new();
        let offer = |pieces: &Chain<Piece>, left: usize, queue: &mut BinaryHeap<Candidate>| {
            let both = pieces.pair(left).map(|(a, b)| Piece {
                start: a.start,
                end: b.end,
            });
            let token = both.and_then(|both| {
                let token = text_token(vocabulary, &text.as_bytes()[both.start..both.end])?;
                Some((order(self.scores[token as usize]), Reverse(left), both))
            });
            queue.extend(token);
        };
        for left in 1..pieces.len() {
            offer(&pieces, left - 1, &mut queue);
        }
        while let Some((_, Reverse(left), both)) = queue.pop() {
            // A piece of the pair may have become part of another one since.
            let pair = pieces.pair(left);
            if pair.is_some_and(|(a, b)| (a.start, b.end) == (both.start, both.end)) {
                pieces.join(left, both);
                offer(&pieces, left, &mut queue);
                if let Some(before) = pieces.before(left) {
                    offer(&pieces, before, &mut queue);
                }
            }
        }
        pieces
    }
}

/// A part of the text by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    start: usize,
    end: usize,
}

/// The order of the score, the position of the left piece, and the merged piece.
type Candidate = (i32, Reverse<usize>, Piece);

/// An integer that orders scores as they are.
fn order(score: f32) -> i32 {
    // The sum makes a zero positive.
    let bits = (score + 0.0).to_bits() as i32;
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

/// Returns the token for a text. Tokens that stand for something else than their own text are excluded.
fn text_token(vocabulary: &Vocabulary, text: &[u8]) -> Option<u32> {
    let token = vocabulary.id(text)?;
    let kind = vocabulary.kind(token);
    (!matches!(
        kind,
        TokenKind::Control | TokenKind::Unknown | TokenKind::Byte
    ))
    .then_some(token)
}

/// Returns the scores of a file's tokens.
pub(super) fn scores(file: &Gguf, len: usize) -> Result<Vec<f32>> {
    const KEY: &str = "tokenizer.ggml.scores";
    let Some(scores) = file.array_of_tokens(KEY, len)? else {
        return Ok(vec![0.0; len]);
    };
    let scores = scores.iter().map(Value::as_f64);
    let scores: Option<Vec<f32>> = scores.map(|score| Some(score? as f32)).collect();
    scores.ok_or_else(|| invalid("a score that is no number", format!("metadata `{KEY}`")))
}

/// The token of a byte: `<0x0A>`, or else the byte itself.
fn byte_token(vocabulary: &Vocabulary, byte: u8) -> Option<u32> {
    let token = vocabulary.id(format!("<0x{byte:02X}>").as_bytes());
    token.or_else(|| vocabulary.id(&[byte]))
}

/// Appends the text of a piece.
pub(super) fn decode(text: &[u8], to: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(text);
    let spaced = |character| if character == SPACE { ' ' } else { character };
    to.extend(text.chars().map(spaced).collect::<String>().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn scores_are_ordered_as_numbers() {
        let scores = [
            f32::NEG_INFINITY,
            -3.5,
            -1e-9,
            0.0,
            1e-9,
            2.0,
            f32::INFINITY,
        ];
        assert!(scores.is_sorted_by(|&a, &b| order(a) < order(b)));
        assert_eq!(order(-0.0), order(0.0));
    }
}

//! `WordPiece`, the tokenizer of BERT (Devlin et al., 2019): words in lower case without accents, of which the longest
//! token at the beginning is taken, again and again. As llama.cpp's converter writes vocabularies, tokens that begin words
//! begin with U+2581, and the others have lost their `##`.

use super::sentencepiece::SPACE;
use super::split::{Stage, decomposed};
use super::vocabulary::{TokenKind, Vocabulary};
use crate::error::Result;
use crate::llm::gguf::invalid;

/// The number of characters from which on a word is unknown, whatever tokens there are.
const MOST_CHARACTERS: usize = 100;

/// Characters that are no text. Unassigned characters may be text in a later version of Unicode.
const CONTROL: &str = r"[\p{Cc}\p{Cf}\p{Co}\u{fffd}]";
/// Accents, after a text's decomposition.
const ACCENTS: &str = r"\p{Mn}";
/// Characters that are words of their own. Of ASCII these are all that are neither letters nor digits.
const PUNCTUATION: &str = r"[\p{P}$+<=>^`|~]";

/// A tokenizer of `WordPiece`.
#[derive(Debug)]
pub(super) struct WordPiece {
    control: Stage,
    accents: Stage,
    punctuation: Stage,
    unknown: u32,
}

impl WordPiece {
    /// Makes a tokenizer whose unknown words become a token, by default `[UNK]`.
    ///
    /// # Errors
    /// `InvalidModel` if neither the file nor the vocabulary has an unknown token.
    pub(super) fn new(vocabulary: &Vocabulary, unknown: Option<u32>) -> Result<Self> {
        let unknown = unknown.or_else(|| vocabulary.id(b"[UNK]"));
        let missing = || {
            let place = "metadata `tokenizer.ggml.unknown_token_id`";
            invalid("missing, and no token is `[UNK]`", place)
        };
        Ok(Self {
            control: Stage::new(CONTROL)?,
            accents: Stage::new(ACCENTS)?,
            punctuation: Stage::new(PUNCTUATION)?,
            unknown: unknown.ok_or_else(missing)?,
        })
    }

    /// Appends the tokens of a text.
    pub(super) fn encode(
        &self,
        vocabulary: &Vocabulary,
        text: &str,
        to: &mut Vec<u32>,
    ) -> Result<()> {
        let text = self.normalized(text)?;
        let mut parts = Vec::new();
        self.punctuation.split(&text, &mut parts)?;
        for word in parts.into_iter().flat_map(str::split_whitespace) {
            self.encode_word(vocabulary, word, to);
        }
        Ok(())
    }

    /// Returns a text in lower case, without accents and control characters, and with spaces around ideographs.
    fn normalized(&self, text: &str) -> Result<String> {
        let spaced = |character: char| {
            let space = is_ideograph(character).then_some(' ');
            // Of control characters these are white space.
            let character = match character {
                '\t' | '\n' | '\r' => ' ',
                other => other,
            };
            space.into_iter().chain([character]).chain(space)
        };
        let text: String = text.chars().flat_map(spaced).collect();
        let text = self.control.remove(&text)?;
        if text.is_ascii() {
            return Ok(text.to_ascii_lowercase());
        }
        let text = self.accents.remove(&decomposed(&text))?;
        Ok(text.chars().flat_map(char::to_lowercase).collect())
    }

    fn encode_word(&self, vocabulary: &Vocabulary, word: &str, to: &mut Vec<u32>) {
        let len = to.len();
        let marked = format!("{SPACE}{word}");
        let mut rest = &marked[..];
        if word.chars().count() > MOST_CHARACTERS {
            to.push(self.unknown);
            return;
        }
        while !rest.is_empty() {
            let Some((token, end)) = longest(vocabulary, rest) else {
                to.truncate(len);
                to.push(self.unknown);
                return;
            };
            to.push(token);
            rest = &rest[end..];
        }
    }
}

/// Returns the longest token at the beginning of a text, and its length in bytes.
fn longest(vocabulary: &Vocabulary, text: &str) -> Option<(u32, usize)> {
    let ends = text
        .char_indices()
        .rev()
        .map(|(start, last)| start + last.len_utf8());
    let mut tokens = ends.filter_map(|end| Some((vocabulary.id(&text.as_bytes()[..end])?, end)));
    tokens.find(|&(token, _)| vocabulary.kind(token) == TokenKind::Normal)
}

/// Returns whether a character is one of BERT's "Chinese characters", which are words of their own.
fn is_ideograph(character: char) -> bool {
    matches!(
        u32::from(character),
        0x4e00..=0x9fff
            | 0x3400..=0x4dbf
            | 0x2_0000..=0x2_a6df
            | 0x2_a700..=0x2_b73f
            | 0x2_b740..=0x2_b81f
            | 0x2_b920..=0x2_ceaf
            | 0xf900..=0xfaff
            | 0x2_f800..=0x2_fa1f
    )
}

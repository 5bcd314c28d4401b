//! Expressions by the crate `regex`.

use super::fault;
use crate::error::Result;
use regex::Regex;
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;

/// Returns a text in the canonical decomposition of Unicode, NFD.
pub(in crate::llm::tokenizer) fn decomposed(text: &str) -> String {
    text.nfd().collect()
}

/// An expression without its lookahead `\s+(?!\S)`, which the crate does not have. Instead, a run of white space is
/// shortened after it was found.
#[derive(Debug)]
pub(in crate::llm::tokenizer) struct Stage {
    regex: Regex,
    /// Whether the last character of white space belongs to the word after it.
    shortens: bool,
    /// Whether white space that ends with a line is never shortened.
    keeps_lines: bool,
}

impl Stage {
    pub(in crate::llm::tokenizer) fn new(expression: &str) -> Result<Self> {
        const LOOKAHEAD: &str = r"\s+(?!\S)";
        let plain = expression.replace(LOOKAHEAD, r"\s+");
        Ok(Self {
            regex: Regex::new(&plain).map_err(|error| fault(error.to_string()))?,
            shortens: expression.contains(LOOKAHEAD),
            keeps_lines: expression.contains(r"\s*[\r\n]+"),
        })
    }

    /// Returns a text without the matches in it.
    #[allow(clippy::unnecessary_wraps)] // JavaScript's engine can fail.
    pub(in crate::llm::tokenizer) fn remove(&self, text: &str) -> Result<String> {
        Ok(self.regex.replace_all(text, "").into_owned())
    }

    /// The length of the word at the beginning of a text, of which the expression found `len` bytes.
    fn word_len(&self, text: &str, len: usize) -> usize {
        let word = &text[..len];
        let last = word.chars().next_back().filter(|last| last.is_whitespace());
        let Some(last) = last.filter(|_| self.shortens && len < text.len()) else {
            return len;
        };
        let shorter = len - last.len_utf8();
        if shorter == 0 || (self.keeps_lines && matches!(last, '\r' | '\n')) {
            return len;
        }
        shorter
    }

    /// Appends the matches in a word and the texts between them.
    #[allow(clippy::unnecessary_wraps)] // JavaScript's engine can fail.
    pub(in crate::llm::tokenizer) fn split<'a>(
        &self,
        word: &'a str,
        to: &mut Vec<&'a str>,
    ) -> Result<()> {
        let mut end = 0;
        while let Some(found) = self.find(word, end) {
            if end < found.start {
                to.push(&word[end..found.start]);
            }
            to.push(&word[found.clone()]);
            end = found.end;
        }
        if end < word.len() {
            to.push(&word[end..]);
        }
        Ok(())
    }

    fn find(&self, word: &str, from: usize) -> Option<Range<usize>> {
        let found = self.regex.find_at(word, from)?;
        let len = self.word_len(&word[found.start()..], found.len());
        Some(found.start()..found.start() + len)
    }
}

//! Expressions by JavaScript's engine. The crate `regex` would be a sixth of the module's download.

use super::fault;
use crate::error::Result;
use js_sys::{Array, JsString, RegExp};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// A text, whose `split` may throw: expressions have a stack of a limited size.
    type Text;

    #[wasm_bindgen(method, catch)]
    fn split(this: &Text, by: &RegExp) -> std::result::Result<Array, JsValue>;
}

/// An expression in JavaScript's syntax, in a group, so that texts are split into matches and the texts between them.
#[derive(Debug)]
pub(in crate::llm::tokenizer) struct Stage {
    regex: RegExp,
}

impl Stage {
    #[allow(clippy::unnecessary_wraps)] // On other targets it can fail.
    pub(in crate::llm::tokenizer) fn new(expression: &str) -> Result<Self> {
        // JavaScript's own classes of white space have U+FEFF and lack U+0085.
        let expression = expression.replace(r"\s", r"\p{White_Space}");
        let expression = expression.replace(r"\S", r"\P{White_Space}");
        let regex = RegExp::new(&format!("({expression})"), "u");
        Ok(Self { regex })
    }

    /// Returns a text without the matches in it.
    pub(in crate::llm::tokenizer) fn remove(&self, text: &str) -> Result<String> {
        let text: Text = JsValue::from(text).unchecked_into();
        let parts = text.split(&self.regex);
        let parts = parts.map_err(|error| fault(format!("{error:?}")))?;
        // The texts between matches and the matches by turns.
        let between = parts.iter().step_by(2).filter_map(|part| part.as_string());
        Ok(between.collect())
    }

    /// Appends the matches in a word and the texts between them.
    pub(in crate::llm::tokenizer) fn split<'a>(
        &self,
        word: &'a str,
        to: &mut Vec<&'a str>,
    ) -> Result<()> {
        let text: Text = JsValue::from(word).unchecked_into();
        let parts = text.split(&self.regex);
        let parts = parts.map_err(|error| fault(format!("{error:?}")))?;
        let mut rest = word;
        for part in parts.iter() {
            let units = part.unchecked_into::<JsString>().length() as usize;
            let part;
            (part, rest) = rest.split_at(bytes_of(rest, units));
            if !part.is_empty() {
                to.push(part);
            }
        }
        Ok(())
    }
}

/// Returns a text in the canonical decomposition of Unicode, NFD.
pub(in crate::llm::tokenizer) fn decomposed(text: &str) -> String {
    JsString::from(text).normalize("NFD").into()
}

/// The bytes at the beginning of a text that UTF-16 writes in this many units.
fn bytes_of(text: &str, units: usize) -> usize {
    let mut left = units;
    let mut characters = text.chars();
    while left > 0 {
        left -= characters.next().map_or(left, char::len_utf16);
    }
    text.len() - characters.as_str().len()
}

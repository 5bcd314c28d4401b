//! Answers in pieces: reasoning, text and calls.

#[cfg(test)]
mod tests;

use super::call_format::{Arguments, CallFormat, PYTHON_TAG, Thinking};
use super::json_scanner::JsonScanner;
#[cfg(target_arch = "wasm32")]
use crate::error::Result;
use crate::llm::Delta;

/// Where the text of an answer goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the answer's first text.
    Start,
    Reasoning,
    /// After the end of the reasoning.
    Reasoned,
    Content,
    /// Before the name of a call, or after the last call.
    Between,
    Name,
    Json,
    /// Before the name of an argument in Python's form.
    Key,
    /// In its value.
    Value,
}

/// Divides the text of an answer, which fits the grammar of the same format.
#[derive(Debug)]
pub(crate) struct AnswerReader {
    format: Option<&'static CallFormat>,
    thinking: Option<Thinking>,
    state: State,
    /// Text that is not divided yet.
    held: String,
    /// The seed of ids.
    seed: u64,
    calls: usize,
    /// Whether the reasoning, the text or the call's arguments have begun.
    has_text: bool,
    json: JsonScanner,
    deltas: Vec<Delta>,
}

impl AnswerReader {
    /// A reader of calls in a format, if there are functions. `is_open` says that the prompt has begun the reasoning.
    pub(super) fn new(
        format: Option<&'static CallFormat>,
        thinking: Option<Thinking>,
        is_open: bool,
        seed: u64,
    ) -> Self {
        Self {
            format,
            thinking,
            state: if is_open {
                State::Reasoning
            } else {
                State::Start
            },
            held: String::new(),
            seed,
            calls: 0,
            has_text: false,
            json: JsonScanner::default(),
            deltas: Vec::new(),
        }
    }

    /// Adds text, and returns what is certain by now.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Delta> {
        self.held.push_str(text);
        while self.step() {}
        std::mem::take(&mut self.deltas)
    }

    /// Returns the rest at the end of the answer.
    pub(crate) fn finish(&mut self) -> Vec<Delta> {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Start | State::Content => self.content(&held),
            State::Reasoning => self.reasoning(held.trim_end()),
            _ => {}
        }
        std::mem::take(&mut self.deltas)
    }

    /// Like [`AnswerReader::push`], but returns a JSON array of deltas in `OpenAI`'s form.
    #[cfg(target_arch = "wasm32")]
    #[allow(clippy::unnecessary_wraps)] // In a module of its own it may fail.
    pub(crate) fn push_json(&mut self, text: &str) -> Result<String> {
        Ok(to_json(&self.push(text)))
    }

    /// Like [`AnswerReader::finish`], but returns a JSON array of deltas in `OpenAI`'s form.
    #[cfg(target_arch = "wasm32")]
    #[allow(clippy::unnecessary_wraps)] // In a module of its own it may fail.
    pub(crate) fn finish_json(&mut self) -> Result<String> {
        Ok(to_json(&self.finish()))
    }

    /// Whether the answer has calls, all of which are complete.
    pub(crate) fn has_calls(&self) -> bool {
        self.calls > 0 && self.state == State::Between
    }

    /// Goes on by a part of the text; returns whether the next part may follow at once.
    fn step(&mut self) -> bool {
        if self.held.is_empty() {
            return false;
        }
        match self.state {
            State::Start => self.start(),
            State::Reasoning => self.in_reasoning(),
            State::Reasoned => {
                let text = self.held.trim_start().len();
                self.held.drain(..self.held.len() - text);
                self.goes_on(text > 0, State::Content)
            }
            State::Content => self.in_content(),
            State::Between => self.between(),
            State::Name => self.name(),
            State::Json => self.in_json(),
            State::Key => self.key(),
            State::Value => self.value(),
        }
    }

    /// Changes the state if a condition holds, and returns it.
    fn goes_on(&mut self, is_certain: bool, state: State) -> bool {
        if is_certain {
            self.state = state;
        }
        is_certain
    }

    fn start(&mut self) -> bool {
        let Some((open, _)) = self.thinking else {
            return self.goes_on(true, State::Content);
        };
        let text = self.held.trim_start();
        let begins = text.strip_prefix(open);
        let may_begin = open.starts_with(text);
        if let Some(rest) = begins {
            self.held = rest.to_owned();
            return self.goes_on(true, State::Reasoning);
        }
        self.goes_on(!may_begin, State::Content)
    }

    fn in_reasoning(&mut self) -> bool {
        if !self.has_text {
            self.held = self.held.trim_start().to_owned();
        }
        let close = self.thinking.map_or("", |(_, close)| close);
        let (text, is_closed) = self.take_until(close);
        self.reasoning(&text);
        self.has_text &= !is_closed;
        self.goes_on(is_closed, State::Reasoned)
    }

    fn in_content(&mut self) -> bool {
        let Some(format) = self.format else {
            let text = std::mem::take(&mut self.held);
            self.content(&text);
            return false;
        };
        if format.open.is_empty() {
            return self.at_bare_call(format);
        }
        let (text, is_open) = self.take_until(format.open);
        self.content(&text);
        self.goes_on(is_open, State::Between)
    }

    /// Looks for a call that no text opens, which is at the beginning of the answer.
    fn at_bare_call(&mut self, format: &CallFormat) -> bool {
        let text = self.held.trim_start();
        let untagged = text.strip_prefix(PYTHON_TAG).unwrap_or(text);
        let is_call = untagged.starts_with(format.before);
        let may_be = format.before.starts_with(untagged) || PYTHON_TAG.starts_with(text);
        if is_call && !self.has_text {
            return self.goes_on(true, State::Between);
        }
        if !may_be || self.has_text {
            let text = std::mem::take(&mut self.held);
            self.content(&text);
            self.has_text = true;
        }
        false
    }

    /// Takes the text before a text, without white space at its end, and that text; or all that is certain to stand
    /// before it.
    fn take_until(&mut self, end: &str) -> (String, bool) {
        if let Some(at) = self.held.find(end) {
            let text = self.held[..at].trim_end().to_owned();
            self.held.drain(..at + end.len());
            return (text, true);
        }
        let mut places = self.held.char_indices().map(|(at, _)| at);
        let begins = |at: &usize| end.starts_with(&self.held[*at..]);
        let keep = places.find(begins).unwrap_or(self.held.len());
        let keep = self.held[..keep].trim_end().len();
        let rest = self.held.split_off(keep);
        (std::mem::replace(&mut self.held, rest), false)
    }

    fn between(&mut self) -> bool {
        let Some(format) = self.format else {
            return false;
        };
        if !format.before.is_empty() {
            let Some(at) = self.held.find(format.before) else {
                return false;
            };
            self.held.drain(..at + format.before.len());
            return self.goes_on(true, State::Name);
        }
        for marker in [format.open, format.close] {
            if marker.is_empty()
                || !marker.starts_with(&*self.held) && !self.held.starts_with(marker)
            {
                continue;
            }
            let is_whole = self.held.len() >= marker.len();
            if is_whole {
                self.held.drain(..marker.len());
            }
            return is_whole;
        }
        if self.held.starts_with(is_of_name) {
            return self.goes_on(true, State::Name);
        }
        let first = self.held.chars().next().map_or(0, char::len_utf8);
        self.held.drain(..first);
        true
    }

    fn name(&mut self) -> bool {
        let Some(format) = self.format else {
            return false;
        };
        let after = format!("{}{}", format.after, format.separator);
        let Some(at) = self.held.find(&after) else {
            return false;
        };
        let name = self.held[..at].to_owned();
        self.held.drain(..at + after.len());
        self.calls += 1;
        let index = self.calls - 1;
        self.deltas.push(Delta::ToolCall {
            index,
            id: id(self.seed, index),
            name,
        });
        self.json = JsonScanner::default();
        self.has_text = false;
        let is_python = format.arguments == Arguments::Python;
        if is_python {
            self.arguments("{");
        }
        self.goes_on(true, if is_python { State::Key } else { State::Json })
    }

    fn in_json(&mut self) -> bool {
        let (text, is_complete) = self.json.take(&mut self.held, |_| false);
        self.arguments(&text);
        self.goes_on(is_complete, State::Between)
    }

    fn key(&mut self) -> bool {
        let rest = self.held.trim_start_matches([' ', ',']);
        if let Some(rest) = rest.strip_prefix(')') {
            self.held = rest.to_owned();
            self.arguments("}");
            return self.goes_on(true, State::Between);
        }
        let Some((name, value)) = rest.split_once('=') else {
            return false;
        };
        let before = if self.has_text { ", " } else { "" };
        let key = format!("{before}\"{name}\": ");
        self.held = value.to_owned();
        self.arguments(&key);
        self.has_text = true;
        self.json = JsonScanner::default();
        self.goes_on(true, State::Value)
    }

    fn value(&mut self) -> bool {
        let ends = |character| matches!(character, ',' | ')');
        let (text, is_complete) = self.json.take(&mut self.held, ends);
        self.arguments(&text);
        self.goes_on(is_complete, State::Key)
    }

    fn content(&mut self, text: &str) {
        if !text.is_empty() {
            self.deltas.push(Delta::Content(text.to_owned()));
        }
    }

    fn reasoning(&mut self, text: &str) {
        if !text.is_empty() {
            self.has_text = true;
            self.deltas.push(Delta::Reasoning(text.to_owned()));
        }
    }

    fn arguments(&mut self, text: &str) {
        if !text.is_empty() {
            self.deltas.push(Delta::Arguments {
                index: self.calls - 1,
                text: text.to_owned(),
            });
        }
    }
}

#[cfg(target_arch = "wasm32")]
fn to_json(deltas: &[Delta]) -> String {
    let deltas: Vec<String> = deltas.iter().map(Delta::to_json).collect();
    format!("[{}]", deltas.join(","))
}

/// Whether a character may be part of a function's name.
pub(super) fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.')
}

/// Nine letters and digits, the only ids that Mistral's templates take.
fn id(seed: u64, index: usize) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut number = seed.wrapping_add(index as u64);
    // `SplitMix64`'s mixture, so that neighbours differ in all digits.
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^= number >> 31;
    let digits = (0..9).map(|_| {
        let digit = DIGITS[(number % 62) as usize];
        number /= 62;
        char::from(digit)
    });
    digits.collect()
}

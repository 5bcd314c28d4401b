//! Generation: an iterator of text.

use super::sampling::{Sampler, Sampling};
use super::tokenizer::Utf8Stream;
use super::{LanguageModel, Session};
use crate::error::Result;

/// When generation ends and how tokens are chosen.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GenerateOptions {
    /// The most tokens to generate; generation also ends where the context does.
    pub max_tokens: usize,
    /// Texts that end the answer, without being part of it.
    pub stop: Vec<String>,
    /// The choice of tokens.
    pub sampling: Sampling,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        Self {
            max_tokens: 512,
            stop: Vec::new(),
            sampling: Sampling::default(),
        }
    }
}

/// An answer that is generated as it is iterated over. Each item is a piece of text that ends with a
/// whole character. Dropping it cancels the rest.
#[derive(Debug)]
pub struct Generation<'a> {
    model: &'a LanguageModel,
    session: Session<'a>,
    options: GenerateOptions,
    sampler: Sampler,
    logits: Vec<f32>,
    stream: Utf8Stream,
    /// Text that may be the beginning of a stop string.
    held: String,
    generated: Vec<u32>,
    done: bool,
}

impl<'a> Generation<'a> {
    pub(super) fn new(
        model: &'a LanguageModel,
        prompt: &[u32],
        options: GenerateOptions,
    ) -> Result<Self> {
        options.sampling.check()?;
        let mut session = model.session()?;
        let logits = session.prefill(prompt)?;
        Ok(Self {
            model,
            session,
            sampler: Sampler::new(options.sampling.clone()),
            options,
            logits,
            stream: Utf8Stream::default(),
            held: String::new(),
            generated: Vec::new(),
            done: false,
        })
    }

    /// The tokens generated so far, without the one that ends the answer.
    pub fn tokens(&self) -> &[u32] {
        &self.generated
    }

    /// The rest of the answer.
    ///
    /// # Errors
    /// The first one of generation.
    pub fn text(self) -> Result<String> {
        self.collect()
    }

    /// The next piece of text, which may be empty.
    fn step(&mut self) -> Result<String> {
        if !self.generated.is_empty() {
            let last = self.generated[self.generated.len() - 1];
            self.logits = self.session.decode(last)?;
        }
        let token = self.sampler.choose(&mut self.logits, self.session.tokens());
        if self.model.is_end(token) {
            return Ok(self.finish());
        }
        self.generated.push(token);
        let mut bytes = Vec::new();
        self.model.tokenizer.decode(token, false, &mut bytes);
        let text = self.stream.push(&bytes);
        self.held.push_str(&text);
        let full = self.generated.len() >= self.options.max_tokens
            || self.session.tokens().len() >= self.model.context_length;
        let text = self.release();
        Ok(if full && !self.done {
            text + &self.finish()
        } else {
            text
        })
    }

    /// What of the held text can no longer belong to a stop string.
    fn release(&mut self) -> String {
        let stops = || self.options.stop.iter().filter(|stop| !stop.is_empty());
        if let Some(at) = stops()
            .filter_map(|stop| self.held.find(stop.as_str()))
            .min()
        {
            self.done = true;
            self.held.truncate(at);
            return std::mem::take(&mut self.held);
        }
        let starts = |at: &usize| stops().any(|stop| stop.starts_with(&self.held[*at..]));
        let mut ends = self.held.char_indices().map(|(at, _)| at);
        let keep = ends.find(starts).unwrap_or(self.held.len());
        let rest = self.held.split_off(keep);
        std::mem::replace(&mut self.held, rest)
    }

    fn finish(&mut self) -> String {
        self.done = true;
        std::mem::take(&mut self.held) + &self.stream.finish()
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        while !self.done && self.options.max_tokens > 0 {
            match self.step() {
                Ok(text) if text.is_empty() => {}
                Ok(text) => return Some(Ok(text)),
                Err(error) => {
                    self.done = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

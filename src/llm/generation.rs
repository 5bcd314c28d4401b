//! Generation that blocks: an iterator of text.

use super::generate::Generator;
use super::sequence::Sequence;
use super::{FinishReason, GenerateOptions, LanguageModel, Message, TokenLogprobs};
use crate::error::Result;
use crate::runtime::block_on;

/// An answer that is generated as it is iterated over. Each item is a piece of text that ends with a
/// whole character. Dropping it cancels the rest.
#[derive(Debug)]
pub struct Generation<'a> {
    model: &'a LanguageModel,
    generator: Generator,
    failed: bool,
}

impl<'a> Generation<'a> {
    pub(super) fn new(
        model: &'a LanguageModel,
        prompt: Vec<u32>,
        options: GenerateOptions,
    ) -> Result<Self> {
        let mut generator = Generator::new(model, Sequence::new(model)?, prompt, options)?;
        while block_on(generator.read_prompt(model))? {}
        Ok(Self {
            model,
            generator,
            failed: false,
        })
    }

    /// The number of tokens of the prompt.
    pub fn prompt_tokens(&self) -> usize {
        self.generator.prompt_tokens()
    }

    /// The tokens generated so far, without the one that ends the answer.
    pub fn tokens(&self) -> &[u32] {
        self.generator.tokens()
    }

    /// The probabilities of these tokens, if [`GenerateOptions::logprobs`] asked for them.
    pub fn logprobs(&self) -> &[TokenLogprobs] {
        self.generator.logprobs()
    }

    /// Why generation ended, if it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.generator.finished()
    }

    /// The rest of the answer.
    ///
    /// # Errors
    /// The first one of generation.
    pub fn text(self) -> Result<String> {
        self.collect()
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        while !self.failed && self.generator.finished().is_none() {
            match block_on(self.generator.step(self.model)) {
                Ok(text) if text.is_empty() => {}
                Ok(text) => return Some(Ok(text)),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl LanguageModel {
    /// Answers a conversation.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::render`] and [`Session::prefill_async`](super::Session::prefill_async).
    pub fn chat(&self, messages: &[Message], options: GenerateOptions) -> Result<Generation<'_>> {
        Generation::new(self, self.conversation(messages)?, options)
    }

    /// Continues a text.
    ///
    /// # Errors
    /// The errors of [`Session::prefill_async`](super::Session::prefill_async).
    pub fn complete(&self, prompt: &str, options: GenerateOptions) -> Result<Generation<'_>> {
        Generation::new(self, self.continuation(prompt)?, options)
    }
}

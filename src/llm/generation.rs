//! Generation: pieces of text, one after the other.

#[cfg(not(target_arch = "wasm32"))]
mod blocking;
#[cfg(feature = "stream")]
mod stream;

use super::generate::{Continued, Generator};
use super::sequence::Sequence;
use super::{FinishReason, GenerateOptions, LanguageModel, Message, Session, TokenLogprobs};
use crate::error::{Error, Result};
use crate::runtime::pause;

/// An answer, which [`Generation::next_async`] generates piece by piece; natively it is an iterator, too. Each piece of
/// text ends with a whole character. Dropping it cancels the rest.
#[derive(Debug)]
pub struct Generation<'a> {
    model: LanguageModel,
    generator: Generator<Continued<'a>>,
    failed: bool,
    /// The error to return next.
    error: Option<Error>,
}

impl<'a> Generation<'a> {
    /// Reads the prompt.
    async fn start(
        model: &LanguageModel,
        sequence: Continued<'a>,
        prompt: Vec<u32>,
        options: GenerateOptions,
    ) -> Result<Self> {
        let mut generator = Generator::new(model, sequence, prompt, options)?;
        while generator.read_prompt(model).await? {
            pause().await;
        }
        Ok(Self {
            model: model.clone(),
            generator,
            failed: false,
            error: None,
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

    /// The log-probabilities of these tokens without those of [`GenerateOptions::after`], if
    /// [`GenerateOptions::logprobs`] is set.
    pub fn logprobs(&self) -> &[TokenLogprobs] {
        self.generator.logprobs()
    }

    /// The number of these tokens that were guessed from earlier text: see [`GenerateOptions::guess`].
    pub fn guessed_tokens(&self) -> usize {
        self.generator.guessed()
    }

    /// Why generation ended, if it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.generator.finished()
    }

    /// Generates the next piece of text; `None` where the answer has ended, or failed before.
    ///
    /// # Errors
    /// `DeviceLost`, `OutOfMemory`; `InvalidArgument` if a JSON schema takes too much work.
    pub async fn next_async(&mut self) -> Option<Result<String>> {
        while !self.failed && self.generator.finished().is_none() {
            let text = self.generator.step(&self.model).await;
            pause().await;
            match text {
                Ok(text) if text.is_empty() => {}
                Ok(text) => return Some(Ok(text)),
                Err(error) => return Some(self.fail(error)),
            }
        }
        self.error.take().map(Err)
    }

    /// Ends the answer with an error. Text that is held back comes first, so that the text is that of the tokens.
    fn fail(&mut self, error: Error) -> Result<String> {
        self.failed = true;
        let text = self.generator.flush();
        if text.is_empty() {
            return Err(error);
        }
        self.error = Some(error);
        Ok(text)
    }

    /// Generates the rest of the answer.
    ///
    /// # Errors
    /// The errors of [`Generation::next_async`].
    pub async fn text_async(mut self) -> Result<String> {
        let mut rest = String::new();
        while let Some(text) = self.next_async().await {
            rest.push_str(&text?);
        }
        Ok(rest)
    }
}

impl LanguageModel {
    /// Reads a conversation, and returns the answer to generate. The future computes on the thread that polls it, and is
    /// pending once after each 20 ms of work or block of the prompt: dropping it there ends the work.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::render`] and [`Session::prefill_async`]; `InvalidArgument` for options out of range,
    /// a JSON schema that is not supported, or a token of `after` beyond the vocabulary; `Foreign` for another model's
    /// adapter.
    pub async fn chat_async(
        &self,
        messages: &[Message],
        options: GenerateOptions,
    ) -> Result<Generation<'static>> {
        let sequence = Continued::Own(Sequence::new(self)?);
        Generation::start(self, sequence, self.conversation(messages)?, options).await
    }

    /// Reads a text, and returns its continuation to generate.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::chat_async`] except those of a template.
    pub async fn complete_async(
        &self,
        prompt: &str,
        options: GenerateOptions,
    ) -> Result<Generation<'static>> {
        let sequence = Continued::Own(Sequence::new(self)?);
        Generation::start(self, sequence, self.continuation(prompt)?, options).await
    }
}

impl Session {
    /// Like [`LanguageModel::chat_async`], but what the conversation has in common with the session's tokens is not read
    /// again, such as all messages before the last one. The session has the conversation and the answer then, without the
    /// answer's last token. Without [`GenerateOptions::lora`] the session's adapters stay. If the future is dropped, the
    /// session has the blocks of the conversation that were read.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::chat_async`]. A refused request leaves the session as it was; after other errors it has
    /// the tokens in common with the conversation.
    pub async fn chat_async(
        &mut self,
        messages: &[Message],
        options: GenerateOptions,
    ) -> Result<Generation<'_>> {
        let prompt = self.model.conversation(messages)?;
        self.answer(prompt, options).await
    }

    /// Like [`LanguageModel::complete_async`] with a whole text, but what the text has in common with the session's tokens
    /// is not read again. The session has the text and its continuation then, without the last token. Without
    /// [`GenerateOptions::lora`] the session's adapters stay.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::complete_async`]. A refused request leaves the session as it was; after other errors it
    /// has the tokens in common with the text.
    pub async fn complete_async(
        &mut self,
        prompt: &str,
        options: GenerateOptions,
    ) -> Result<Generation<'_>> {
        let prompt = self.model.continuation(prompt)?;
        self.answer(prompt, options).await
    }

    async fn answer(
        &mut self,
        prompt: Vec<u32>,
        mut options: GenerateOptions,
    ) -> Result<Generation<'_>> {
        if options.lora.is_empty() {
            options.lora = self.sequence.lora().to_vec();
        }
        let sequence = Continued::Of(&mut self.sequence);
        Generation::start(&self.model, sequence, prompt, options).await
    }
}

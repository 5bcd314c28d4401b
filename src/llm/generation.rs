//! Generation: pieces of text, one after the other.

#[cfg(not(target_arch = "wasm32"))]
mod blocking;
#[cfg(feature = "stream")]
mod stream;

use super::chat::{AnswerReader, ChatRequest};
use super::generate::{Continued, Generator};
use super::prompt::Prompt;
use super::sequence::Sequence;
use super::{Delta, FinishReason, GenerateOptions, LanguageModel, Message, Session, TokenLogprobs};
use crate::error::{Error, Result};
use crate::runtime::pause;
use std::collections::VecDeque;

/// An answer, which [`Generation::next_async`] generates piece by piece; natively it is an iterator, too. Each piece of
/// text ends with a whole character. Dropping it cancels the rest.
#[derive(Debug)]
pub struct Generation<'a> {
    model: LanguageModel,
    generator: Generator<Continued<'a>>,
    reader: Option<AnswerReader>,
    /// Pieces that were not returned yet.
    deltas: VecDeque<Delta>,
    /// The pieces so far.
    message: Message,
    failed: bool,
    /// The error to return next.
    error: Option<Error>,
}

/// The prompt of a conversation with options.
fn prompt_of(
    model: &LanguageModel,
    messages: &[Message],
    options: &GenerateOptions,
) -> Result<Prompt> {
    Prompt::of_conversation(model, &ChatRequest::new(messages, options)?)
}

/// The prompt of a text to continue, which calls no functions.
fn prompt_of_text(model: &LanguageModel, text: &str, options: &GenerateOptions) -> Result<Prompt> {
    if !options.tools.is_empty() {
        let requirement = "left out: a text has no calls, a conversation does";
        return Err(Error::invalid("tools", "a list", requirement));
    }
    Prompt::of_text(model, text)
}

impl<'a> Generation<'a> {
    /// Reads the prompt.
    async fn start(
        model: &LanguageModel,
        sequence: Continued<'a>,
        prompt: Prompt,
        options: GenerateOptions,
    ) -> Result<Self> {
        let mut generation = Self::new(model, sequence, prompt, options)?;
        while generation.generator.read_prompt(model).await? {
            pause().await;
        }
        Ok(generation)
    }

    /// Returns an answer whose prompt has yet to be read.
    fn new(
        model: &LanguageModel,
        sequence: Continued<'a>,
        mut prompt: Prompt,
        options: GenerateOptions,
    ) -> Result<Self> {
        let mut reader = prompt.reader.take();
        let generator = Generator::new(model, sequence, prompt, options)?;
        // The text of tokens that exist is that before the answer.
        if let Some(reader) = &mut reader {
            drop(reader.push(generator.existing_text()));
        }
        Ok(Self {
            model: model.clone(),
            generator,
            reader,
            deltas: VecDeque::new(),
            message: Message::assistant(""),
            failed: false,
            error: None,
        })
    }

    /// The model that answers.
    pub fn model(&self) -> &LanguageModel {
        &self.model
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
        let has_calls = self.reader.as_ref().is_some_and(AnswerReader::has_calls);
        let reason = self.generator.finished();
        reason.map(|reason| reason.with_calls(has_calls))
    }

    /// The pieces that were returned so far as a message, with its reasoning and calls: at the end the whole answer, to
    /// continue the conversation with.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Generates the next piece of text; `None` where the answer has ended, or failed before. Reasoning and calls are left
    /// out: [`Generation::next_delta_async`] returns them, too, and [`Generation::message`] has them.
    ///
    /// # Errors
    /// `DeviceLost`, `OutOfMemory`; `InvalidArgument` if a JSON schema takes too much work.
    pub async fn next_async(&mut self) -> Option<Result<String>> {
        loop {
            match self.next_delta_async().await? {
                Ok(Delta::Content(text)) => return Some(Ok(text)),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Generates the next piece of text, reasoning or a call; `None` where the answer has ended, or failed before.
    ///
    /// # Errors
    /// The errors of [`Generation::next_async`].
    pub async fn next_delta_async(&mut self) -> Option<Result<Delta>> {
        loop {
            if let Some(delta) = self.ready() {
                return Some(delta);
            }
            if self.has_ended() {
                return None;
            }
            let text = self.generator.step(&self.model).await;
            pause().await;
            self.accept(text);
        }
    }

    /// Returns the next piece of what has been generated; the error that ended the answer comes last.
    pub(super) fn ready(&mut self) -> Option<Result<Delta>> {
        if let Some(delta) = self.deltas.pop_front() {
            self.message.push(&delta);
            return Some(Ok(delta));
        }
        self.error.take().map(Err)
    }

    /// Whether no more text is generated.
    pub(super) fn has_ended(&self) -> bool {
        self.failed || self.generator.finished().is_some()
    }

    pub(super) fn generator(&mut self) -> &mut Generator<Continued<'a>> {
        &mut self.generator
    }

    /// Takes a piece of the answer's text, or the error that ends it.
    pub(super) fn accept(&mut self, text: Result<String>) {
        match text {
            Ok(text) => self.read(&text),
            Err(error) => {
                // Text that is held back comes first, so that the text is that of the tokens.
                self.failed = true;
                self.error = Some(error);
                let text = self.generator.flush();
                self.read(&text);
            }
        }
    }

    /// Divides a piece of the answer's text.
    fn read(&mut self, text: &str) {
        let has_ended = self.has_ended();
        match &mut self.reader {
            Some(reader) => {
                self.deltas.extend(reader.push(text));
                if has_ended {
                    self.deltas.extend(reader.finish());
                }
            }
            None if text.is_empty() => {}
            None => self.deltas.push_back(Delta::Content(text.to_owned())),
        }
    }

    /// Ends the answer, and returns the session that has its tokens; `None` if it continues a session that it does not own.
    pub fn into_session(self) -> Option<Session> {
        let sequence = self.generator.into_sequence().into_own()?;
        Some(Session {
            model: self.model,
            sequence,
        })
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
        let prompt = prompt_of(self, messages, &options)?;
        Generation::start(self, sequence, prompt, options).await
    }

    /// Returns the answer to a conversation, which is read with its first piece: for [`Answers`](super::Answers).
    ///
    /// # Errors
    /// The errors of [`LanguageModel::chat_async`] except those of the device.
    pub fn begin_chat(
        &self,
        messages: &[Message],
        options: GenerateOptions,
    ) -> Result<Generation<'static>> {
        self.session()?.into_chat(messages, options)
    }

    /// Returns the continuation of a text, which is read with its first piece: for [`Answers`](super::Answers).
    ///
    /// # Errors
    /// The errors of [`LanguageModel::complete_async`] except those of the device.
    pub fn begin_complete(
        &self,
        prompt: &str,
        options: GenerateOptions,
    ) -> Result<Generation<'static>> {
        self.session()?.into_complete(prompt, options)
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
        let prompt = prompt_of_text(self, prompt, &options)?;
        Generation::start(self, sequence, prompt, options).await
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
        let prompt = prompt_of(&self.model, messages, &options)?;
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
        let prompt = prompt_of_text(&self.model, prompt, &options)?;
        self.answer(prompt, options).await
    }

    async fn answer(&mut self, prompt: Prompt, options: GenerateOptions) -> Result<Generation<'_>> {
        let options = self.with_adapters(options);
        let sequence = Continued::Of(&mut self.sequence);
        Generation::start(&self.model, sequence, prompt, options).await
    }

    /// Returns options that have the session's adapters, if they have none.
    fn with_adapters(&self, mut options: GenerateOptions) -> GenerateOptions {
        if options.lora.is_empty() {
            options.lora = self.sequence.lora().to_vec();
        }
        options
    }

    /// Like [`Session::chat_async`], but the answer has the session, and reads the conversation with its first piece: for
    /// [`Answers`](super::Answers). [`Generation::into_session`] returns the session.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::begin_chat`].
    pub fn into_chat(
        self,
        messages: &[Message],
        options: GenerateOptions,
    ) -> Result<Generation<'static>> {
        let prompt = prompt_of(&self.model, messages, &options)?;
        let options = self.with_adapters(options);
        Generation::new(&self.model, Continued::Own(self.sequence), prompt, options)
    }

    /// Like [`Session::complete_async`], but the answer has the session, and reads the text with its first piece: for
    /// [`Answers`](super::Answers). [`Generation::into_session`] returns the session.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::begin_complete`].
    pub fn into_complete(
        self,
        prompt: &str,
        options: GenerateOptions,
    ) -> Result<Generation<'static>> {
        let prompt = prompt_of_text(&self.model, prompt, &options)?;
        let options = self.with_adapters(options);
        Generation::new(&self.model, Continued::Own(self.sequence), prompt, options)
    }
}

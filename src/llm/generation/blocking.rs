//! Generation that blocks: an iterator of text.

use super::Generation;
use crate::error::Result;
use crate::llm::{GenerateOptions, LanguageModel, Message, Session};
use crate::runtime::block_on;

impl Generation<'_> {
    /// Blocking version of [`Generation::text_async`].
    pub fn text(self) -> Result<String> {
        block_on(self.text_async())
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        block_on(self.next_async())
    }
}

impl LanguageModel {
    /// Blocking version of [`LanguageModel::chat_async`].
    pub fn chat(
        &self,
        messages: &[Message],
        options: GenerateOptions,
    ) -> Result<Generation<'static>> {
        block_on(self.chat_async(messages, options))
    }

    /// Blocking version of [`LanguageModel::complete_async`].
    pub fn complete(&self, prompt: &str, options: GenerateOptions) -> Result<Generation<'static>> {
        block_on(self.complete_async(prompt, options))
    }
}

impl Session {
    /// Blocking version of [`Session::chat_async`].
    pub fn chat(
        &mut self,
        messages: &[Message],
        options: GenerateOptions,
    ) -> Result<Generation<'_>> {
        block_on(self.chat_async(messages, options))
    }

    /// Blocking version of [`Session::complete_async`].
    pub fn complete(&mut self, prompt: &str, options: GenerateOptions) -> Result<Generation<'_>> {
        block_on(self.complete_async(prompt, options))
    }
}

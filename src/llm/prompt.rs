//! Prompts, and how their answers are held and read.

use super::LanguageModel;
use super::chat::{AnswerReader, ChatRequest};
use crate::error::Result;

/// The tokens before an answer, with the grammar that it is held to and the reader that divides it.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    pub(super) tokens: Vec<u32>,
    /// The grammar of an answer that may have calls.
    pub(super) grammar: Option<String>,
    /// The control tokens whose texts are part of the answer's.
    pub(super) visible: Vec<u32>,
    /// Divides an answer that may have calls or reasoning.
    pub(crate) reader: Option<AnswerReader>,
}

impl Prompt {
    /// The prompt of a conversation.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::render_with`].
    pub(crate) fn of_conversation(model: &LanguageModel, request: &ChatRequest) -> Result<Self> {
        let rendered = model.rendered(request)?;
        let mut visible = Vec::new();
        if rendered.reader.is_some() {
            visible.extend(model.markers().into_iter().map(|(_, id)| id));
        }
        Ok(Self {
            tokens: model.prompt(&rendered)?,
            grammar: rendered.grammar,
            visible,
            reader: rendered.reader,
        })
    }

    /// The prompt of a text to continue.
    pub(crate) fn of_text(model: &LanguageModel, text: &str) -> Result<Self> {
        Ok(Self {
            tokens: model.continuation(text)?,
            ..Self::default()
        })
    }
}

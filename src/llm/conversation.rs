//! Conversations as tokens.

use super::LanguageModel;
use crate::error::{Error, Result};

/// A message of a conversation. Later versions may add fields: [`Message::new`] makes one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[non_exhaustive]
pub struct Message {
    /// Who says it: `system`, `user` or `assistant`.
    pub role: String,
    /// The text. The `null` of chat APIs is an empty text.
    pub content: String,
}

impl Message {
    /// A message of a role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            content: content.into(),
        }
    }

    /// A message whose content is a list of text parts, as chat APIs have it: one after the other.
    pub fn from_parts<T: AsRef<str>>(
        role: impl Into<String>,
        parts: impl IntoIterator<Item = T>,
    ) -> Self {
        let mut content = String::new();
        parts
            .into_iter()
            .for_each(|part| content.push_str(part.as_ref()));
        Self::new(role, content)
    }

    /// Refuses a role in which control tokens could stand, since templates write roles among their own.
    pub(super) fn check_role(&self) -> Result<()> {
        let role = &self.role;
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !role.is_empty() && role.bytes().all(is_of_name) {
            return Ok(());
        }
        let requirement = "made of letters, digits, `_` and `-`";
        Err(Error::invalid("role", format!("'{role}'"), requirement))
    }

    /// The messages that scripts pass: the role and the content of each, one after the other.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn from_texts(texts: &[String]) -> Vec<Self> {
        let (pairs, _) = texts.as_chunks::<2>();
        let pairs = pairs.iter();
        let messages = pairs.map(|[role, content]| Self::new(role.as_str(), content.as_str()));
        messages.collect()
    }

    /// A message of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// A message of the assistant.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }

    /// A message that tells the model how to behave.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }
}

impl LanguageModel {
    /// The tokens of a conversation, by the file's template, as [`LanguageModel::chat`] reads them. Control tokens come from
    /// the template only, whatever it does with the messages: a user's `<|im_end|>` is text.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::render`].
    pub fn conversation(&self, messages: &[Message]) -> Result<Vec<u32>> {
        let text = self.rendered(messages)?;
        let mut tokens = self.tokenizer.encode_parts(text.parts())?;
        // Many templates write the first token themselves.
        if let Some(begin) = self.tokenizer.begin()
            && tokens.first() != Some(&begin)
        {
            tokens.insert(0, begin);
        }
        Ok(tokens)
    }
}

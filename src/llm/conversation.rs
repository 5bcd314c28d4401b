//! Conversations as tokens.

use super::LanguageModel;
use crate::error::{Error, Result};

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who says it: `system`, `user` or `assistant`.
    pub role: String,
    /// What it says.
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

/// Stands around the position of a message's content while the template is rendered: characters of
/// a private plane, so that users' texts do not hold them by chance.
const MARK: char = '\u{10fff0}';

impl LanguageModel {
    /// The tokens of a conversation. Control tokens come from the template only: a user's `<|im_end|>`
    /// is text, and no role may have it.
    pub(crate) fn conversation(&self, messages: &[Message]) -> Result<Vec<u32>> {
        messages
            .iter()
            .try_for_each(|message| check_role(&message.role))?;
        let plain = self.render(messages)?;
        let marked: Vec<Message> = messages.iter().map(mark).collect();
        let marked = self.render(&marked)?;
        let parts = marked.split(MARK).enumerate();
        let parts = parts.map(|(index, part)| (part, index % 2 == 0));
        // A template that changes the contents is taken as it is if no control token stands in
        // them.
        let mut tokens = if marked.replace(MARK, "") == plain {
            self.tokenizer.encode_parts(parts)?
        } else {
            self.unmarked(&plain, messages)?
        };
        // Many templates write the first token themselves.
        if let Some(begin) = self.tokenizer.begin()
            && tokens.first() != Some(&begin)
        {
            tokens.insert(0, begin);
        }
        Ok(tokens)
    }

    fn unmarked(&self, plain: &str, messages: &[Message]) -> Result<Vec<u32>> {
        for message in messages {
            let content = &message.content;
            if self.tokenize(content, true)? != self.tokenize(content, false)? {
                let what = "a text with the model's control tokens";
                return Err(Error::invalid("messages", what, "plain for this template"));
            }
        }
        self.tokenize(plain, true)
    }
}

/// Refuses a role in which control tokens could stand, since templates write roles among their own.
fn check_role(role: &str) -> Result<()> {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !role.is_empty() && role.bytes().all(is_of_name) {
        return Ok(());
    }
    let requirement = "made of letters, digits, `_` and `-`";
    Err(Error::invalid("role", format!("'{role}'"), requirement))
}

/// White space around the content stays outside the marks, since some templates trim it.
fn mark(message: &Message) -> Message {
    let content = message.content.replace(MARK, "");
    let (start, end) = (content.trim_start(), content.trim_end());
    let before = &content[..content.len() - start.len()];
    let after = &content[end.len()..];
    let content = content.trim();
    // Content of nothing but white space stands before the marks.
    let after = if content.is_empty() { "" } else { after };
    let content = format!("{before}{MARK}{content}{MARK}{after}");
    Message::new(message.role.clone(), content)
}

//! Conversations as tokens.

use super::chat::Rendered;
use super::tools::{parsed, wrong};
use super::{Delta, LanguageModel, ToolCall};
#[cfg(feature = "llm")]
use super::{GenerateOptions, chat::ChatRequest};
use crate::error::{Error, Result};
use serde_json::{Value, json};

/// A message of a conversation. Later versions may add fields: [`Message::new`] makes one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[non_exhaustive]
pub struct Message {
    /// Who says it: `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The text. The `null` of chat APIs is an empty text.
    pub content: String,
    /// The reasoning before the text of an assistant.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "String::is_empty")
    )]
    pub reasoning_content: String,
    /// The calls of an assistant.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Vec::is_empty")
    )]
    pub tool_calls: Vec<ToolCall>,
    /// The id of the call whose result the text is.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message of a role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            content: content.into(),
            ..Self::default()
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

    /// The result of a call, by its id.
    pub fn tool_result(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            tool_call_id: Some(id.into()),
            ..Self::new("tool", content)
        }
    }

    /// Adds a piece of an answer.
    pub fn push(&mut self, delta: &Delta) {
        match delta {
            Delta::Content(text) => self.content.push_str(text),
            Delta::Reasoning(text) => self.reasoning_content.push_str(text),
            Delta::ToolCall { id, name, .. } => {
                let call = ToolCall::new(id.as_str(), name.as_str(), "");
                self.tool_calls.push(call);
            }
            Delta::Arguments { index, text } => {
                if let Some(call) = self.tool_calls.get_mut(*index) {
                    call.arguments.push_str(text);
                }
            }
        }
    }

    /// Reads a list of messages as chat APIs have them: `[{ "role", "content", … }]`. A content is a text, a list of text
    /// parts, or `null`.
    ///
    /// # Errors
    /// `InvalidArgument` for other JSON, and for content that is not text.
    pub fn list_from_json(text: &str) -> Result<Vec<Self>> {
        Self::list_from_value(&parsed("messages", text)?)
    }

    pub(super) fn list_from_value(list: &Value) -> Result<Vec<Self>> {
        let Value::Array(list) = list else {
            return Err(wrong("messages", list, "an array of messages"));
        };
        list.iter().map(Self::from_value).collect()
    }

    fn from_value(value: &Value) -> Result<Self> {
        let text = |key: &str| match value.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(wrong("messages", other, "strings, except lists of parts")),
        };
        let calls = match value.get("tool_calls") {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(calls)) => calls,
            Some(other) => return Err(wrong("tool_calls", other, "an array of calls")),
        };
        let content = match value.get("content") {
            Some(Value::Array(parts)) => joined(parts)?,
            _ => text("content")?.unwrap_or_default(),
        };
        let role = text("role")?;
        Ok(Self {
            role: role.ok_or_else(|| wrong("messages", value, "objects with a `role`"))?,
            content,
            reasoning_content: text("reasoning_content")?.unwrap_or_default(),
            tool_calls: calls
                .iter()
                .map(ToolCall::from_value)
                .collect::<Result<_>>()?,
            tool_call_id: text("tool_call_id")?,
        })
    }

    /// The message as chat APIs have it.
    pub fn to_json(&self) -> String {
        self.to_value().to_string()
    }

    pub(super) fn to_value(&self) -> Value {
        let mut value = json!({ "role": self.role, "content": self.content });
        if !self.reasoning_content.is_empty() {
            value["reasoning_content"] = self.reasoning_content.as_str().into();
        }
        if !self.tool_calls.is_empty() {
            let calls = self.tool_calls.iter().map(ToolCall::to_value);
            value["tool_calls"] = calls.collect();
        }
        if let Some(id) = &self.tool_call_id {
            value["tool_call_id"] = id.as_str().into();
        }
        value
    }
}

/// The text of text parts, one after the other.
fn joined(parts: &[Value]) -> Result<String> {
    let texts = parts.iter().map(|part| {
        let is_text = part.get("type").is_some_and(|name| name == "text");
        let text = part.get("text").and_then(Value::as_str);
        let text = text.filter(|_| is_text);
        text.ok_or_else(|| {
            wrong(
                "messages",
                part,
                "text parts, the only ones that a model reads",
            )
        })
    });
    texts.collect()
}

impl LanguageModel {
    /// The tokens of a conversation, by the file's template, as [`LanguageModel::chat`] reads them. Control tokens come from
    /// the template only, whatever it does with the messages: a user's `<|im_end|>` is text.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::render`].
    #[cfg(feature = "llm")]
    pub fn conversation(&self, messages: &[Message]) -> Result<Vec<u32>> {
        self.conversation_with(messages, &GenerateOptions::default())
    }

    /// The tokens of a conversation with the functions and the arguments of the template that options have.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::render_with`].
    #[cfg(feature = "llm")]
    pub fn conversation_with(
        &self,
        messages: &[Message],
        options: &GenerateOptions,
    ) -> Result<Vec<u32>> {
        let rendered = self.rendered(&ChatRequest::new(messages, options)?)?;
        self.prompt(&rendered)
    }

    /// The tokens of a rendered conversation.
    pub(crate) fn prompt(&self, rendered: &Rendered) -> Result<Vec<u32>> {
        let mut tokens = self.tokenizer.encode_parts(rendered.text.parts())?;
        // Many templates write the first token themselves.
        if let Some(begin) = self.tokenizer.begin()
            && tokens.first() != Some(&begin)
        {
            tokens.insert(0, begin);
        }
        Ok(tokens)
    }
}

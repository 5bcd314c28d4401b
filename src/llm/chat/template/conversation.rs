//! The values of a conversation, for templates.

use super::fault::{Fault, Result};
use super::text::Text;
use super::value::Value;
use crate::llm::chat::library::call_format::{CallFormat, Family};
use crate::llm::chat::library::request::ChatRequest;
use crate::llm::{Message, ToolCall, ToolFormat};
use serde_json::Value as Json;

/// Roles that a template may make control tokens of, such as `<|user|>`. Other roles are texts of the message.
const ROLES: [&str; 8] = [
    "assistant",
    "developer",
    "function",
    "ipython",
    "model",
    "system",
    "tool",
    "user",
];

/// How templates get the arguments of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    Objects,
    /// As JSON.
    Texts,
}

/// A conversation as values.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) messages: Value,
    pub(super) tools: Value,
    /// The bytes of all texts.
    pub(super) bytes: usize,
}

/// Returns the values of a request for a family's templates.
pub(super) fn values(request: &ChatRequest, family: &Family, calls: Calls) -> Result<Conversation> {
    let format = request.format(family);
    let is_generic = format.format == ToolFormat::Generic;
    let tools = request.tools().iter().map(|tool| {
        let tool = tool.to_value();
        tool.map_err(|error| Fault::Refused(error.to_string()))
    });
    let tools = tools.collect::<Result<Vec<_>>>()?;
    let writer = Writer {
        format,
        calls,
        writes_calls: family.writes_calls && !is_generic,
    };
    let (mut messages, mut bytes) = (Vec::new(), 0);
    let mut list = request.messages.clone();
    if is_generic {
        list = with_results_of_user(list);
        if !tools.is_empty() {
            explain(&mut list, &tools);
        }
    }
    for message in &list {
        bytes += message.to_value().to_string().len();
        messages.push(writer.message(message)?);
    }
    bytes += tools
        .iter()
        .map(|tool| tool.to_string().len())
        .sum::<usize>();
    bytes += request
        .variables
        .values()
        .map(|value| value.to_string().len())
        .sum::<usize>();
    let tools = match &tools[..] {
        [] => Value::None,
        _ if is_generic => Value::None,
        tools => Value::list(tools.iter().map(value).collect::<Result<_>>()?)?,
    };
    Ok(Conversation {
        messages: Value::list(messages)?,
        tools,
        bytes,
    })
}

/// Returns the messages with results of calls as the user's, in one message with those of other calls and with what the
/// user says then: templates without functions know no other roles, and some want them to alternate.
fn with_results_of_user(messages: Vec<Message>) -> Vec<Message> {
    let mut list: Vec<Message> = Vec::new();
    let mut was_result = false;
    for mut message in messages {
        let is_result = message.role == "tool";
        if is_result {
            let text = message.content;
            message = Message::user(format!("<tool_response>\n{text}\n</tool_response>"));
        }
        match list.last_mut() {
            Some(last) if was_result && message.role == "user" => {
                last.content.push('\n');
                last.content.push_str(&message.content);
            }
            _ => list.push(message),
        }
        was_result = is_result;
    }
    list
}

/// Explains functions in the first message, for templates that do not: in the system's, or in that of the user.
fn explain(messages: &mut Vec<Message>, tools: &[Json]) {
    let tools: Vec<String> = tools
        .iter()
        .map(|tool| tool["function"].to_string())
        .collect();
    let text = format!(
        "You can call these functions:\n{}\n\nTo call a function, answer with its name and arguments as JSON in tags:\n\
        <tool_call>\n{{\"name\": \"NAME\", \"arguments\": {{…}}}}\n</tool_call>\n\
        The result is in <tool_response> tags. If no function helps, answer as usual.",
        tools.join("\n")
    );
    match messages.first_mut() {
        Some(first) if first.role == "system" => {
            first.content.push_str("\n\n");
            first.content.push_str(&text);
        }
        Some(first) if first.role == "user" => {
            first.content = format!("{text}\n\n{}", first.content);
        }
        _ => messages.insert(0, Message::user(text)),
    }
}

/// Makes values of messages.
struct Writer {
    format: &'static CallFormat,
    calls: Calls,
    /// Whether the template writes calls.
    writes_calls: bool,
}

impl Writer {
    fn message(&self, message: &Message) -> Result<Value> {
        let role = if ROLES.contains(&&*message.role) {
            Text::trusted(&message.role)
        } else {
            Text::untrusted(&message.role)
        };
        let mut content = Text::untrusted(message.content.as_str());
        let mut entries = vec![(key("role"), Value::Text(role))];
        let has_calls = !message.tool_calls.is_empty();
        if has_calls && !self.writes_calls {
            if !content.is_empty() {
                content.push("\n", false);
            }
            let written = self.format.write(&message.tool_calls, &mut content);
            written.map_err(|error| Fault::Refused(error.to_string()))?;
        }
        entries.push((key("content"), Value::Text(content)));
        if has_calls && self.writes_calls {
            let calls = message.tool_calls.iter().map(|call| self.call(call));
            let calls = calls.collect::<Result<Vec<_>>>()?;
            entries.push((key("tool_calls"), Value::list(calls)?));
        }
        if let Some(id) = &message.tool_call_id {
            entries.push((key("tool_call_id"), text(id)));
        }
        if !message.reasoning_content.is_empty() {
            entries.push((key("reasoning_content"), text(&message.reasoning_content)));
        }
        Value::dict(entries)
    }

    fn call(&self, call: &ToolCall) -> Result<Value> {
        let arguments = match serde_json::from_str::<Json>(&call.arguments) {
            Ok(json) if self.calls == Calls::Objects => value(&json)?,
            _ => text(&call.arguments),
        };
        let function = Value::attributes([("name", text(&call.name)), ("arguments", arguments)])?;
        Value::attributes([
            ("id", text(&call.id)),
            ("type", text("function")),
            ("function", function),
        ])
    }
}

fn key(name: &str) -> Value {
    text(name)
}

fn text(text: &str) -> Value {
    Value::Text(Text::untrusted(text))
}

/// The value of JSON.
pub(super) fn value(json: &Json) -> Result<Value> {
    Ok(match json {
        Json::Null => Value::None,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Integer(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(string) => text(string),
        Json::Array(list) => Value::list(list.iter().map(value).collect::<Result<_>>()?)?,
        Json::Object(object) => {
            let entries = object
                .iter()
                .map(|(name, json)| Ok((key(name), value(json)?)));
            Value::dict(entries.collect::<Result<_>>()?)?
        }
    })
}

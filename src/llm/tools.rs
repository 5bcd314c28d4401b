//! Functions that a model may call, and its calls.

use crate::error::{Error, Result};
use serde_json::{Map, Value, json};

/// A function that a model may call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[non_exhaustive]
pub struct Tool {
    /// The name: 1 to 64 letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// The function's purpose, which the model reads.
    pub description: String,
    /// The JSON schema of the arguments, as JSON. It describes an object.
    pub parameters: String,
}

impl Tool {
    /// A function with a name, a description and the JSON schema of its arguments, as JSON.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters: parameters.into(),
        }
    }

    /// Reads a list of functions as `OpenAI`'s API has them:
    /// `[{ "type": "function", "function": { "name", "description", "parameters" } }]`. Their `strict` is ignored:
    /// arguments always fit their schema.
    ///
    /// # Errors
    /// `InvalidArgument` for other JSON.
    pub fn list_from_json(text: &str) -> Result<Vec<Self>> {
        let list = parsed("tools", text)?;
        Self::list_from_value(&list)
    }

    pub(super) fn list_from_value(list: &Value) -> Result<Vec<Self>> {
        let Value::Array(list) = list else {
            return Err(wrong("tools", list, "an array of functions"));
        };
        let tools = list.iter().map(Self::from_value);
        tools.collect()
    }

    fn from_value(value: &Value) -> Result<Self> {
        let function = function_of("tools", value)?;
        let parameters = match function.get("parameters") {
            None | Some(Value::Null) => json!({ "type": "object", "properties": {} }),
            Some(parameters) => parameters.clone(),
        };
        let description = match function.get("description") {
            None | Some(Value::Null) => String::new(),
            Some(_) => text_of("tools", function, "description")?,
        };
        let name = text_of("tools", function, "name")?;
        Ok(Self::new(name, description, parameters.to_string()))
    }

    /// The function as `OpenAI`'s API has it.
    ///
    /// # Errors
    /// `InvalidArgument` if `parameters` is no JSON.
    pub(super) fn to_value(&self) -> Result<Value> {
        Ok(json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": parsed("tools", &self.parameters)?,
            },
        }))
    }
}

/// Which functions a model calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// None: the model does not see the functions.
    None,
    /// At least one, which the model chooses.
    Required,
    /// The function of this name.
    Named(String),
}

impl ToolChoice {
    /// Reads the choice as `OpenAI`'s API has it: `"auto"`, `"none"`, `"required"`, or
    /// `{ "type": "function", "function": { "name" } }`.
    ///
    /// # Errors
    /// `InvalidArgument` for other JSON.
    pub fn from_json(text: &str) -> Result<Self> {
        Self::from_value(&parsed("tool_choice", text)?)
    }

    pub(super) fn from_value(value: &Value) -> Result<Self> {
        match value {
            Value::String(name) if name == "auto" => Ok(Self::Auto),
            Value::String(name) if name == "none" => Ok(Self::None),
            Value::String(name) if name == "required" => Ok(Self::Required),
            Value::Object(_) => {
                let function = function_of("tool_choice", value)?;
                Ok(Self::Named(text_of("tool_choice", function, "name")?))
            }
            _ => {
                let requirement = "`auto`, `none`, `required` or a named function";
                Err(wrong("tool_choice", value, requirement))
            }
        }
    }

    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Auto => "auto".into(),
            Self::None => "none".into(),
            Self::Required => "required".into(),
            Self::Named(name) => json!({ "type": "function", "function": { "name": name } }),
        }
    }
}

/// The call of a function in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[non_exhaustive]
pub struct ToolCall {
    /// The id by which [`Message::tool_result`](super::Message::tool_result) names the call.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// The arguments, as JSON. They fit the function's schema, unless the answer broke off within them.
    pub arguments: String,
}

impl ToolCall {
    /// A call with its id, the function's name and the arguments as JSON.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    /// Reads a call as `OpenAI`'s API has it. Arguments may be JSON in a string, or an object.
    pub(super) fn from_value(value: &Value) -> Result<Self> {
        let function = function_of("tool_calls", value)?;
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(object @ Value::Object(_)) => object.to_string(),
            other => {
                let other = other.unwrap_or(&Value::Null);
                let requirement = "JSON, in each function's `arguments`";
                return Err(wrong("tool_calls", other, requirement));
            }
        };
        let id = match value.get("id") {
            None | Some(Value::Null) => String::new(),
            Some(_) => text_of("tool_calls", value.as_object().unwrap_or(function), "id")?,
        };
        let name = text_of("tool_calls", function, "name")?;
        Ok(Self::new(id, name, arguments))
    }

    /// The call as `OpenAI`'s API has it.
    pub(super) fn to_value(&self) -> Value {
        json!({
            "id": self.id,
            "type": "function",
            "function": { "name": self.name, "arguments": self.arguments },
        })
    }
}

/// The form in which a family of models writes calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ToolFormat {
    /// Objects in `<tool_call>` tags: Hermes, Qwen 2.5 and 3, `SmolLM3`, Granite 4.
    Hermes,
    /// One object with `name` and `parameters`: Llama 3.
    Llama3,
    /// A list after `[TOOL_CALLS]`: Mistral until 2024.
    Mistral,
    /// A name, `[ARGS]` and the arguments after each `[TOOL_CALLS]`: Mistral since 2025.
    MistralArgs,
    /// A list of calls in Python's form: LFM2.
    Lfm2,
    /// Objects in `<tool_call>` tags, which the conversation's first message explains: any model. The template gets no
    /// tools.
    Generic,
}

impl ToolFormat {
    const NAMES: [(Self, &str); 6] = [
        (Self::Hermes, "hermes"),
        (Self::Llama3, "llama3"),
        (Self::Mistral, "mistral"),
        (Self::MistralArgs, "mistral_args"),
        (Self::Lfm2, "lfm2"),
        (Self::Generic, "generic"),
    ];

    /// Returns the format of a name: `hermes`, `llama3`, `mistral`, `mistral_args`, `lfm2` or `generic`.
    ///
    /// # Errors
    /// `InvalidArgument` for another name.
    pub fn from_name(name: &str) -> Result<Self> {
        let found = Self::NAMES.into_iter().find(|(_, other)| *other == name);
        found.map(|(format, _)| format).ok_or_else(|| {
            let names = Self::NAMES.map(|(_, name)| name).join("`, `");
            Error::invalid("tool_format", name, format!("one of `{names}`"))
        })
    }

    /// The name of the format.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.into_iter().find(|(format, _)| *format == self);
        found.map_or("generic", |(_, name)| name)
    }
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Delta {
    /// Text of the answer.
    Content(String),
    /// Text of the model's reasoning, which comes before the answer.
    Reasoning(String),
    /// The beginning of a call. The arguments follow.
    ToolCall {
        /// The call's position in the answer.
        index: usize,
        /// The call's id.
        id: String,
        /// The function's name.
        name: String,
    },
    /// A piece of a call's arguments.
    Arguments {
        /// The call's position in the answer.
        index: usize,
        /// JSON, which the pieces of a call make together.
        text: String,
    },
}

impl Delta {
    /// The piece as the `delta` of `OpenAI`'s API.
    pub fn to_json(&self) -> String {
        self.to_value().to_string()
    }

    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Content(text) => json!({ "content": text }),
            Self::Reasoning(text) => json!({ "reasoning_content": text }),
            Self::ToolCall { index, id, name } => json!({ "tool_calls": [{
                "index": index,
                "id": id,
                "type": "function",
                "function": { "name": name, "arguments": "" },
            }] }),
            Self::Arguments { index, text } => json!({ "tool_calls": [{
                "index": index,
                "function": { "arguments": text },
            }] }),
        }
    }
}

/// The value of a JSON text.
pub(super) fn parsed(what: &'static str, text: &str) -> Result<Value> {
    serde_json::from_str(text)
        .map_err(|error| Error::invalid(what, shortened(text), format!("valid JSON: {error}")))
}

/// The largest number of characters of a value that an error shows.
const SHOWN: usize = 200;

fn shortened(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

pub(super) fn wrong(what: &'static str, value: &Value, requirement: &'static str) -> Error {
    Error::invalid(what, shortened(&value.to_string()), requirement)
}

/// The `function` of a tool, a choice or a call of type `function`.
fn function_of<'v>(what: &'static str, value: &'v Value) -> Result<&'v Map<String, Value>> {
    let is_function = value.get("type").is_none_or(|name| name == "function");
    let function = value.get("function").and_then(Value::as_object);
    let function = function.filter(|_| is_function);
    function.ok_or_else(|| wrong(what, value, "`{ type: 'function', function: { name, … } }`"))
}

fn text_of(what: &'static str, object: &Map<String, Value>, key: &str) -> Result<String> {
    let text = object.get(key).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| {
        let shown = object.get(key).unwrap_or(&Value::Null).to_string();
        Error::invalid(
            what,
            shortened(&shown),
            format!("a string, as `{key}` of a function"),
        )
    })
}

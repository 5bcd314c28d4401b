//! Requests for an answer: a conversation, functions, and the arguments of the template.

use super::call_format::{CallFormat, Family};
use super::grammar::Answer;
use super::json_schema::prepared_value;
use super::reader::{AnswerReader, is_of_name};
use super::text::Text;
use crate::error::{Error, Result};
use crate::llm::tools::{parsed, wrong};
use crate::llm::{GenerateOptions, Message, Tool, ToolChoice, ToolFormat, fingerprint};
use serde_json::{Map, Value, json};

/// The largest number of functions.
const MAX_TOOLS: usize = 128;

/// The names that templates get of the library.
pub(super) const RESERVED: [&str; 7] = [
    "messages",
    "bos_token",
    "eos_token",
    "tools",
    "xml_tools",
    "documents",
    "add_generation_prompt",
];

/// A function that may be called.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: String,
    /// The schema of the arguments, within its limits.
    pub(super) schema: Value,
}

/// A request for an answer.
#[derive(Debug, Default)]
pub(crate) struct ChatRequest {
    pub(super) messages: Vec<Message>,
    /// The functions that the model sees.
    tools: Vec<Tool>,
    choice: ToolChoice,
    is_single: bool,
    format: Option<ToolFormat>,
    /// Further variables of the template.
    pub(super) variables: Map<String, Value>,
    json_schema: Option<String>,
    seed: u64,
}

impl ChatRequest {
    /// The request of a conversation with options.
    ///
    /// # Errors
    /// `InvalidArgument` for arguments of a template that are no JSON object.
    pub(crate) fn new(messages: &[Message], options: &GenerateOptions) -> Result<Self> {
        let variables = options.chat_template_kwargs.as_deref();
        let variables = variables.map(|text| parsed(KWARGS, text)).transpose()?;
        Ok(Self {
            messages: messages.to_vec(),
            tools: options.tools.clone(),
            choice: options.tool_choice.clone(),
            is_single: !options.parallel_tool_calls,
            format: options.tool_format,
            variables: variables.map(object).transpose()?.unwrap_or_default(),
            json_schema: options.json_schema.clone(),
            seed: options.sampling.seed,
        })
    }

    /// Asks for an answer to messages, without functions and options.
    pub(crate) fn of_messages(messages: &[Message]) -> Result<Self> {
        Self::new(messages, &GenerateOptions::default())
    }

    /// Reads a request of scripts: an object of the messages and of options in `OpenAI`'s words.
    ///
    /// # Errors
    /// `InvalidArgument` for other JSON.
    #[cfg(target_arch = "wasm32")]
    #[allow(clippy::needless_pass_by_value)] // A module that does not read the request keeps it.
    pub(crate) fn from_json(text: String) -> Result<Self> {
        let value = parsed("messages", &text)?;
        let given = |key: &str| value.get(key).filter(|value| !value.is_null());
        let choice = given("tool_choice").map(ToolChoice::from_value);
        let format = given("tool_format").and_then(Value::as_str);
        let schema = given("json_schema").and_then(Value::as_str);
        let variables = given(KWARGS).cloned().map(object);
        Ok(Self {
            messages: Message::list_from_value(&value["messages"])?,
            tools: given("tools").map_or(Ok(Vec::new()), Tool::list_from_value)?,
            choice: choice.transpose()?.unwrap_or_default(),
            is_single: given("parallel_tool_calls") == Some(&Value::Bool(false)),
            format: format.map(ToolFormat::from_name).transpose()?,
            variables: variables.transpose()?.unwrap_or_default(),
            json_schema: schema.map(str::to_owned),
            seed: given("seed").and_then(Value::as_u64).unwrap_or_default(),
        })
    }

    /// Checks everything but schemas.
    pub(super) fn check(&self) -> Result<()> {
        self.messages.iter().try_for_each(Message::check_role)?;
        for name in self.variables.keys() {
            if RESERVED.contains(&&**name) {
                return Err(Error::invalid(KWARGS, name.clone(), "other names"));
            }
        }
        if self.tools.len() > MAX_TOOLS {
            let requirement = format!("at most {MAX_TOOLS} functions");
            return Err(Error::invalid(
                "tools",
                self.tools.len().to_string(),
                requirement,
            ));
        }
        for (index, tool) in self.tools.iter().enumerate() {
            let name = &tool.name;
            if !(1..=64).contains(&name.len()) || !name.chars().all(is_of_name) {
                let requirement =
                    "functions with names of 1 to 64 letters, digits, `_`, `-` and `.`";
                return Err(Error::invalid("tools", format!("'{name}'"), requirement));
            }
            if self.tools[..index].iter().any(|other| other.name == *name) {
                return Err(Error::invalid(
                    "tools",
                    format!("'{name}' twice"),
                    "functions with different names",
                ));
            }
        }
        let is_known = match &self.choice {
            ToolChoice::Auto | ToolChoice::None => true,
            ToolChoice::Required => !self.tools.is_empty(),
            ToolChoice::Named(name) => self.tools.iter().any(|tool| tool.name == *name),
        };
        if is_known {
            return Ok(());
        }
        let choice = self.choice.to_value();
        Err(wrong("tool_choice", &choice, "a choice among `tools`"))
    }

    /// Whether a message has calls.
    pub(super) fn has_calls(&self) -> bool {
        self.messages
            .iter()
            .any(|message| !message.tool_calls.is_empty())
    }

    /// The functions that the model sees.
    pub(super) fn tools(&self) -> &[Tool] {
        match self.choice {
            ToolChoice::None => &[],
            _ => &self.tools,
        }
    }

    /// The format of calls.
    pub(super) fn format(&self, family: &Family) -> &'static CallFormat {
        CallFormat::of(self.format.unwrap_or(family.format))
    }

    /// The grammar and the reader of the answer after a text.
    ///
    /// # Errors
    /// `InvalidArgument` for a schema that is not supported.
    pub(super) fn answer(
        &self,
        text: &Text,
        family: &Family,
        markers: &[(String, u32)],
    ) -> Result<(Option<String>, Option<AnswerReader>)> {
        let end = text.as_str().trim_end();
        // The prompt of a model that shall not think has the end of its reasoning.
        let thinking = family.thinking.filter(|(_, close)| !end.ends_with(close));
        let is_open = thinking.is_some_and(|(open, _)| end.ends_with(open));
        let format = self.format(family);
        let has_tools = !self.tools().is_empty();
        if has_tools && self.json_schema.is_some() && format.open.is_empty() {
            let requirement = "left out: in this model's format a call is an object like any other";
            return Err(Error::invalid("json_schema", "a schema", requirement));
        }
        let functions = if has_tools {
            self.functions()?
        } else {
            Vec::new()
        };
        let is_named = matches!(self.choice, ToolChoice::Named(_));
        let may_be_called = |function: &&Function| match &self.choice {
            ToolChoice::Named(name) => function.name == *name,
            _ => true,
        };
        let answer = Answer {
            thinking,
            is_open,
            format,
            functions: functions.iter().filter(may_be_called).collect(),
            is_required: is_named || self.choice == ToolChoice::Required,
            is_parallel: !is_named && !self.is_single,
            schema: self.json_schema.as_deref(),
            markers,
        };
        let is_held = has_tools || (is_open && self.json_schema.is_some());
        let grammar = is_held.then(|| answer.grammar()).transpose()?;
        let seed = fingerprint::of([text.as_str().as_bytes(), &self.seed.to_le_bytes()]);
        let reader = (has_tools || thinking.is_some()).then(|| {
            let format = has_tools.then_some(format);
            AnswerReader::new(format, thinking, is_open, seed)
        });
        Ok((grammar, reader))
    }

    /// The functions with their schemas within limits.
    fn functions(&self) -> Result<Vec<Function>> {
        let functions = self.tools.iter().map(|tool| {
            let schema = parsed("tools", &tool.parameters)?;
            let schema = of_object(schema);
            if schema["type"] != "object" {
                return Err(wrong(
                    "tools",
                    &schema,
                    "functions whose arguments are an object",
                ));
            }
            let schema = prepared_value(schema).map_err(|error| {
                let requirement = format!("a function with a valid schema: {error}");
                Error::invalid("tools", tool.name.clone(), requirement)
            })?;
            Ok(Function {
                name: tool.name.clone(),
                schema,
            })
        });
        functions.collect()
    }
}

/// The option that has further variables of the template.
const KWARGS: &str = "chat_template_kwargs";

fn object(value: Value) -> Result<Map<String, Value>> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(wrong(KWARGS, &other, "a JSON object")),
    }
}

/// A schema of arguments that allows objects only. If it lists properties and combines no schemas, others are not allowed:
/// a model would make them up.
fn of_object(mut schema: Value) -> Value {
    const COMBINED: [&str; 7] = [
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "patternProperties",
    ];
    let Some(object) = schema.as_object_mut() else {
        return json!({ "type": "object" });
    };
    object.entry("type").or_insert_with(|| "object".into());
    let is_list = object.contains_key("properties");
    if is_list && !COMBINED.iter().any(|key| object.contains_key(*key)) {
        object
            .entry("additionalProperties")
            .or_insert(Value::Bool(false));
    }
    schema
}

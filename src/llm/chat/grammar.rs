//! The grammar of an answer with calls, in the language of `llguidance`, which is Lark's.
//!
//! The text before the first call is free. Each call fits the schema of its function.

use super::call_format::{Arguments, CallFormat, PYTHON_TAG, Thinking};
use super::json_schema::prepared;
use super::reader::is_of_name;
use super::request::Function;
use crate::error::{Error, Result};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The parts of an answer.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) thinking: Option<Thinking>,
    /// Whether the prompt has begun the reasoning.
    pub(super) is_open: bool,
    pub(super) format: &'static CallFormat,
    /// The functions that may be called.
    pub(super) functions: Vec<&'a Function>,
    pub(super) is_required: bool,
    pub(super) is_parallel: bool,
    /// The schema of an answer without calls, as JSON.
    pub(super) schema: Option<&'a str>,
    /// The control tokens of the vocabulary that have a meaning for formats.
    pub(super) markers: &'a [(String, u32)],
}

/// Any text.
const ANY: &str = "(?s:.)";

impl Answer<'_> {
    /// Returns the grammar.
    ///
    /// # Errors
    /// `InvalidArgument` for a schema that is not supported.
    pub(super) fn grammar(&self) -> Result<String> {
        let mut rules = Rules::default();
        let reasoning = self.reasoning(&mut rules);
        let answer = self.answer(&mut rules)?;
        let start = format!("start: {reasoning} ({answer})\n");
        Ok(start + &rules.0)
    }

    /// The expression of the reasoning.
    fn reasoning(&self, rules: &mut Rules) -> String {
        let Some((open, close)) = self.thinking else {
            return String::new();
        };
        let closed = if let Some(token) = self.marker(close) {
            let _ = writeln!(rules.0, "REASONING: /{ANY}+/");
            format!("REASONING? {token}")
        } else {
            let close = escaped(close);
            let _ = writeln!(rules.0, "reasoning[lazy]: /{ANY}*{close}/");
            "reasoning".to_owned()
        };
        let _ = writeln!(rules.0, "SPACE: /[ \\t\\r\\n]{{1,4}}/");
        // White space of its own, where the text after it cannot begin with some.
        let has_space = self.is_required || self.schema.is_some();
        let space = if has_space { "SPACE?" } else { "" };
        if self.is_open {
            format!("{closed} {space}")
        } else {
            format!("({} {closed} {space})?", self.text(open))
        }
    }

    /// The expression of everything after the reasoning.
    fn answer(&self, rules: &mut Rules) -> Result<String> {
        let format = self.format;
        let plain = match self.schema {
            _ if self.is_required => "",
            Some(schema) => {
                let schema = prepared(schema)?;
                let _ = writeln!(rules.0, "json: %json {schema}");
                "json"
            }
            None => "PLAIN?",
        };
        if self.functions.is_empty() {
            return Ok(plain.to_owned());
        }
        let calls = self.calls(rules)?;
        if self.is_required {
            return Ok(format!("{} {calls}", self.text(format.open)));
        }
        if self.schema.is_some() {
            // Text before a call would be no JSON.
            return Ok(format!("{plain} | {} {calls}", self.text(format.open)));
        }
        let excluded = self.excluded();
        if format.open.is_empty() {
            let call = escaped(format.before);
            let _ = writeln!(
                rules.0,
                "PLAIN: /{ANY}+/ & ~/[ \\t\\r\\n]*{call}{ANY}*/{excluded}"
            );
            let tag = self.marker(PYTHON_TAG);
            let tag = tag.map_or(String::new(), |token| format!("{token}?"));
            return Ok(format!("{plain} | {tag} {calls}"));
        }
        if let Some(token) = self.marker(format.open) {
            let _ = writeln!(rules.0, "PLAIN: /{ANY}+/{excluded}");
            return Ok(format!("{plain} | PLAIN? {token} {calls}"));
        }
        let open = escaped(format.open);
        let _ = writeln!(rules.0, "lead[lazy]: /{ANY}*{open}/{excluded}");
        let _ = writeln!(rules.0, "PLAIN: /{ANY}+/ & ~/{ANY}*{open}{ANY}*/{excluded}");
        Ok(format!("{plain} | lead {calls}"))
    }

    /// The exclusion of texts that begin with reasoning.
    fn excluded(&self) -> String {
        match self.thinking {
            Some((open, _)) if !self.is_open && self.marker(open).is_none() => {
                format!(" & ~/[ \\t\\r\\n]*{}{ANY}*/", escaped(open))
            }
            _ => String::new(),
        }
    }

    /// The expression of calls, without the text that opens the first one.
    fn calls(&self, rules: &mut Rules) -> Result<String> {
        let format = self.format;
        let mut alternatives = Vec::new();
        for (index, function) in self.functions.iter().enumerate() {
            let arguments = match format.arguments {
                Arguments::Json => {
                    let _ = writeln!(rules.0, "arguments_{index}: %json {}", function.schema);
                    format!("arguments_{index}")
                }
                Arguments::Python => named_arguments(function, index, rules)?,
            };
            let before = literal(&format!(
                "{}{}{}",
                format.before, function.name, format.after
            ));
            let separator = self.text(format.separator);
            alternatives.push(format!("{before} {separator} {arguments}"));
        }
        let ends = literal(format.call_end);
        let close = self.text(format.call_close);
        let alternatives = alternatives.join(" | ");
        let _ = writeln!(rules.0, "call: ({alternatives}) {ends} {close}");
        let lead = literal(format.lead);
        let more = match format.between {
            Some(between) if self.is_parallel => {
                let again = if format.reopened {
                    format!("{} {lead}", self.text(format.open))
                } else {
                    String::new()
                };
                format!("({} {again} call)*", literal(between))
            }
            _ => String::new(),
        };
        let end = literal(format.end);
        Ok(format!(
            "{lead} call {more} {end} {}",
            self.text(format.close)
        ))
    }

    /// The control token of a text.
    fn marker(&self, text: &str) -> Option<String> {
        let found = self.markers.iter().find(|(other, _)| other == text);
        found.map(|(_, id)| format!("<[{id}]>"))
    }

    /// The expression of a text, which is a control token in some vocabularies.
    fn text(&self, text: &str) -> String {
        self.marker(text).unwrap_or_else(|| literal(text))
    }
}

/// Lines of the grammar.
#[derive(Debug, Default)]
struct Rules(String);

/// The expression of a text; nothing for an empty one.
fn literal(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    Value::from(text).to_string()
}

/// A text in a regular expression.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if character.is_ascii_punctuation() && !matches!(character, '<' | '>' | '_' | '"') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// The expression of arguments in Python's form: those of the schema's properties, in their order.
fn named_arguments(function: &Function, index: usize, rules: &mut Rules) -> Result<String> {
    let schema = &function.schema;
    let refused = |reason: &str| {
        let requirement = format!("described by `properties` of an object: {reason}");
        Error::invalid("tools", function.name.clone(), requirement)
    };
    for key in [
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "$ref",
        "patternProperties",
    ] {
        if schema.get(key).is_some() {
            return Err(refused(&format!("the model's format has no `{key}`")));
        }
    }
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.unwrap_or(&none);
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if let Some(name) = required
        .iter()
        .find(|name| !properties.contains_key(**name))
    {
        return Err(refused(&format!("`{name}` is required, but not described")));
    }
    // From the last to the first: the arguments from here on, without and with an argument before them.
    let (mut first, mut later) = (String::new(), String::new());
    for (number, (name, property)) in properties.iter().enumerate().rev() {
        if !name.chars().all(|c| is_of_name(c) && c != '-' && c != '.') {
            return Err(refused(&format!("`{name}` is no name of an argument")));
        }
        let value = format!("value_{index}_{number}");
        let _ = writeln!(
            rules.0,
            "{value}: %json {}",
            with_definitions(property, schema)
        );
        let argument = format!("{} {value}", literal(&format!("{name}=")));
        let (from, next) = (
            format!("from_{index}_{number}"),
            format!("next_{index}_{number}"),
        );
        if required.contains(&name.as_str()) {
            let _ = writeln!(rules.0, "{from}: {argument} {later}");
            let _ = writeln!(rules.0, "{next}: \", \" {argument} {later}");
        } else {
            let rest = if first.is_empty() {
                "\"\""
            } else {
                first.as_str()
            };
            let _ = writeln!(rules.0, "{from}: {argument} {later} | {rest}");
            let _ = writeln!(rules.0, "{next}: (\", \" {argument})? {later}");
        }
        (first, later) = (from, next);
    }
    Ok(first)
}

/// A property's schema with the definitions that it may refer to.
fn with_definitions(property: &Value, schema: &Value) -> Value {
    let mut property = property.clone();
    if property == Value::Bool(true) {
        property = json!({});
    }
    if let Some(object) = property.as_object_mut() {
        for key in ["$defs", "definitions", "x-guidance"] {
            if let Some(value) = schema.get(key) {
                object.insert(key.to_owned(), value.clone());
            }
        }
    }
    property
}

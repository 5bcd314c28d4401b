//! The chat template of a file, rendered without access to anything and with limits of work and memory.
//!
//! Templates mean what jinja2 makes of them as transformers sets it up: the sandbox with values that do not change,
//! `trim_blocks`, `lstrip_blocks`, loop controls, the tag `generation`, and its `tojson`, `raise_exception` and
//! `strftime_now`, whose time is UTC. A construct that is not supported is an error that names it.
//!
//! Each character of the result has an origin: the template or a message. `text` carries it through all operations.
//! Control tokens are recognised in the template's characters only, whatever a template does with the messages.
//!
//! The parser is written here, and not taken from a crate, since the tree of a hostile template must not be deep, since
//! chat templates have a tag of their own, and since no crate promises an interface to its syntax tree.

mod access;
mod budget;
mod clock;
mod conditions;
mod display;
mod evaluator;
mod fault;
mod filters;
mod format;
#[cfg(test)]
mod hostile;
mod json;
mod lexer;
mod methods;
mod operators;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod origins;
mod parser;
mod sort;
mod syntax;
mod value;

use crate::error::{Error, Result};
use crate::llm::Message;
use crate::llm::chat::text::{self, Text};
use crate::llm::gguf::invalid;
use budget::Budget;
use evaluator::Context;
use fault::Fault;
use syntax::Statement;
use value::Value;

const PLACE: &str = "metadata `tokenizer.chat_template`";

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

/// A template that has been parsed.
#[derive(Debug)]
pub(crate) struct ChatTemplate {
    statements: Vec<Statement>,
}

impl ChatTemplate {
    pub(crate) fn new(source: &str) -> Result<Self> {
        let fault = |fault| match fault {
            Fault::Refused(what) | Fault::Raised(what) => invalid(what, PLACE),
            fault => error(fault),
        };
        let statements = parser::parse(source).map_err(fault)?;
        Ok(Self { statements })
    }

    /// The text of a conversation, which ends where the assistant's answer begins, with the origin of each character.
    pub(crate) fn render(&self, messages: &[Message], bos: &str, eos: &str) -> Result<Text> {
        let values = messages.iter().map(value);
        let values = values
            .collect::<fault::Result<Vec<_>>>()
            .and_then(Value::list);
        let variables = [
            ("messages", values.map_err(error)?),
            ("bos_token", Value::Text(Text::trusted(bos))),
            ("eos_token", Value::Text(Text::trusted(eos))),
            ("tools", Value::None),
            ("documents", Value::None),
            ("add_generation_prompt", Value::Bool(true)),
        ];
        let bytes = messages
            .iter()
            .map(|message| message.content.len() + message.role.len());
        let budget = Budget::new(messages.len(), bytes.sum());
        self.run(&variables, budget, clock::now()).map_err(error)
    }

    fn run(&self, variables: &[(&str, Value)], budget: Budget, now: i64) -> fault::Result<Text> {
        let context = Context { variables, now };
        evaluator::render(&self.statements, &context, budget)
    }
}

fn value(message: &Message) -> fault::Result<Value> {
    let role = if ROLES.contains(&&*message.role) {
        Text::trusted(&message.role)
    } else {
        Text::untrusted(&message.role)
    };
    let content = Text::untrusted(&message.content);
    Value::attributes([
        ("role", Value::Text(role)),
        ("content", Value::Text(content)),
    ])
}

/// The error of an invalid template, or of messages that the template refuses.
fn error(fault: Fault) -> Error {
    let refused = |reason: String| {
        let requirement = "what the model's template takes";
        Error::invalid("messages", format!("refused: {reason}"), requirement)
    };
    match fault {
        Fault::Raised(reason) | Fault::Refused(reason) => refused(reason),
        Fault::Unsupported(construct) => invalid(format!("{construct} is not supported"), PLACE),
        Fault::Limit(limit) => invalid(limit, PLACE),
    }
}

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
mod conversation;
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

use super::call_format::Family;
use super::request::ChatRequest;
use crate::error::{Error, Result};
use crate::llm::chat::Rendered;
use crate::llm::chat::text::{self, Text};
use crate::llm::gguf::invalid;
use budget::Budget;
use conversation::Calls;
use evaluator::Context;
use fault::Fault;
use syntax::Statement;
use value::Value;

const PLACE: &str = "metadata `tokenizer.chat_template`";

/// A template that has been parsed.
#[derive(Debug)]
pub(crate) struct ChatTemplate {
    statements: Vec<Statement>,
    family: Family,
}

impl ChatTemplate {
    pub(crate) fn new(source: &str) -> Result<Self> {
        let fault = |fault| match fault {
            Fault::Refused(what) | Fault::Raised(what) => invalid(what, PLACE),
            fault => error(fault),
        };
        let statements = parser::parse(source).map_err(fault)?;
        let family = Family::of_template(source);
        Ok(Self { statements, family })
    }

    /// The text of a conversation, which ends where the assistant's answer begins, with the origin of each character; and
    /// the grammar and the reader of the answer. `markers` are the vocabulary's control tokens that formats use.
    ///
    /// # Errors
    /// `InvalidArgument` if the template refuses the messages, or a schema is not supported; `InvalidModel` for a template
    /// with an error.
    pub(crate) fn render(
        &self,
        request: &ChatRequest,
        bos: &str,
        eos: &str,
        markers: &[(String, u32)],
    ) -> Result<Rendered> {
        request.check()?;
        let text = self.text(request, bos, eos)?;
        let (grammar, reader) = request.answer(&text, &self.family, markers)?;
        Ok(Rendered {
            text,
            grammar,
            reader,
        })
    }

    /// The text of messages alone.
    #[cfg(test)]
    fn render_messages(&self, messages: &[crate::llm::Message]) -> Result<Text> {
        let request = ChatRequest::of_messages(messages)?;
        self.text(&request, "<s>", "</s>")
    }

    /// The text of a conversation. Most templates take the arguments of calls as objects, some as texts.
    fn text(&self, request: &ChatRequest, bos: &str, eos: &str) -> Result<Text> {
        let rendered = self.text_with(request, bos, eos, Calls::Objects);
        match rendered {
            Err(Fault::Refused(_) | Fault::Raised(_)) if request.has_calls() => {
                self.text_with(request, bos, eos, Calls::Texts).or(rendered)
            }
            rendered => rendered,
        }
        .map_err(error)
    }

    fn text_with(
        &self,
        request: &ChatRequest,
        bos: &str,
        eos: &str,
        calls: Calls,
    ) -> fault::Result<Text> {
        let conversation = conversation::values(request, &self.family, calls)?;
        let token = |text| Value::Text(Text::trusted(text));
        let mut variables = vec![
            ("messages", conversation.messages),
            ("bos_token", token(bos)),
            ("eos_token", token(eos)),
            ("tools", conversation.tools.clone()),
            ("documents", Value::None),
            ("add_generation_prompt", Value::Bool(true)),
        ];
        if self.family.has_xml_tools {
            variables.push(("xml_tools", conversation.tools));
        }
        for (name, value) in &request.variables {
            variables.push((name, conversation::value(value)?));
        }
        let budget = Budget::new(request.messages.len(), conversation.bytes);
        self.run(&variables, budget, clock::now())
    }

    fn run(&self, variables: &[(&str, Value)], budget: Budget, now: i64) -> fault::Result<Text> {
        let context = Context { variables, now };
        evaluator::render(&self.statements, &context, budget)
    }
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

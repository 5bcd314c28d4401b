//! The chat template of a file, rendered without access to anything and with a limit of work.

use super::Message;
use super::gguf::invalid;
use crate::error::{Error, Result};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, ErrorKind, Value, context};

/// Instructions that a template may take.
const FUEL: u64 = 10_000_000;

const NAME: &str = "chat";

/// A compiled template.
#[derive(Debug)]
pub(super) struct ChatTemplate {
    environment: Environment<'static>,
}

impl ChatTemplate {
    pub(super) fn new(source: &str) -> Result<Self> {
        let fault = |error: minijinja::Error| {
            invalid(error.to_string(), "metadata `tokenizer.chat_template`")
        };
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        environment.set_syntax(syntax.map_err(fault)?);
        environment.set_fuel(Some(FUEL));
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise);
        let added = environment.add_template_owned(NAME, source.to_owned());
        added.map_err(fault)?;
        Ok(Self { environment })
    }

    /// The text of a conversation, which ends where the assistant's answer begins.
    pub(super) fn render(&self, messages: &[Message], bos: &str, eos: &str) -> Result<String> {
        let fault = |error: minijinja::Error| {
            Error::invalid(
                "messages",
                format!("refused: {error:#}"),
                "what the model's template takes",
            )
        };
        let messages: Vec<Value> = messages.iter().map(value).collect();
        let template = self.environment.get_template(NAME).map_err(fault)?;
        let context = context! {
            messages,
            bos_token => bos,
            eos_token => eos,
            add_generation_prompt => true,
        };
        template.render(context).map_err(fault)
    }
}

fn value(message: &Message) -> Value {
    context! { role => message.role.as_str(), content => message.content.as_str() }
}

/// What templates call to refuse a conversation.
fn raise(message: &str) -> std::result::Result<Value, minijinja::Error> {
    Err(minijinja::Error::new(
        ErrorKind::InvalidOperation,
        message.to_owned(),
    ))
}

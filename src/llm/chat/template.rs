//! The chat template of a file, rendered without access to anything and with limits of work and memory.

mod bounded;

use crate::error::{Error, Result};
use crate::llm::Message;
use crate::llm::gguf::invalid;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, ErrorKind, Value, context};
use std::panic::resume_unwind;
use std::thread;

/// Steps that a template may take for an empty conversation. An instruction is one step, and so
/// are 64 bytes of text that the template reads or writes, which bounds its memory, too.
const STEPS: u64 = 8_000;

/// Further steps for each message.
const MESSAGE_STEPS: u64 = 2_000;

/// Bytes of a conversation that allow one further step: each byte is read or written 16 times at most.
const STEP_BYTES: usize = 4;

const NAME: &str = "chat";

const PLACE: &str = "metadata `tokenizer.chat_template`";

/// A compiled template.
#[derive(Debug)]
pub(crate) struct ChatTemplate {
    environment: Environment<'static>,
}

impl ChatTemplate {
    pub(crate) fn new(source: &str) -> Result<Self> {
        let fault = |error: minijinja::Error| invalid(error.to_string(), PLACE);
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        environment.set_syntax(syntax.map_err(fault)?);
        bounded::limit(&mut environment);
        environment.add_function("raise_exception", raise);
        let added = environment.add_template_owned(NAME, source.to_owned());
        added.map_err(fault)?;
        Ok(Self { environment })
    }

    /// The text of a conversation, which ends where the assistant's answer begins.
    pub(crate) fn render(&self, messages: &[Message], bos: &str, eos: &str) -> Result<String> {
        let steps = steps(messages);
        let fault = |error: minijinja::Error| refused(&error, steps);
        let messages: Vec<Value> = messages.iter().map(value).collect();
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(steps));
        let template = environment.get_template(NAME).map_err(fault)?;
        let context = context! {
            messages,
            bos_token => bos,
            eos_token => eos,
            add_generation_prompt => true,
        };
        on_deep_stack(steps, || template.render(context))?.map_err(fault)
    }
}

/// Steps that need no stack of their own. Some five steps put a list into a list, and each list takes up to 600 bytes of
/// stack when it is dropped; threads have 2 MB.
const FLAT_STEPS: u64 = 12_000;

/// Bytes of a stack for each step.
const STEP_STACK: u64 = 256;

/// Runs a template on a stack that lists in lists, as many as its steps can make, do not exceed. In WebAssembly, which has
/// one stack, more of them end the module, which in the npm package has nothing but templates and JSON schemas.
fn on_deep_stack<T: Send>(steps: u64, work: impl FnOnce() -> T + Send) -> Result<T> {
    if cfg!(target_arch = "wasm32") || steps <= FLAT_STEPS {
        return Ok(work());
    }
    let bytes = steps.saturating_mul(STEP_STACK);
    let out_of_memory = |_| Error::OutOfMemory { bytes };
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(bytes as usize);
        let thread = builder.spawn_scoped(scope, work).map_err(out_of_memory)?;
        thread.join().or_else(|panic| resume_unwind(panic))
    })
}

/// The steps that rendering a conversation may take.
fn steps(messages: &[Message]) -> u64 {
    let bytes = |message: &Message| message.content.len() + message.role.as_str().len();
    let bytes: usize = messages.iter().map(bytes).sum();
    STEPS + MESSAGE_STEPS * messages.len() as u64 + (bytes / STEP_BYTES) as u64
}

/// The error of a template that exceeds a limit, which is the model's fault, or of messages that it refuses.
fn refused(error: &minijinja::Error, steps: u64) -> Error {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    match (error.kind(), source) {
        (ErrorKind::OutOfFuel, _) => {
            let limit = format!("the template takes more than {steps} steps");
            invalid(format!("{limit}, one for 64 bytes of text"), PLACE)
        }
        (ErrorKind::WriteFailure, _) => invalid(error.to_string(), PLACE),
        (_, Some(source)) => refused(source, steps),
        _ => Error::invalid(
            "messages",
            format!("refused: {error:#}"),
            "what the model's template takes",
        ),
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

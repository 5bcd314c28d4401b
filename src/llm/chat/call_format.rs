//! How families of models write calls and reasoning.

use super::text::Text;
use crate::error::Result;
use crate::llm::ToolCall;
use crate::llm::ToolFormat;
use crate::llm::tools::parsed;

/// The arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    /// A JSON object.
    Json,
    /// Named arguments of Python, whose values are JSON.
    Python,
}

/// The texts around the calls of an answer. The whole is
/// `open lead call (between call)* end close`, with a call of `before NAME after ARGUMENTS call_end call_close`; if calls
/// are `reopened`, `open lead` stand before each of them.
#[derive(Debug)]
pub(super) struct CallFormat {
    pub(super) format: ToolFormat,
    /// A control token in most vocabularies, as the other closing texts. Empty if the call begins the answer.
    pub(super) open: &'static str,
    pub(super) lead: &'static str,
    pub(super) before: &'static str,
    pub(super) after: &'static str,
    /// A control token that stands before the arguments, after `after`.
    pub(super) separator: &'static str,
    pub(super) arguments: Arguments,
    pub(super) call_end: &'static str,
    pub(super) call_close: &'static str,
    /// `None` if an answer has one call only.
    pub(super) between: Option<&'static str>,
    pub(super) reopened: bool,
    pub(super) end: &'static str,
    pub(super) close: &'static str,
}

const HERMES: CallFormat = CallFormat {
    format: ToolFormat::Hermes,
    open: "<tool_call>",
    lead: "\n",
    before: "{\"name\": \"",
    after: "\", \"arguments\": ",
    separator: "",
    arguments: Arguments::Json,
    call_end: "}\n",
    call_close: "</tool_call>",
    between: Some("\n"),
    reopened: true,
    end: "",
    close: "",
};

const MISTRAL: CallFormat = CallFormat {
    format: ToolFormat::Mistral,
    open: "[TOOL_CALLS]",
    lead: "[",
    call_end: "}",
    call_close: "",
    between: Some(", "),
    reopened: false,
    end: "]",
    ..HERMES
};

static FORMATS: [CallFormat; 6] = [
    HERMES,
    CallFormat {
        format: ToolFormat::Llama3,
        open: "",
        lead: "",
        after: "\", \"parameters\": ",
        between: None,
        reopened: false,
        end: "",
        ..MISTRAL
    },
    MISTRAL,
    CallFormat {
        format: ToolFormat::MistralArgs,
        lead: "",
        before: "",
        after: "",
        separator: "[ARGS]",
        call_end: "",
        between: Some(""),
        reopened: true,
        end: "",
        ..MISTRAL
    },
    CallFormat {
        format: ToolFormat::Lfm2,
        open: "<|tool_call_start|>",
        before: "",
        after: "(",
        arguments: Arguments::Python,
        call_end: ")",
        close: "<|tool_call_end|>",
        ..MISTRAL
    },
    CallFormat {
        format: ToolFormat::Generic,
        ..HERMES
    },
];

impl CallFormat {
    pub(super) fn of(format: ToolFormat) -> &'static Self {
        let found = FORMATS.iter().find(|row| row.format == format);
        found.unwrap_or(&FORMATS[0])
    }

    /// The text of calls as the model writes them, whose control tokens are control tokens.
    pub(super) fn write(&self, calls: &[ToolCall], to: &mut Text) -> Result<()> {
        for (index, call) in calls.iter().enumerate() {
            if let (Some(between), true) = (self.between, index > 0) {
                to.push(between, false);
            }
            if index == 0 || self.reopened {
                to.push(self.open, true);
                to.push(self.lead, false);
            }
            let name = call.name.as_str();
            for text in [self.before, name, self.after] {
                to.push(text, false);
            }
            to.push(self.separator, true);
            to.push(&self.arguments_of(call)?, false);
            to.push(self.call_end, false);
            to.push(self.call_close, true);
        }
        to.push(self.end, false);
        to.push(self.close, true);
        Ok(())
    }

    fn arguments_of(&self, call: &ToolCall) -> Result<String> {
        if self.arguments == Arguments::Json {
            return Ok(call.arguments.clone());
        }
        let arguments = parsed("tool_calls", &call.arguments)?;
        let named = arguments.as_object().into_iter().flatten();
        let named = named.map(|(name, value)| format!("{name}={value}"));
        Ok(named.collect::<Vec<_>>().join(", "))
    }
}

/// The texts around reasoning.
pub(super) type Thinking = (&'static str, &'static str);

const THINKING: [Thinking; 2] = [("<think>", "</think>"), ("[THINK]", "[/THINK]")];

/// The token that a Llama may write before a call.
pub(super) const PYTHON_TAG: &str = "<|python_tag|>";

/// The facts about a template's family that its text shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) format: ToolFormat,
    /// Whether the template writes the calls of earlier messages.
    pub(super) writes_calls: bool,
    /// Whether the template knows functions by the name that `SmolLM3` has for them.
    pub(super) has_xml_tools: bool,
    pub(super) thinking: Option<Thinking>,
}

impl Family {
    pub(super) fn of_template(source: &str) -> Self {
        let has = |text: &str| source.contains(text);
        let format = if !has("tools") || has("<function=") || has("<arg_key>") {
            ToolFormat::Generic
        } else if has("[TOOL_CALLS]") && has("[ARGS]") {
            ToolFormat::MistralArgs
        } else if has("[TOOL_CALLS]") {
            ToolFormat::Mistral
        } else if has("<|tool_call_start|>") || has("List of tools: ") {
            ToolFormat::Lfm2
        } else if has("<tool_call>") {
            ToolFormat::Hermes
        } else if has("\"parameters\": ") && has("<|start_header_id|>") {
            ToolFormat::Llama3
        } else {
            ToolFormat::Generic
        };
        Self {
            format,
            writes_calls: has("tool_calls"),
            has_xml_tools: has("xml_tools"),
            thinking: THINKING.into_iter().find(|(_, close)| has(close)),
        }
    }
}

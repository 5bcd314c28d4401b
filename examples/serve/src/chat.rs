//! Requests of `/v1/chat/completions`.

use crate::error::ApiError;
use relampago::llm::{GenerateOptions, Message, Sampling, Tool, ToolChoice};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A request. Other properties, such as `user` and `store`, change nothing.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatBody {
    pub(crate) model: Option<String>,
    messages: Value,
    #[serde(default)]
    pub(crate) stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<usize>,
    max_completion_tokens: Option<usize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<usize>,
    min_p: Option<f32>,
    presence_penalty: Option<f32>,
    frequency_penalty: Option<f32>,
    seed: Option<u64>,
    stop: Option<Stop>,
    n: Option<usize>,
    logprobs: Option<bool>,
    top_logprobs: Option<usize>,
    logit_bias: Option<Map<String, Value>>,
    response_format: Option<ResponseFormat>,
    tools: Option<Value>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    chat_template_kwargs: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema { json_schema: JsonSchema },
}

#[derive(Debug, Deserialize)]
struct JsonSchema {
    schema: Value,
}

impl ChatBody {
    /// Whether the last chunk of a stream has the usage.
    pub(crate) fn includes_usage(&self) -> bool {
        self.stream_options
            .as_ref()
            .is_some_and(|options| options.include_usage)
    }

    pub(crate) fn has_logprobs(&self) -> bool {
        self.logprobs == Some(true)
    }

    pub(crate) fn messages(&self) -> Result<Vec<Message>, ApiError> {
        let messages = Message::list_from_json(&self.messages.to_string())?;
        if messages.is_empty() {
            return Err(ApiError::invalid(
                "messages",
                "`messages` must have at least one message",
            ));
        }
        Ok(messages)
    }

    /// The options of the answer. As in `OpenAI`'s interface, the temperature is 1 by default, and an answer may be as long
    /// as the context.
    pub(crate) fn options(&self, context: usize) -> Result<GenerateOptions, ApiError> {
        if self.n.is_some_and(|n| n != 1) {
            return Err(ApiError::invalid(
                "n",
                "`n` must be 1: a request has one answer",
            ));
        }
        let most = self.max_completion_tokens.or(self.max_tokens);
        let mut options = GenerateOptions::default()
            .with_max_tokens(most.unwrap_or(context))
            .with_sampling(self.sampling()?);
        options.stop = match &self.stop {
            None => Vec::new(),
            Some(Stop::One(text)) => vec![text.clone()],
            Some(Stop::Several(texts)) => texts.clone(),
        };
        options.logprobs = self.has_logprobs().then(|| self.top_logprobs.unwrap_or(0));
        options.json_schema = match &self.response_format {
            None | Some(ResponseFormat::Text) => None,
            Some(ResponseFormat::JsonObject) => Some(r#"{"type":"object"}"#.to_owned()),
            Some(ResponseFormat::JsonSchema { json_schema }) => {
                Some(json_schema.schema.to_string())
            }
        };
        if let Some(tools) = given(self.tools.as_ref()) {
            options.tools = Tool::list_from_json(&tools.to_string())?;
        }
        if let Some(choice) = given(self.tool_choice.as_ref()) {
            options.tool_choice = ToolChoice::from_json(&choice.to_string())?;
        }
        options.parallel_tool_calls = self.parallel_tool_calls.unwrap_or(true);
        let variables = given(self.chat_template_kwargs.as_ref());
        options.chat_template_kwargs = variables.map(Value::to_string);
        Ok(options)
    }

    fn sampling(&self) -> Result<Sampling, ApiError> {
        let mut biases = Vec::new();
        for (token, bias) in self.logit_bias.iter().flatten() {
            let bias = bias.as_f64().zip(token.parse().ok());
            let (bias, token) = bias.ok_or_else(|| {
                ApiError::invalid("logit_bias", "`logit_bias` must have numbers by token ids")
            })?;
            biases.push((token, bias as f32));
        }
        let mut sampling = Sampling::default()
            .with_temperature(self.temperature.unwrap_or(1.0))
            .with_top_p(self.top_p.unwrap_or(1.0))
            .with_top_k(self.top_k.unwrap_or(0))
            .with_min_p(self.min_p.unwrap_or(0.0))
            .with_presence_penalty(self.presence_penalty.unwrap_or(0.0))
            .with_frequency_penalty(self.frequency_penalty.unwrap_or(0.0))
            .with_logit_bias(biases);
        sampling.seed = self.seed.unwrap_or_else(crate::answer::random);
        Ok(sampling)
    }
}

/// A value that is there and not null.
fn given(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

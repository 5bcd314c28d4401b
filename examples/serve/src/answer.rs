//! Answers of `/v1/chat/completions`: whole, or in chunks.

use crate::engine::{Event, Usage};
use crate::error::ApiError;
use axum::Json;
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use relampago::llm::{Candidate, FinishReason, LanguageModel, Message, TokenLogprobs};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::UnboundedReceiver;

/// Returns a random number: the keys of the standard library's hash tables are.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Properties that all parts of an answer have.
pub(crate) struct Head {
    id: String,
    created: u64,
    name: String,
    model: LanguageModel,
    pub(crate) has_logprobs: bool,
    pub(crate) includes_usage: bool,
}

impl Head {
    pub(crate) fn new(name: &str, model: &LanguageModel) -> Self {
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            id: format!("chatcmpl-{:016x}", random()),
            created: time.map_or(0, |time| time.as_secs()),
            name: name.to_owned(),
            model: model.clone(),
            has_logprobs: false,
            includes_usage: false,
        }
    }

    fn object(&self, kind: &str, choices: &Value) -> Value {
        json!({
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.name,
            "choices": choices,
        })
    }

    /// A chunk of a streamed answer.
    fn chunk(
        &self,
        delta: &Value,
        logprobs: &[TokenLogprobs],
        reason: Option<FinishReason>,
    ) -> Value {
        let choice = json!({
            "index": 0,
            "delta": delta,
            "logprobs": self.logprobs(logprobs),
            "finish_reason": reason.map(|reason| reason.to_string()),
        });
        self.object("chat.completion.chunk", &json!([choice]))
    }

    /// The probabilities of tokens.
    fn logprobs(&self, tokens: &[TokenLogprobs]) -> Value {
        if !self.has_logprobs {
            return Value::Null;
        }
        let candidate = |candidate: &Candidate| {
            let token = self.model.detokenize(&[candidate.token]);
            json!({ "token": token, "logprob": candidate.logprob, "bytes": token.as_bytes() })
        };
        let content = tokens.iter().map(|token| {
            let mut value = candidate(&token.chosen);
            value["top_logprobs"] = token.top.iter().map(candidate).collect();
            value
        });
        json!({ "content": content.collect::<Vec<_>>() })
    }
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
    })
}

/// Waits for the whole answer.
pub(crate) async fn whole(
    head: Head,
    mut events: UnboundedReceiver<Event>,
) -> Result<Response, ApiError> {
    let (mut message, mut logprobs) = (Message::assistant(""), Vec::new());
    while let Some(event) = events.recv().await {
        match event {
            Event::Begin => {}
            Event::Delta(delta, new) => {
                message.push(&delta);
                logprobs.extend(new);
            }
            Event::End(reason, usage) => {
                let choice = json!({
                    "index": 0,
                    "message": message_json(&message),
                    "logprobs": head.logprobs(&logprobs),
                    "finish_reason": reason.to_string(),
                });
                let mut answer = head.object("chat.completion", &json!([choice]));
                answer["usage"] = usage_json(usage);
                return Ok(Json(answer).into_response());
            }
            Event::Failed(error) => return Err(error),
        }
    }
    Err(ended())
}

/// A message, whose content is null if it has nothing but calls.
fn message_json(message: &Message) -> Value {
    let mut value: Value = serde_json::from_str(&message.to_json()).unwrap_or_default();
    if message.content.is_empty() && !message.tool_calls.is_empty() {
        value["content"] = Value::Null;
    }
    value
}

/// The error of an engine that ended.
fn ended() -> ApiError {
    let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
    ApiError::new(status, None, "the engine ended")
}

/// Answers in chunks, once the prompt has been read: an error before is one of the whole request.
pub(crate) async fn streamed(
    head: Head,
    mut events: UnboundedReceiver<Event>,
) -> Result<Response, ApiError> {
    match events.recv().await {
        Some(Event::Begin) => {}
        Some(Event::Failed(error)) => return Err(error),
        _ => return Err(ended()),
    }
    let mut chunks = Chunks {
        ready: VecDeque::new(),
        events,
        head,
        has_ended: false,
    };
    let role = json!({ "role": "assistant", "content": "" });
    let first = chunks.head.chunk(&role, &[], None);
    chunks.ready.push_back(first.to_string());
    let stream = stream::unfold(chunks, |mut chunks| async move {
        let data = chunks.next().await?;
        let event = sse::Event::default().data(data);
        Some((Ok::<_, Infallible>(event), chunks))
    });
    let alive = sse::KeepAlive::default();
    Ok(Sse::new(stream).keep_alive(alive).into_response())
}

/// The chunks of an answer. Dropping them cancels it.
struct Chunks {
    ready: VecDeque<String>,
    events: UnboundedReceiver<Event>,
    head: Head,
    has_ended: bool,
}

impl Chunks {
    async fn next(&mut self) -> Option<String> {
        if self.ready.is_empty() && !self.has_ended {
            let event = self.events.recv().await;
            self.add(event.unwrap_or_else(|| Event::Failed(ended())));
        }
        self.ready.pop_front()
    }

    fn add(&mut self, event: Event) {
        match event {
            Event::Begin => {}
            Event::Delta(delta, logprobs) => {
                let delta: Value = serde_json::from_str(&delta.to_json()).unwrap_or_default();
                let chunk = self.head.chunk(&delta, &logprobs, None);
                self.ready.push_back(chunk.to_string());
            }
            Event::End(reason, usage) => {
                let chunk = self.head.chunk(&json!({}), &[], Some(reason));
                self.ready.push_back(chunk.to_string());
                if self.head.includes_usage {
                    let mut chunk = self.head.object("chat.completion.chunk", &json!([]));
                    chunk["usage"] = usage_json(usage);
                    self.ready.push_back(chunk.to_string());
                }
                self.end();
            }
            Event::Failed(error) => {
                self.ready.push_back(error.to_json().to_string());
                self.end();
            }
        }
    }

    fn end(&mut self) {
        self.ready.push_back("[DONE]".to_owned());
        self.has_ended = true;
    }
}

//! The routes of the server.

use crate::answer::{self, Head};
use crate::chat::ChatBody;
use crate::embeddings::{self, EmbeddingsBody};
use crate::engine::{Conversation, Engine, Job, Texts};
use crate::error::ApiError;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use relampago::llm::LanguageModel;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The state that all requests share.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) model: LanguageModel,
    pub(crate) engine: Engine,
    /// The largest number of bytes of a request.
    pub(crate) body: usize,
}

pub(crate) fn router(server: Arc<Server>) -> Router {
    let limit = DefaultBodyLimit::max(server.body);
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/embeddings", post(embed))
        .route("/v1/models", get(models))
        .route("/v1/models/{name}", get(model))
        .route("/health", get(async || "ok"))
        .fallback(missing)
        .layer(limit)
        .with_state(server)
}

/// A request's body, or the reason why there is none.
type Body = Result<Bytes, BytesRejection>;

/// Reads a body as JSON.
fn parsed<T: DeserializeOwned>(body: Body) -> Result<T, ApiError> {
    let body =
        body.map_err(|rejection| ApiError::new(rejection.status(), None, rejection.body_text()))?;
    serde_json::from_slice(&body).map_err(|error| {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            None,
            format!("the request's JSON: {error}"),
        )
    })
}

impl Server {
    /// Checks that a request asks for the model of this server.
    fn check_name(&self, name: Option<&str>) -> Result<(), ApiError> {
        match name {
            Some(name) if name != self.name => {
                let message = format!(
                    "there is no model `{name}`; this server has `{}`",
                    self.name
                );
                let code = Some("model_not_found");
                Err(ApiError::new(StatusCode::NOT_FOUND, code, message))
            }
            _ => Ok(()),
        }
    }

    fn description(&self) -> Value {
        json!({ "id": self.name, "object": "model", "created": 0, "owned_by": "relampago" })
    }
}

async fn chat(State(server): State<Arc<Server>>, body: Body) -> Result<Response, ApiError> {
    let body: ChatBody = parsed(body)?;
    server.check_name(body.model.as_deref())?;
    let mut head = Head::new(&server.name, &server.model);
    head.has_logprobs = body.has_logprobs();
    head.includes_usage = body.includes_usage();
    let (events, answer) = mpsc::unbounded_channel();
    server.engine.add(Job::Chat(Box::new(Conversation {
        messages: body.messages()?,
        options: body.options(server.model.context_length())?,
        events,
    })))?;
    if body.stream == Some(true) {
        answer::streamed(head, answer).await
    } else {
        answer::whole(head, answer).await
    }
}

async fn embed(State(server): State<Arc<Server>>, body: Body) -> Result<Json<Value>, ApiError> {
    let body: EmbeddingsBody = parsed(body)?;
    server.check_name(body.model.as_deref())?;
    let is_base64 = body.is_base64()?;
    let (vectors, answer) = oneshot::channel();
    server.engine.add(Job::Embed(Texts {
        inputs: body.texts()?,
        options: body.options(),
        vectors,
    }))?;
    let gone = |_| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, None, "the engine ended");
    let vectors = answer.await.map_err(gone)??;
    Ok(Json(embeddings::answer(&server.name, &vectors, is_base64)))
}

async fn models(State(server): State<Arc<Server>>) -> Json<Value> {
    Json(json!({ "object": "list", "data": [server.description()] }))
}

async fn model(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    server.check_name(Some(&name))?;
    Ok(Json(server.description()))
}

async fn missing() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        Some("unknown_url"),
        "there is no such route",
    )
}

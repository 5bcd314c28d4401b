//! Errors in `OpenAI`'s form.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An error of a request.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    /// The argument that is wrong.
    param: Option<&'static str>,
    code: Option<&'static str>,
    message: String,
}

impl ApiError {
    /// The error of an argument.
    pub(crate) fn invalid(param: &'static str, message: impl Into<String>) -> Self {
        Self {
            param: Some(param),
            ..Self::new(StatusCode::BAD_REQUEST, None, message)
        }
    }

    /// An error of a status, with a code.
    pub(crate) fn new(
        status: StatusCode,
        code: Option<&'static str>,
        message: impl Into<String>,
    ) -> Self {
        let kind = match status {
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            _ if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        Self {
            status,
            kind,
            param: None,
            code,
            message: message.into(),
        }
    }

    /// The error as an object.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "error": {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        } })
    }
}

impl From<relampago::Error> for ApiError {
    fn from(error: relampago::Error) -> Self {
        use relampago::Error;
        let message = error.to_string();
        match error {
            Error::InvalidArgument { what, .. } => Self::invalid(what, message),
            Error::LimitExceeded { .. } => {
                let code = Some("context_length_exceeded");
                Self::new(StatusCode::BAD_REQUEST, code, message)
            }
            Error::Empty { .. } => Self::new(StatusCode::BAD_REQUEST, None, message),
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, None, message),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self.to_json())).into_response()
    }
}

//! Chat templates, JSON schemas and calls of functions by crates.

mod call_format;
mod formats;
mod grammar;
mod json_scanner;
mod json_schema;
mod reader;
mod request;
mod schema_keywords;
mod schema_limits;
mod template;

use super::text;
pub(crate) use json_schema::{Constraint, Vocabulary};
pub(crate) use reader::AnswerReader;
pub(crate) use request::ChatRequest;
pub(crate) use template::ChatTemplate;

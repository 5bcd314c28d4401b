//! Chat templates and JSON schemas by crates.

mod formats;
mod json_schema;
mod schema_keywords;
mod schema_limits;
mod template;

pub(crate) use json_schema::{Constraint, Vocabulary};
pub(crate) use template::ChatTemplate;

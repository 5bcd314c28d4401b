//! Chat templates and JSON schemas by crates.

mod json_schema;
mod schema_keywords;
mod template;

pub(crate) use json_schema::{Constraint, Vocabulary};
pub(crate) use template::ChatTemplate;

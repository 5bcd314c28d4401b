//! Metadata of the type that a reader expects, and the errors of other values.

use super::{Array, Gguf, Value, invalid};
use crate::error::{Error, Result};

/// The longest part of a text that an error quotes, in characters.
const MOST_QUOTED: usize = 60;

impl Gguf {
    /// Returns the value of a key as `read` gives it; `None` if the file has no such key.
    ///
    /// # Errors
    /// `InvalidModel` with the value and the requirement if `read` returns `None`.
    pub(in crate::llm) fn typed<'a, T>(
        &'a self,
        key: &str,
        read: impl Fn(Value<'a>) -> Option<T>,
        requirement: &str,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let typed = read(value);
        typed
            .map(Some)
            .ok_or_else(|| misfit(key, Some(value), requirement))
    }

    /// Returns a string of UTF-8, if the file has the key.
    ///
    /// # Errors
    /// `InvalidModel` for a value of another type.
    pub(in crate::llm) fn text(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, Value::as_str, "a string of UTF-8")
    }

    /// Returns a truth value, if the file has the key.
    ///
    /// # Errors
    /// `InvalidModel` for a value of another type.
    pub(in crate::llm) fn truth(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, Value::as_bool, "a truth value")
    }

    /// Returns an array, if the file has the key.
    ///
    /// # Errors
    /// `InvalidModel` for a value of another type.
    pub(in crate::llm) fn array(&self, key: &str, requirement: &str) -> Result<Option<Array<'_>>> {
        self.typed(key, Value::as_array, requirement)
    }

    /// Returns an array with a value for each of `len` tokens, if the file has the key.
    ///
    /// # Errors
    /// `InvalidModel` for a value of another type or length.
    pub(in crate::llm) fn array_of_tokens(
        &self,
        key: &str,
        len: usize,
    ) -> Result<Option<Array<'_>>> {
        let requirement = format!("an array of {len} values, one for each token");
        let array = self.array(key, &requirement)?;
        match array.filter(|array| array.len() != len) {
            Some(_) => Err(misfit(key, self.get(key), &requirement)),
            None => Ok(array),
        }
    }
}

/// Returns the error of a value that is missing or does not meet a requirement.
pub(in crate::llm) fn misfit(key: &str, value: Option<Value<'_>>, requirement: &str) -> Error {
    let found = value.map_or_else(|| "missing".to_owned(), described);
    let what = format!("it is {found}, but must be {requirement}");
    invalid(what, format!("metadata `{key}`"))
}

/// Returns a value as an error names it.
pub(in crate::llm) fn described(value: Value<'_>) -> String {
    match value {
        Value::Unsigned(value) => value.to_string(),
        Value::Signed(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::String(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let quoted: String = text.chars().take(MOST_QUOTED).collect();
            let cut = if quoted.len() < text.len() { "…" } else { "" };
            format!("the string `{quoted}{cut}`")
        }
        Value::Array(array) => format!("an array of {} values", array.len()),
    }
}

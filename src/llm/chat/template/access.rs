//! Attributes and elements of values, as jinja2 finds them, and their elements one by one.

use super::budget::Budget;
use super::fault::{Result, refused, unsupported};
use super::methods::method;
use super::text::Text;
use super::value::Value;

/// `value.name`: a method, or else the value of a key.
pub(super) fn attribute(value: &Value, name: &str, budget: &Budget) -> Result<Value> {
    value.check_usable()?;
    if name.starts_with('_') {
        return unsupported(format!("the private attribute `{name}`"));
    }
    if let Some(method) = method(value, name)? {
        return Ok(method);
    }
    if let Value::Dict(dict) = value {
        let key = Value::Text(Text::untrusted(name));
        if let Some(value) = dict.get(&key, budget)? {
            return Ok(value.clone());
        }
    }
    Ok(missing(value, name))
}

/// `value[key]`: an element, or else a method.
pub(super) fn item(value: &Value, key: &Value, budget: &Budget) -> Result<Value> {
    value.check_usable()?;
    match value {
        Value::Dict(dict) if key.check_hashable().is_ok() => {
            if let Some(value) = dict.get(key, budget)? {
                return Ok(value.clone());
            }
        }
        Value::Generator(_) => return refused("an element of a generator: use `| list` before"),
        Value::Text(text) => {
            if let Some(index) = key.as_integer() {
                budget.read(text.len())?;
                return Ok(character(text, index).unwrap_or_else(|| missing(value, "a character")));
            }
        }
        _ => {
            if let (Some(elements), Some(index)) = (value.as_elements(), key.as_integer()) {
                let element = at(elements.len(), index).map(|at| elements[at].clone());
                return Ok(element.unwrap_or_else(|| missing(value, &index.to_string())));
            }
        }
    }
    if let Value::Text(name) = key {
        if let Some(method) = method(value, name.as_str())? {
            return Ok(method);
        }
        return Ok(missing(value, name.as_str()));
    }
    Ok(Value::undefined(format!(
        "an element of {} by {}",
        value.kind(),
        key.kind()
    )))
}

fn missing(value: &Value, name: &str) -> Value {
    // A name of a message may be long.
    let name: String = name.chars().take(40).collect();
    Value::undefined(format!("`{name}` of {}", value.kind()))
}

/// The position of an index, which counts from the end if it is negative.
fn at(len: usize, index: i64) -> Option<usize> {
    let at = if index < 0 {
        index.checked_add(len as i64)?
    } else {
        index
    };
    usize::try_from(at).ok().filter(|at| *at < len)
}

fn character(text: &Text, index: i64) -> Option<Value> {
    let source = text.as_str();
    let (at, character) = match usize::try_from(index) {
        Ok(index) => source.char_indices().nth(index)?,
        Err(_) => source.char_indices().rev().nth((-(index + 1)) as usize)?,
    };
    Some(Value::Text(text.part(at..at + character.len_utf8())))
}

/// The value of a path such as `function.name`, as filters take it.
pub(super) fn path(value: &Value, path: &Value, budget: &Budget) -> Result<Value> {
    let Value::Text(path) = path else {
        return item(value, path, budget);
    };
    let mut value = value.clone();
    for part in path.as_str().split('.') {
        let is_index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let key = match part.parse() {
            Ok(index) if is_index => Value::Integer(index),
            _ => Value::Text(Text::untrusted(part)),
        };
        budget.step(1)?;
        value = item(&value, &key, budget)?;
    }
    Ok(value)
}

/// The elements of a value that can be looped over.
pub(super) fn elements(value: &Value, budget: &Budget) -> Result<Vec<Value>> {
    Ok(match value {
        Value::Undefined(_) => Vec::new(),
        Value::List(list) | Value::Tuple(list) | Value::Generator(list) => {
            budget.step(list.elements.len())?;
            list.elements.clone()
        }
        Value::Dict(dict) => {
            budget.step(dict.entries.len())?;
            dict.entries.iter().map(|(key, _)| key.clone()).collect()
        }
        Value::Text(text) => {
            budget.step(text.len())?;
            text.characters().map(Value::Text).collect()
        }
        Value::Safe(_) => return unsupported("the characters of a string after `safe`"),
        _ => return refused(format!("a loop over {}", value.kind())),
    })
}

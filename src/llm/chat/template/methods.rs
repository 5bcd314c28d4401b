//! The methods of texts, lists and mappings.

mod text;

use super::budget::Budget;
use super::fault::{Fault, Result, refused, unsupported};
use super::text::Text;
use super::value::Value;
pub(super) use text::{capitalized, lower, stripped, upper};

/// The methods of Python's lists and mappings that the sandbox forbids, since they change them.
const CHANGING: [&str; 14] = [
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "update",
    "add",
    "discard",
    "fromkeys",
];

const OF_DICTS: [&str; 5] = ["copy", "get", "items", "keys", "values"];
const OF_LISTS: [&str; 3] = ["copy", "count", "index"];

/// The method of a value, if its type has one of this name.
pub(super) fn method(value: &Value, name: &str) -> Result<Option<Value>> {
    let has = match value {
        Value::Text(_) => text::METHODS.contains(&name),
        Value::List(_) => {
            forbid(name)?;
            OF_LISTS.contains(&name)
        }
        Value::Tuple(_) => matches!(name, "count" | "index"),
        Value::Dict(_) => {
            let is_of_list = matches!(
                name,
                "append" | "extend" | "insert" | "remove" | "reverse" | "sort"
            );
            if !is_of_list && !matches!(name, "add" | "discard") {
                forbid(name)?;
            }
            OF_DICTS.contains(&name)
        }
        _ => false,
    };
    Ok(has.then(|| value.clone().method(name)))
}

fn forbid(name: &str) -> Result<()> {
    if CHANGING.contains(&name) {
        return unsupported(format!("the changing method `{name}`"));
    }
    Ok(())
}

/// Calls a method of a value.
pub(super) fn call(
    value: &Value,
    name: &str,
    arguments: &Values,
    budget: &Budget,
) -> Result<Value> {
    match value {
        Value::Text(text) => text::call(text, name, arguments, budget),
        Value::Dict(dict) => {
            budget.step(dict.entries.len())?;
            let entries = dict.entries.iter();
            match name {
                "keys" => Value::list(entries.map(|(key, _)| key.clone()).collect()),
                "values" => Value::list(entries.map(|(_, value)| value.clone()).collect()),
                "items" => items(value, budget),
                "copy" => Ok(value.clone()),
                _ => {
                    let [key, default] = arguments.take("get", ["key", "default"])?;
                    let key = key.ok_or_else(|| missing("get", "key"))?;
                    let value = dict.get(key, budget)?;
                    Ok(value.or(default).cloned().unwrap_or(Value::None))
                }
            }
        }
        _ => of_list(
            value.as_elements().unwrap_or_default(),
            value,
            name,
            arguments,
            budget,
        ),
    }
}

fn of_list(
    elements: &[Value],
    list: &Value,
    name: &str,
    arguments: &Values,
    budget: &Budget,
) -> Result<Value> {
    budget.step(elements.len())?;
    if name == "copy" {
        return Ok(list.clone());
    }
    let [wanted] = arguments.take(name, ["value"])?;
    let wanted = wanted.ok_or_else(|| missing(name, "value"))?;
    let mut count = 0;
    for (index, element) in elements.iter().enumerate() {
        if element.equals(wanted, budget)? {
            count += 1;
            if name == "index" {
                return Ok(Value::Integer(index as i64));
            }
        }
    }
    match name {
        "count" => Ok(Value::Integer(count)),
        _ => refused("`index` of a value that the list does not have"),
    }
}

/// The keys and values of a mapping, as tuples.
pub(super) fn items(value: &Value, budget: &Budget) -> Result<Value> {
    let Value::Dict(dict) = value else {
        return match value {
            Value::Undefined(_) => Value::list(Vec::new()),
            _ => refused(format!("the items of {}", value.kind())),
        };
    };
    budget.step(dict.entries.len())?;
    let pairs = dict.entries.iter();
    let pairs = pairs.map(|(key, value)| Value::tuple(vec![key.clone(), value.clone()]));
    Value::list(pairs.collect::<Result<_>>()?)
}

/// The arguments of a call.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) positional: Vec<Value>,
    pub(super) named: Vec<(String, Value)>,
}

impl Values {
    /// The arguments of these names, by position or by name.
    pub(super) fn take<const N: usize>(
        &self,
        function: &str,
        names: [&str; N],
    ) -> Result<[Option<&Value>; N]> {
        if self.positional.len() > N {
            return refused(format!("`{function}` has more than {N} arguments"));
        }
        let mut taken = [None; N];
        for (taken, value) in taken.iter_mut().zip(&self.positional) {
            *taken = Some(value);
        }
        for (name, value) in &self.named {
            let Some(at) = names.iter().position(|other| other == name) else {
                return refused(format!("`{function}` has no argument `{name}`"));
            };
            if taken[at].is_some() {
                return refused(format!("`{function}` has the argument `{name}` twice"));
            }
            taken[at] = Some(value);
        }
        Ok(taken)
    }
}

/// The error of a missing argument.
pub(super) fn missing(function: &str, argument: &str) -> Fault {
    Fault::Refused(format!("`{function}` lacks its argument `{argument}`"))
}

/// The text that an argument must be.
pub(super) fn text_argument<'a>(function: &str, value: Option<&'a Value>) -> Result<&'a Text> {
    match value {
        Some(Value::Text(text)) => Ok(text),
        Some(value) => refused(format!(
            "`{function}` of {} in place of a string",
            value.kind()
        )),
        None => refused(format!("`{function}` lacks an argument that is a string")),
    }
}

/// The integer that an argument must be, if it is there.
pub(super) fn integer_argument(function: &str, value: Option<&Value>) -> Result<Option<i64>> {
    let Some(value) = value else {
        return Ok(None);
    };
    let fault = || {
        Fault::Refused(format!(
            "`{function}` of {} in place of an integer",
            value.kind()
        ))
    };
    value.as_integer().map(Some).ok_or_else(fault)
}

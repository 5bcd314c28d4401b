//! The tests of templates: `value is defined`.

use super::budget::Budget;
use super::display::text_of;
use super::fault::{Fault, Result, unsupported};
use super::methods::Values;
use super::operators::{arithmetic, compare};
use super::syntax::{Comparison, Operator};
use super::value::Value;

/// Whether a value passes a test.
pub(super) fn is(name: &str, value: &Value, arguments: &Values, budget: &Budget) -> Result<bool> {
    budget.step(1)?;
    let argument = || {
        let [argument] = arguments.take(name, ["other"])?;
        let missing = || Fault::Refused(format!("the test `{name}` lacks its argument"));
        argument.ok_or_else(missing)
    };
    let compared = |comparison| compare(value, comparison, argument()?, budget);
    Ok(match name {
        "eq" | "equalto" => compared(Comparison::Equal)?,
        "ne" => compared(Comparison::NotEqual)?,
        "lt" | "lessthan" => compared(Comparison::Less)?,
        "le" => compared(Comparison::LessOrEqual)?,
        "gt" | "greaterthan" => compared(Comparison::Greater)?,
        "ge" => compared(Comparison::GreaterOrEqual)?,
        "in" => compared(Comparison::In)?,
        "sameas" => same(value, argument()?)?,
        "divisibleby" => has_remainder(value, argument()?, 0, budget)?,
        "odd" => has_remainder(value, &Value::Integer(2), 1, budget)?,
        "even" => has_remainder(value, &Value::Integer(2), 0, budget)?,
        "lower" | "upper" => {
            let text = text_of(value, budget)?;
            budget.read(text.len())?;
            is_of_case(text.as_str(), name == "upper")
        }
        _ => of_kind(name, value)?,
    })
}

fn of_kind(name: &str, value: &Value) -> Result<bool> {
    let is_sequence = matches!(
        value,
        Value::Undefined(_) | Value::Text(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_)
    );
    Ok(match name {
        "defined" => !matches!(value, Value::Undefined(_)),
        "undefined" => matches!(value, Value::Undefined(_)),
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "integer" => matches!(value, Value::Integer(_)),
        "float" => matches!(value, Value::Float(_)),
        "number" => value.as_number().is_some(),
        "string" => matches!(value, Value::Text(_) | Value::Safe(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        "sequence" => is_sequence || matches!(value, Value::Safe(_)),
        "iterable" => {
            is_sequence || matches!(value, Value::Generator(_) | Value::Safe(_) | Value::Loop(_))
        }
        "callable" => {
            matches!(
                value,
                Value::Macro(_) | Value::Function(_) | Value::Method(_) | Value::Undefined(_)
            )
        }
        _ => return unsupported(format!("the test `{name}`")),
    })
}

/// Whether two values are the same object, as far as that does not depend on the implementation of Python.
fn same(a: &Value, b: &Value) -> Result<bool> {
    Ok(match (a, b) {
        (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::None | Value::Bool(_), _) | (_, Value::None | Value::Bool(_)) => false,
        _ => return unsupported(format!("the test `sameas` of {}", a.kind())),
    })
}

fn has_remainder(value: &Value, divisor: &Value, wanted: i64, budget: &Budget) -> Result<bool> {
    let remainder = arithmetic(value.clone(), Operator::Remainder, divisor, budget)?;
    remainder.equals(&Value::Integer(wanted), budget)
}

/// Whether a text has upper-case or lower-case letters, and all of them have the wanted case.
fn is_of_case(text: &str, upper: bool) -> bool {
    let is = |c: char| {
        if upper {
            c.is_uppercase()
        } else {
            c.is_lowercase()
        }
    };
    let is_other = |c: char| {
        if upper {
            c.is_lowercase()
        } else {
            c.is_uppercase()
        }
    };
    text.chars().any(is) && !text.chars().any(is_other)
}

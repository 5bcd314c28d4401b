//! Operators on values, with Python's meaning.

use super::budget::Budget;
use super::display::text_of;
use super::fault::{Fault, Result, refused, unsupported};
use super::format::printf;
use super::syntax::{Comparison, Operator};
use super::text::Text;
use super::value::Value;
use std::cmp::Ordering;

/// The result of an operator between two values.
pub(super) fn arithmetic(
    left: Value,
    operator: Operator,
    right: &Value,
    budget: &Budget,
) -> Result<Value> {
    left.check_usable()?;
    if operator == Operator::Remainder
        && let Value::Text(text) = &left
    {
        return formatted(text, right, budget).map(Value::Text);
    }
    right.check_usable()?;
    match (operator, left, right) {
        (Operator::Add, Value::Text(left), Value::Text(right)) => {
            append(left, right, budget).map(Value::Text)
        }
        (Operator::Add, Value::List(left), Value::List(right)) => {
            Value::list(joined(&left.elements, &right.elements, budget)?)
        }
        (Operator::Add, Value::Tuple(left), Value::Tuple(right)) => {
            Value::tuple(joined(&left.elements, &right.elements, budget)?)
        }
        (Operator::Multiply, Value::Text(text), times) if times.as_integer().is_some() => {
            repeat_text(&text, times, budget)
        }
        (Operator::Multiply, times, Value::Text(text)) if times.as_integer().is_some() => {
            repeat_text(text, &times, budget)
        }
        (Operator::Multiply, Value::List(list), times) if times.as_integer().is_some() => {
            repeat_list(&list.elements, times, budget)
        }
        (Operator::Multiply, times, Value::List(list)) if times.as_integer().is_some() => {
            repeat_list(&list.elements, &times, budget)
        }
        (_, left, right) => numbers(&left, operator, right),
    }
}

/// `text % value`
fn formatted(text: &Text, value: &Value, budget: &Budget) -> Result<Text> {
    let one = std::slice::from_ref(value);
    match value {
        Value::Tuple(list) => printf(text, &list.elements, &[], budget),
        Value::Dict(dict) if text.as_str().contains("%(") => {
            budget.step(dict.entries.len())?;
            let entries = dict.entries.iter();
            let named = entries.filter_map(|(key, value)| match key {
                Value::Text(key) => Some((key.as_str().to_owned(), value.clone())),
                _ => None,
            });
            printf(text, one, &named.collect::<Vec<_>>(), budget)
        }
        _ => printf(text, one, &[], budget),
    }
}

/// Appends a text, in place if nothing else has the first one.
pub(super) fn append(mut left: Text, right: &Text, budget: &Budget) -> Result<Text> {
    budget.write(right.size())?;
    if left.is_shared() {
        budget.write(left.size())?;
    }
    left.push_text(right);
    Ok(left)
}

/// `a ~ b`
pub(super) fn concat(left: Value, right: &Value, budget: &Budget) -> Result<Value> {
    let right = text_of(right, budget)?;
    let left = match left {
        // Moved, so that it can be extended in place.
        Value::Text(text) => text,
        other => text_of(&other, budget)?,
    };
    append(left, &right, budget).map(Value::Text)
}

fn joined(left: &[Value], right: &[Value], budget: &Budget) -> Result<Vec<Value>> {
    budget.step(left.len() + right.len())?;
    Ok([left, right].concat())
}

fn repeat_text(text: &Text, times: &Value, budget: &Budget) -> Result<Value> {
    let times = times.as_integer().unwrap_or_default().max(0) as usize;
    budget.write_times(text.size(), times)?;
    budget.step(times)?;
    let mut repeated = Text::default();
    (0..times).for_each(|_| repeated.push_text(text));
    Ok(Value::Text(repeated))
}

fn repeat_list(elements: &[Value], times: &Value, budget: &Budget) -> Result<Value> {
    let times = times.as_integer().unwrap_or_default().max(0) as usize;
    let len = elements.len().saturating_mul(times);
    budget.step(len)?;
    Value::list(elements.iter().cycle().take(len).cloned().collect())
}

fn numbers(left: &Value, operator: Operator, right: &Value) -> Result<Value> {
    if let (Some(a), Some(b)) = (left.as_integer(), right.as_integer()) {
        return integers(a, operator, b);
    }
    let (Some(a), Some(b)) = (left.as_number(), right.as_number()) else {
        let operator = symbol(operator);
        let (left, right) = (left.kind(), right.kind());
        return refused(format!("`{operator}` of {left} and {right}"));
    };
    if b == 0.0
        && matches!(
            operator,
            Operator::Divide | Operator::FloorDivide | Operator::Remainder
        )
    {
        return refused("a division by zero");
    }
    Ok(Value::Float(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::FloorDivide => float_floor_divided(a, b),
        Operator::Remainder => float_remainder(a, b),
        Operator::Power => return power(a, b),
    }))
}

fn power(a: f64, b: f64) -> Result<Value> {
    let power = a.powf(b);
    match power {
        _ if a == 0.0 && b < 0.0 => refused("a division by zero"),
        _ if power.is_nan() && !a.is_nan() && !b.is_nan() => unsupported("a complex number"),
        _ if power.is_infinite() && a.is_finite() && b.is_finite() => {
            refused("a number beyond floats")
        }
        _ => Ok(Value::Float(power)),
    }
}

/// The remainder, which has the sign of the divisor.
fn float_remainder(a: f64, b: f64) -> f64 {
    let remainder = a % b;
    match remainder == 0.0 {
        true => 0.0_f64.copysign(b),
        false if (remainder < 0.0) != (b < 0.0) => remainder + b,
        false => remainder,
    }
}

/// The quotient, rounded down, as Python computes it of the remainder.
fn float_floor_divided(a: f64, b: f64) -> f64 {
    let quotient = (a - float_remainder(a, b)) / b;
    if quotient == 0.0 {
        return 0.0_f64.copysign(a / b);
    }
    let floor = quotient.floor();
    if quotient - floor > 0.5 {
        floor + 1.0
    } else {
        floor
    }
}

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::FloorDivide => "//",
        Operator::Remainder => "%",
        Operator::Power => "**",
    }
}

fn integers(a: i64, operator: Operator, b: i64) -> Result<Value> {
    let divides = matches!(
        operator,
        Operator::Divide | Operator::FloorDivide | Operator::Remainder
    );
    if b == 0 && divides {
        return refused("a division by zero");
    }
    let number = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => return Ok(Value::Float(a as f64 / b as f64)),
        Operator::FloorDivide => floor_divided(a, b),
        Operator::Remainder => {
            floor_divided(a, b).map(|whole| a.wrapping_sub(whole.wrapping_mul(b)))
        }
        Operator::Power if b < 0 => return power(a as f64, b as f64),
        Operator::Power => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
    };
    let beyond = || Fault::Unsupported("an integer of more than 64 bits".to_owned());
    number.map(Value::Integer).ok_or_else(beyond)
}

/// The quotient, rounded down.
fn floor_divided(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let is_below = a % b != 0 && (a < 0) != (b < 0);
    Some(quotient - i64::from(is_below))
}

/// `-value`
pub(super) fn negative(value: &Value) -> Result<Value> {
    value.check_usable()?;
    match (value.as_integer(), value) {
        (Some(number), _) => integers(0, Operator::Subtract, number),
        (None, Value::Float(number)) => Ok(Value::Float(-number)),
        _ => refused(format!("`-` of {}", value.kind())),
    }
}

/// `+value`
pub(super) fn positive(value: &Value) -> Result<Value> {
    value.check_usable()?;
    match (value.as_integer(), value) {
        (Some(number), _) => Ok(Value::Integer(number)),
        (None, Value::Float(number)) => Ok(Value::Float(*number)),
        _ => refused(format!("`+` of {}", value.kind())),
    }
}

/// The result of a comparison.
pub(super) fn compare(
    left: &Value,
    comparison: Comparison,
    right: &Value,
    budget: &Budget,
) -> Result<bool> {
    let order = || left.order(right, budget);
    Ok(match comparison {
        Comparison::Equal => left.equals(right, budget)?,
        Comparison::NotEqual => !left.equals(right, budget)?,
        Comparison::Less => order()? == Some(Ordering::Less),
        Comparison::LessOrEqual => order()?.is_some_and(Ordering::is_le),
        Comparison::Greater => order()? == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => order()?.is_some_and(Ordering::is_ge),
        Comparison::In => right.contains(left, budget)?,
        Comparison::NotIn => !right.contains(left, budget)?,
    })
}

/// `value[start:stop:step]`
pub(super) fn slice(value: &Value, bounds: [Option<i64>; 3], budget: &Budget) -> Result<Value> {
    if bounds[2] == Some(0) {
        return refused("a slice has the step 0");
    }
    if let Value::Text(text) = value {
        budget.write(text.size())?;
        if bounds[2].unwrap_or(1) == 1 {
            return Ok(Value::Text(text_slice(text, bounds)));
        }
        let places: Vec<(usize, char)> = text.as_str().char_indices().collect();
        budget.step(places.len())?;
        let mut sliced = Text::default();
        for at in indices(places.len(), bounds) {
            let (at, character) = places[at];
            sliced.push_part(text, at..at + character.len_utf8());
        }
        return Ok(Value::Text(sliced));
    }
    let Some(elements) = value.as_elements() else {
        value.check_usable()?;
        return refused(format!("a slice of {}", value.kind()));
    };
    budget.step(elements.len())?;
    let sliced = indices(elements.len(), bounds);
    let sliced = sliced.into_iter().map(|at| elements[at].clone()).collect();
    match value {
        Value::Tuple(_) => Value::tuple(sliced),
        _ => Value::list(sliced),
    }
}

/// A slice of a text without a step.
fn text_slice(text: &Text, bounds: [Option<i64>; 3]) -> Text {
    let len = text.as_str().chars().count();
    let [start, stop] = limits(len, bounds);
    let byte = |index: usize| {
        let mut places = text.as_str().char_indices();
        places.nth(index).map_or(text.len(), |(at, _)| at)
    };
    text.part(byte(start)..byte(stop.max(start)))
}

/// The start and the stop of a slice with the step 1.
fn limits(len: usize, [start, stop, _]: [Option<i64>; 3]) -> [usize; 2] {
    let limit = |index: i64| {
        if index < 0 {
            len.saturating_sub(index.unsigned_abs() as usize)
        } else {
            len.min(index as usize)
        }
    };
    [start.map_or(0, limit), stop.map_or(len, limit)]
}

/// The indices that a slice takes.
fn indices(len: usize, bounds: [Option<i64>; 3]) -> Vec<usize> {
    let [start, stop, step] = bounds;
    let step = step.unwrap_or(1);
    if step > 0 {
        let [start, stop] = limits(len, bounds);
        return (start..stop).step_by(step as usize).collect();
    }
    let len = len as i64;
    let limit = |index: i64| {
        if index < 0 {
            (index.saturating_add(len)).max(-1)
        } else {
            index.min(len - 1)
        }
    };
    let (start, stop) = (start.map_or(len - 1, limit), stop.map_or(-1, limit));
    let mut at = start;
    let mut indices = Vec::new();
    while at > stop {
        indices.push(at as usize);
        at = at.saturating_add(step);
    }
    indices
}

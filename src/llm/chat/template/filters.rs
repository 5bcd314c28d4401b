//! The filters of templates.

mod sequences;

use super::budget::Budget;
use super::display::text_of;
use super::fault::{Fault, Result, refused, unsupported};
use super::json::{Options, json};
use super::methods::{self, Values, integer_argument, lower, missing, text_argument, upper};
use super::text::Text;
use super::value::Value;

/// Applies a filter to a value.
pub(super) fn filter(
    name: &str,
    value: &Value,
    arguments: &Values,
    budget: &Budget,
) -> Result<Value> {
    budget.step(1)?;
    match name {
        "lower" | "upper" | "capitalize" | "title" | "string" | "trim" | "replace" | "center"
        | "indent" | "format" | "safe" | "escape" | "e" => of_text(name, value, arguments, budget),
        "abs" | "int" | "float" | "round" => of_number(name, value, arguments),
        "default" | "d" => default(value, arguments),
        "length" | "count" => length(value, budget),
        "items" => match methods::items(value, budget)? {
            Value::List(list) => Value::generator(list.elements.clone()),
            other => Ok(other),
        },
        "attr" => {
            let [attribute] = arguments.take(name, ["name"])?;
            let attribute = text_argument(name, attribute)?.as_str();
            value.check_usable()?;
            let method = methods::method(value, attribute)?;
            Ok(method.unwrap_or_else(|| Value::undefined(format!("`{attribute}`"))))
        }
        "tojson" => {
            let options = json_options(arguments, budget)?;
            json(value, &options, budget).map(Value::Text)
        }
        _ => sequences::filter(name, value, arguments, budget),
    }
}

fn of_text(name: &str, value: &Value, arguments: &Values, budget: &Budget) -> Result<Value> {
    if matches!(value, Value::Safe(_)) && !matches!(name, "safe" | "string") {
        return unsupported(format!("the filter `{name}` after `safe`"));
    }
    let text = text_of(value, budget)?;
    budget.write(text.size())?;
    Ok(Value::Text(match name {
        "lower" => lower(&text),
        "upper" => upper(&text),
        "capitalize" => methods::capitalized(&text),
        "title" => title(&text),
        "string" | "escape" | "e" if matches!(value, Value::Safe(_)) => return Ok(value.clone()),
        "string" => text,
        "safe" => return Ok(Value::Safe(text)),
        "escape" | "e" => return escape(&text, budget).map(Value::Safe),
        "trim" => {
            let [characters] = arguments.take(name, ["chars"])?;
            methods::stripped(&text, characters, (true, true))?
        }
        "replace" => {
            let [old, new, count] = arguments.take(name, ["old", "new", "count"])?;
            let texts = [
                old.ok_or_else(|| missing(name, "old"))?,
                new.ok_or_else(|| missing(name, "new"))?,
            ];
            let mut positional = Vec::new();
            for text in texts {
                positional.push(Value::Text(text_of(text, budget)?));
            }
            positional.extend(count.filter(|count| !matches!(count, Value::None)).cloned());
            let arguments = Values {
                positional,
                named: Vec::new(),
            };
            return methods::call(&Value::Text(text), name, &arguments, budget);
        }
        "center" => {
            let [width] = arguments.take(name, ["width"])?;
            let width = width.cloned().unwrap_or(Value::Integer(80));
            let arguments = Values {
                positional: vec![width],
                named: Vec::new(),
            };
            return methods::call(&Value::Text(text), name, &arguments, budget);
        }
        "indent" => {
            text_argument(name, Some(value))?;
            indent(&text, arguments, budget)?
        }
        _ => super::format::printf(&text, &arguments.positional, &arguments.named, budget)?,
    }))
}

/// The text with each word's first letter in upper case, as the filter `title` makes it.
fn title(text: &Text) -> Text {
    let lower = lower(text);
    let mut starts_word = true;
    let mut at = 0;
    text.map(|_, character, to| {
        let len: usize = character.to_lowercase().map(char::len_utf8).sum();
        if starts_word {
            to.extend(character.to_uppercase());
        } else {
            to.push_str(&lower.as_str()[at..at + len]);
        }
        at += len;
        let separates = matches!(character, '-' | '(' | '{' | '[' | '<');
        starts_word = separates || super::lexer::is_space(character);
    })
}

/// The text for HTML.
fn escape(text: &Text, budget: &Budget) -> Result<Text> {
    // An escape of one byte has five.
    budget.write(text.size() * 2)?;
    Ok(text.map(|_, character, to| match character {
        '&' => to.push_str("&amp;"),
        '<' => to.push_str("&lt;"),
        '>' => to.push_str("&gt;"),
        '\'' => to.push_str("&#39;"),
        '"' => to.push_str("&#34;"),
        other => to.push(other),
    }))
}

/// The text with spaces before each line, except the first one and empty ones.
fn indent(text: &Text, arguments: &Values, budget: &Budget) -> Result<Text> {
    let [width, first, blank] = arguments.take("indent", ["width", "first", "blank"])?;
    let is_true = |value: Option<&Value>| value.is_some_and(Value::is_true);
    let mut space = Text::default();
    if let Some(Value::Text(text)) = width {
        space = text.clone();
    } else {
        let width = integer_argument("indent", width)?.unwrap_or(4).max(0) as usize;
        budget.write(width)?;
        space.push(&" ".repeat(width), true);
    }
    let mut lines = Text::default();
    lines.push_text(text);
    lines.push("\n", true);
    let keeps_ends = Values::default();
    let lines = methods::call(&Value::Text(lines), "splitlines", &keeps_ends, budget)?;
    let lines = lines.as_elements().unwrap_or_default();
    budget.write_times(space.len() + 1, lines.len())?;
    let mut indented = Text::default();
    if is_true(first) {
        indented.push_text(&space);
    }
    for (index, line) in lines.iter().enumerate() {
        let line = text_argument("indent", Some(line))?;
        if index > 0 {
            indented.push("\n", false);
            if is_true(blank) || !line.is_empty() {
                indented.push_text(&space);
            }
        }
        indented.push_text(line);
    }
    Ok(indented)
}

fn default(value: &Value, arguments: &Values) -> Result<Value> {
    let [default, boolean] = arguments.take("default", ["default_value", "boolean"])?;
    let takes = matches!(value, Value::Undefined(_))
        || (boolean.is_some_and(Value::is_true) && !value.is_true());
    if !takes {
        return Ok(value.clone());
    }
    Ok(default.cloned().unwrap_or(Value::Text(Text::default())))
}

fn length(value: &Value, budget: &Budget) -> Result<Value> {
    let len = match value {
        Value::Undefined(_) => 0,
        Value::Text(text) | Value::Safe(text) => {
            budget.read(text.len())?;
            text.as_str().chars().count()
        }
        Value::Dict(dict) => dict.entries.len(),
        _ => match value.as_elements() {
            Some(elements) => elements.len(),
            None => return refused(format!("the length of {}", value.kind())),
        },
    };
    Ok(Value::Integer(len as i64))
}

fn json_options(arguments: &Values, budget: &Budget) -> Result<Options> {
    let names = ["ensure_ascii", "indent", "separators", "sort_keys"];
    let [ascii, indent, separators, sort_keys] = arguments.take("tojson", names)?;
    let is_true = |value: Option<&Value>| value.is_some_and(Value::is_true);
    let indent = match indent {
        None | Some(Value::None) => None,
        Some(Value::Text(text)) => Some(text.clone()),
        value => {
            let width = integer_argument("tojson", value)?.unwrap_or(0).max(0) as usize;
            budget.write(width)?;
            Some(Text::trusted(&" ".repeat(width)))
        }
    };
    let between = if indent.is_some() { "," } else { ", " };
    let separators = match separators {
        None | Some(Value::None) => [Text::trusted(between), Text::trusted(": ")],
        Some(value) => match value.as_elements() {
            Some([Value::Text(between), Value::Text(after)]) => [between.clone(), after.clone()],
            _ => return refused("`tojson` with separators that are not two strings"),
        },
    };
    Ok(Options {
        ascii: is_true(ascii),
        indent,
        separators,
        sort_keys: is_true(sort_keys),
    })
}

fn of_number(name: &str, value: &Value, arguments: &Values) -> Result<Value> {
    value.check_usable()?;
    match name {
        "abs" => match (value.as_integer().and_then(i64::checked_abs), value) {
            (Some(number), _) => Ok(Value::Integer(number)),
            (None, Value::Float(number)) => Ok(Value::Float(number.abs())),
            _ => refused(format!("`abs` of {}", value.kind())),
        },
        "int" => {
            let [default, base] = arguments.take(name, ["default", "base"])?;
            if integer_argument(name, base)?.unwrap_or(10) != 10 {
                return unsupported("the filter `int` with a base");
            }
            let number = integer(value)?;
            let default = default.cloned().unwrap_or(Value::Integer(0));
            Ok(number.map_or(default, Value::Integer))
        }
        "float" => {
            let [default] = arguments.take(name, ["default"])?;
            let default = default.cloned().unwrap_or(Value::Float(0.0));
            Ok(number(value).map_or(default, Value::Float))
        }
        _ => round(value, arguments),
    }
}

/// The number that a value is or that its text stands for.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Text(text) => {
            let text = text.as_str().trim_matches(super::lexer::is_space);
            text.replace('_', "").parse().ok()
        }
        _ => value.as_number(),
    }
}

/// The integer that a value is or that its text stands for.
fn integer(value: &Value) -> Result<Option<i64>> {
    if let Some(number) = value.as_integer() {
        return Ok(Some(number));
    }
    if let Value::Text(text) = value {
        let text = text.as_str().trim_matches(super::lexer::is_space);
        if let Ok(number) = text.parse() {
            return Ok(Some(number));
        }
    }
    match number(value) {
        Some(number) if number.abs() < 9e18 => Ok(Some(number.trunc() as i64)),
        Some(number) if number.is_finite() => unsupported("an integer of more than 64 bits"),
        _ => Ok(None),
    }
}

fn round(value: &Value, arguments: &Values) -> Result<Value> {
    let [precision, method] = arguments.take("round", ["precision", "method"])?;
    let precision = integer_argument("round", precision)?.unwrap_or(0);
    let Ok(digits) = u8::try_from(precision) else {
        return unsupported("the filter `round` with a negative precision");
    };
    let method = method
        .map(|method| text_argument("round", Some(method)))
        .transpose()?;
    let method = method.map_or("common", Text::as_str);
    let fault = || Fault::Refused(format!("`round` of {}", value.kind()));
    let number = value.as_number().ok_or_else(fault)?;
    let scale = 10f64.powi(i32::from(digits));
    Ok(match (method, value.as_integer()) {
        ("common", Some(number)) => Value::Integer(number),
        ("common", None) => {
            let rounded = format!("{number:.*}", usize::from(digits));
            Value::Float(rounded.parse().unwrap_or(number))
        }
        // Python rounds to an integer, which has no negative zero.
        ("ceil", _) => Value::Float(((number * scale).ceil() + 0.0) / scale),
        ("floor", _) => Value::Float(((number * scale).floor() + 0.0) / scale),
        _ => return refused(format!("`round` with the method '{method}'")),
    })
}

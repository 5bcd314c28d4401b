//! Values as text: Python's `str` and `repr`.

use super::budget::Budget;
use super::fault::{Result, refused, unsupported};
use super::text::Text;
use super::value::Value;
use std::fmt::Write;

/// The text of a value, as `{{ value }}` writes it.
pub(super) fn text_of(value: &Value, budget: &Budget) -> Result<Text> {
    match value {
        Value::Text(text) | Value::Safe(text) => Ok(text.clone()),
        Value::Undefined(_) => Ok(Text::default()),
        _ => {
            let mut text = Text::default();
            write_repr(value, budget, &mut text)?;
            Ok(text)
        }
    }
}

/// Appends a value as Python's `repr` writes it. Values other than texts have no known origin.
pub(super) fn write_repr(value: &Value, budget: &Budget, to: &mut Text) -> Result<()> {
    budget.step(1)?;
    match value {
        Value::Undefined(_) => add("Undefined", budget, to),
        Value::None => add("None", budget, to),
        Value::Bool(true) => add("True", budget, to),
        Value::Bool(false) => add("False", budget, to),
        Value::Integer(number) => add(&number.to_string(), budget, to),
        Value::Float(number) => add(&float(*number), budget, to),
        Value::Text(text) => quote(text, budget, to),
        Value::List(list) => {
            add("[", budget, to)?;
            write_elements(&list.elements, budget, to)?;
            add("]", budget, to)
        }
        Value::Tuple(list) => {
            add("(", budget, to)?;
            write_elements(&list.elements, budget, to)?;
            add(
                if list.elements.len() == 1 { ",)" } else { ")" },
                budget,
                to,
            )
        }
        Value::Dict(dict) => {
            add("{", budget, to)?;
            for (index, (key, value)) in dict.entries.iter().enumerate() {
                add(if index == 0 { "" } else { ", " }, budget, to)?;
                write_repr(key, budget, to)?;
                add(": ", budget, to)?;
                write_repr(value, budget, to)?;
            }
            add("}", budget, to)
        }
        Value::Safe(_) => unsupported("a string after `safe` in a list"),
        Value::Namespace(_) | Value::Loop(_) | Value::Macro(_) => {
            refused(format!("{} becomes text", value.kind()))
        }
        Value::Generator(_) => unsupported("the text of a generator, without `| list`,"),
        Value::Function(_) | Value::Method(_) => {
            refused(format!("{} becomes text: call it with `()`", value.kind()))
        }
    }
}

fn write_elements(elements: &[Value], budget: &Budget, to: &mut Text) -> Result<()> {
    for (index, element) in elements.iter().enumerate() {
        add(if index == 0 { "" } else { ", " }, budget, to)?;
        write_repr(element, budget, to)?;
    }
    Ok(())
}

fn add(text: &str, budget: &Budget, to: &mut Text) -> Result<()> {
    budget.write(text.len())?;
    to.push(text, false);
    Ok(())
}

/// Appends a text in quotes.
fn quote(text: &Text, budget: &Budget, to: &mut Text) -> Result<()> {
    // An escape has up to ten characters.
    budget.write(text.size() * 2)?;
    let quote = if text.as_str().contains('\'') && !text.as_str().contains('"') {
        '"'
    } else {
        '\''
    };
    to.push(quote.encode_utf8(&mut [0; 4]), false);
    to.push_text(&text.map(|_, character, to| escape(character, quote, to)));
    to.push(quote.encode_utf8(&mut [0; 4]), false);
    Ok(())
}

fn escape(character: char, quote: char, to: &mut String) {
    let code = u32::from(character);
    match character {
        '\\' => to.push_str("\\\\"),
        '\n' => to.push_str("\\n"),
        '\r' => to.push_str("\\r"),
        '\t' => to.push_str("\\t"),
        _ if character == quote => to.extend(['\\', quote]),
        _ if is_printable(character) => to.push(character),
        _ => drop(match code {
            ..0x100 => write!(to, "\\x{code:02x}"),
            0x100..0x1_0000 => write!(to, "\\u{code:04x}"),
            _ => write!(to, "\\U{code:08x}"),
        }),
    }
}

/// Whether Python prints a character as it is. Rust's `escape_debug` follows the same categories, except for marks at the
/// beginning of a text.
fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    let text: String = ['a', character].into_iter().collect();
    !text.escape_debug().skip(1).eq(character.escape_unicode())
}

/// A float as Python writes it: the shortest digits that are this number.
pub(super) fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        return format!("{number:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::float;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (number, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(float(number), text);
        }
    }
}

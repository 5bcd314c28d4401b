//! Limits of what a template turns into text.
//!
//! minijinja pays for strings that operators make. What filters and methods make of lists, and what
//! formats with a width give, it pays for only afterwards, so this file pays for them before.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, Output, State, Value, escape_formatter, filters};
use minijinja_contrib::pycompat::unknown_method_callback;

/// The most elements of a list that becomes text, with those of lists in it.
const MAX_ELEMENTS: usize = 10_000;

/// The deepest lists in lists that become text: each level takes stack.
const MAX_DEPTH: usize = 32;

/// Bytes of text for each step, as minijinja has it.
const STEP_BYTES: usize = 64;

type Result<T> = std::result::Result<T, Error>;

/// Replaces everything that turns lists into text, except for operators.
pub(super) fn limit(environment: &mut Environment<'static>) {
    environment.set_formatter(write);
    environment.set_unknown_method_callback(method);
    environment.remove_global("debug");
    environment.remove_filter("pprint");
    let texts = [
        ("safe", Value::from_function(filters::safe)),
        ("escape", Value::from_function(filters::escape)),
        ("e", Value::from_function(filters::escape)),
        ("lower", Value::from_function(filters::lower)),
        ("upper", Value::from_function(filters::upper)),
        ("title", Value::from_function(filters::title)),
        ("capitalize", Value::from_function(filters::capitalize)),
        ("trim", Value::from_function(filters::trim)),
        ("string", Value::from_function(filters::string)),
        ("tojson", Value::from_function(filters::tojson)),
    ];
    for (name, filter) in texts {
        add(environment, name, filter, sizes);
    }
    let join = Value::from_function(filters::join);
    add(environment, "join", join, |args| joined(args, 0, 1));
    let indent = Value::from_function(filters::indent);
    add(environment, "indent", indent, indented);
    environment.add_filter("replace", |state: &mut State, args: Rest<ValueOrKwargs>| {
        let args = args.into_values();
        let (text, args) = args
            .split_first()
            .ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
        method(state, text, "replace", args)
    });
    environment.add_filter("format", |state: &mut State, args: Rest<ValueOrKwargs>| {
        let args = args.into_values();
        formatted(state, FormatStyle::Printf, &args)
    });
}

/// Adds a filter that pays for its result, in bytes, before it runs.
fn add(
    environment: &mut Environment<'static>,
    name: &'static str,
    filter: Value,
    bytes: fn(&[Value]) -> Result<usize>,
) {
    let run = move |state: &mut State, args: Rest<ValueOrKwargs>| {
        let args = args.into_values();
        pay(state, bytes(&args)?)?;
        filter.call(state, &args)
    };
    environment.add_filter(name, run);
}

fn pay(state: &State, bytes: usize) -> Result<()> {
    state.consume_fuel((bytes / STEP_BYTES) as u64)
}

fn write(out: &mut Output, state: &mut State, value: &Value) -> Result<()> {
    // minijinja pays for the output itself, which a list's elements are in once each.
    if value.as_str().is_none() {
        pay(state, size(value)?)?;
    }
    escape_formatter(out, state, value)
}

fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value> {
    match (name, value.as_str()) {
        ("format", Some(text)) => {
            let parts: Vec<Value> = std::iter::once(Value::from(text))
                .chain(args.iter().cloned())
                .collect();
            return formatted(state, FormatStyle::StrFormat, &parts);
        }
        ("join", Some(_)) => {
            let parts: Vec<Value> = args.iter().chain([value]).cloned().collect();
            pay(state, joined(&parts, 0, 1)?)?;
        }
        (_, Some(_)) => pay(state, sizes(args)?)?,
        _ => {}
    }
    unknown_method_callback(state, value, name, args)
}

/// Text with fields, each of which may hold any argument at any width.
fn formatted(state: &State, style: FormatStyle, args: &[Value]) -> Result<Value> {
    let Some((text, args)) = args
        .split_first()
        .and_then(|(text, args)| Some((text.as_str()?, args)))
    else {
        return Err(refused("`format` needs a text"));
    };
    let (mark, widest) = match style {
        FormatStyle::Printf => ('%', sizes(args)?.saturating_add(integers(args))),
        FormatStyle::StrFormat => ('{', sizes(args)?),
    };
    let fields = text.matches(mark).count();
    let bytes = fields.saturating_mul(widest).saturating_add(numbers(text));
    pay(state, bytes.saturating_add(text.len()))?;
    format(style, text, args).map(Value::from)
}

/// The sum of the numbers in a text.
fn numbers(text: &str) -> usize {
    let digits = text.split(|character: char| !character.is_ascii_digit());
    let numbers = digits.filter(|digits| !digits.is_empty());
    numbers.fold(0, |sum: usize, digits| {
        sum.saturating_add(digits.parse().unwrap_or(usize::MAX))
    })
}

/// The sum of the positive integers among values.
fn integers(values: &[Value]) -> usize {
    let integers = values.iter().filter_map(Value::as_usize);
    integers.fold(0, usize::saturating_add)
}

/// The bytes of a list's elements with the text between them, which is `args[text]`.
fn joined(args: &[Value], list: usize, text: usize) -> Result<usize> {
    let between = args.get(text).and_then(Value::as_str).map_or(0, str::len);
    let elements = args.get(list).and_then(Value::len).unwrap_or(0);
    Ok(sizes(args)?.saturating_add(between.saturating_mul(elements)))
}

/// The bytes of a text whose lines begin with as many spaces as the integers among the arguments say.
fn indented(args: &[Value]) -> Result<usize> {
    let lines = args
        .first()
        .and_then(Value::as_str)
        .map_or(0, |text| text.matches('\n').count());
    let named = args
        .iter()
        .filter_map(|arg| arg.get_attr("width").ok()?.as_usize());
    let width = integers(args).saturating_add(named.fold(0, usize::saturating_add));
    Ok(sizes(args)?.saturating_add((lines + 1).saturating_mul(width)))
}

fn sizes(values: &[Value]) -> Result<usize> {
    let sizes = values.iter().map(size);
    sizes.sum()
}

/// The bytes of a value as text, at least.
fn size(value: &Value) -> Result<usize> {
    let mut left = MAX_ELEMENTS;
    size_within(value, MAX_DEPTH, &mut left)
}

fn size_within(value: &Value, depth: usize, left: &mut usize) -> Result<usize> {
    if let Some(text) = value.as_str() {
        return Ok(text.len());
    }
    if !matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable
    ) {
        return Ok(0);
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(refused("lists in lists become text, deeper than 32 levels"));
    };
    let mut bytes = 0usize;
    for element in value.try_iter()? {
        *left = left
            .checked_sub(1)
            .ok_or_else(|| refused("a list of more than 10000 elements becomes text"))?;
        bytes = bytes.saturating_add(size_within(&element, depth, left)?);
        if value.kind() == ValueKind::Map {
            bytes = bytes.saturating_add(size_within(&value.get_item(&element)?, depth, left)?);
        }
    }
    Ok(bytes)
}

/// An error of the template, told from those that it raises for messages.
fn refused(message: &'static str) -> Error {
    Error::new(ErrorKind::WriteFailure, message)
}

//! Formatted text: `'%s' % value`, and the method `format`.

use super::budget::Budget;
use super::display::{float, text_of, write_repr};
use super::fault::{Fault, Result, refused, unsupported};
use super::text::Text;
use super::value::Value;

/// How a field is written.
#[derive(Debug)]
struct Spec {
    fill: char,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    kind: char,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            fill: ' ',
            align: None,
            sign: None,
            alternate: false,
            width: 0,
            precision: None,
            kind: 's',
        }
    }
}

/// Reads digits at a position, and moves the position behind them.
fn digits(text: &str, at: &mut usize) -> Result<Option<usize>> {
    let rest = &text[*at..];
    let len = rest.bytes().take_while(u8::is_ascii_digit).count();
    *at += len;
    if len == 0 {
        return Ok(None);
    }
    let beyond = |_| Fault::Limit("a format with a width of more than 64 bits".to_owned());
    rest[..len].parse().map(Some).map_err(beyond)
}

/// The arguments of a format.
struct Arguments<'a> {
    positional: &'a [Value],
    named: &'a [(String, Value)],
    next: usize,
}

impl<'a> Arguments<'a> {
    fn new(positional: &'a [Value], named: &'a [(String, Value)]) -> Self {
        Self {
            positional,
            named,
            next: 0,
        }
    }

    fn next(&mut self) -> Result<&'a Value> {
        self.next += 1;
        self.at(self.next - 1)
    }

    fn at(&self, index: usize) -> Result<&'a Value> {
        let missing = || Fault::Refused("a format has more fields than arguments".to_owned());
        self.positional.get(index).ok_or_else(missing)
    }

    /// Refuses arguments without a field, as Python does for all but one value that has elements.
    fn check_used(&self) -> Result<()> {
        let may_stay = match self.positional {
            [one] => matches!(one, Value::List(_) | Value::Dict(_) | Value::Undefined(_)),
            _ => false,
        };
        if self.next < self.positional.len() && !may_stay {
            return refused("a format has fewer fields than arguments");
        }
        Ok(())
    }

    fn named(&self, name: &str) -> Result<&'a Value> {
        let mut named = self.named.iter();
        let found = named.find(|(other, _)| other == name);
        let missing = || {
            Fault::Refused(format!(
                "a format has the field `{name}` without its argument"
            ))
        };
        found.map(|(_, value)| value).ok_or_else(missing)
    }
}

/// `text % arguments`
pub(super) fn printf(
    text: &Text,
    positional: &[Value],
    named: &[(String, Value)],
    budget: &Budget,
) -> Result<Text> {
    budget.write(text.size())?;
    let (mut result, source) = (Text::default(), text.as_str());
    let mut arguments = Arguments::new(positional, named);
    let mut at = 0;
    while let Some(field) = source[at..].find('%') {
        result.push_part(text, at..at + field);
        at += field + 1;
        if source[at..].starts_with('%') {
            result.push_part(text, at..at + 1);
            at += 1;
            continue;
        }
        let value = printf_field(source, &mut at, &mut arguments, budget)?;
        budget.write(value.size())?;
        result.push_text(&value);
    }
    result.push_part(text, at..text.len());
    arguments.check_used()?;
    Ok(result)
}

fn printf_field(
    source: &str,
    at: &mut usize,
    arguments: &mut Arguments,
    budget: &Budget,
) -> Result<Text> {
    let mut name = None;
    if source[*at..].starts_with('(') {
        let Some(end) = source[*at..].find(')') else {
            return refused("a format has a name without an end");
        };
        name = Some(&source[*at + 1..*at + end]);
        *at += end + 1;
    }
    let mut spec = Spec {
        align: Some('>'),
        ..Spec::default()
    };
    while let Some(flag) = source[*at..]
        .chars()
        .next()
        .filter(|c| "-+ #0".contains(*c))
    {
        match flag {
            '-' => spec.align = Some('<'),
            '#' => spec.alternate = true,
            '0' if spec.align != Some('<') => (spec.fill, spec.align) = ('0', Some('=')),
            '0' => {}
            sign => spec.sign = Some(sign),
        }
        *at += 1;
    }
    spec.width = number_or_star(source, at, arguments)?.unwrap_or(0);
    if source[*at..].starts_with('.') {
        *at += 1;
        spec.precision = Some(number_or_star(source, at, arguments)?.unwrap_or(0));
    }
    let Some(kind) = source[*at..].chars().next() else {
        return refused("a format ends within a field");
    };
    *at += kind.len_utf8();
    let value = match name {
        Some(name) => arguments.named(name)?,
        None => arguments.next()?,
    };
    spec.kind = if matches!(kind, 'i' | 'u') { 'd' } else { kind };
    match (kind, value) {
        ('r', _) => {
            let mut text = Text::default();
            write_repr(value, budget, &mut text)?;
            spec.kind = 's';
            field(&Value::Text(text), &spec, budget)
        }
        ('d' | 'i' | 'u', Value::Float(number)) => {
            field(&Value::Integer(number.trunc() as i64), &spec, budget)
        }
        ('s' | 'd' | 'i' | 'u' | 'f' | 'F' | 'x' | 'X' | 'o', _) => field(value, &spec, budget),
        _ => unsupported(format!("the format `%{kind}`")),
    }
}

fn number_or_star(
    source: &str,
    at: &mut usize,
    arguments: &mut Arguments,
) -> Result<Option<usize>> {
    if !source[*at..].starts_with('*') {
        return digits(source, at);
    }
    *at += 1;
    let width = arguments.next()?.as_integer();
    let width = width.and_then(|width| usize::try_from(width).ok());
    let fault = || Fault::Refused("a format has a `*` for no positive integer".to_owned());
    width.map(Some).ok_or_else(fault)
}

/// `text.format(arguments)`
pub(super) fn format(
    text: &Text,
    positional: &[Value],
    named: &[(String, Value)],
    budget: &Budget,
) -> Result<Text> {
    budget.write(text.size())?;
    let (mut result, source) = (Text::default(), text.as_str());
    let mut arguments = Arguments::new(positional, named);
    let mut at = 0;
    while let Some(brace) = source[at..].find(['{', '}']) {
        result.push_part(text, at..at + brace);
        at += brace;
        let doubled = matches!(source.get(at..at + 2), Some("{{" | "}}"));
        if doubled {
            result.push_part(text, at..at + 1);
            at += 2;
            continue;
        }
        let Some(end) = source[at..].find('}').filter(|&end| end > 0) else {
            return refused("a format has a brace without the other one");
        };
        let value = braced(&source[at + 1..at + end], &mut arguments, budget)?;
        budget.write(value.size())?;
        result.push_text(&value);
        at += end + 1;
    }
    result.push_part(text, at..text.len());
    Ok(result)
}

fn braced(source: &str, arguments: &mut Arguments, budget: &Budget) -> Result<Text> {
    if source.contains(['{', '.', '[']) && !source.split(':').next().is_some_and(is_plain) {
        return unsupported(format!("the field `{{{source}}}` of a format"));
    }
    let (name, spec) = source.split_once(':').unwrap_or((source, ""));
    if spec.contains('{') {
        return unsupported(format!("the field `{{{source}}}` of a format"));
    }
    let (name, conversion) = name.split_once('!').unwrap_or((name, ""));
    let value = match name.parse() {
        _ if name.is_empty() => arguments.next()?,
        Ok(index) => arguments.at(index)?,
        Err(_) => arguments.named(name)?,
    };
    let value = match conversion {
        "" => value.clone(),
        "s" => Value::Text(text_of(value, budget)?),
        "r" => {
            let mut text = Text::default();
            write_repr(value, budget, &mut text)?;
            Value::Text(text)
        }
        _ => return unsupported(format!("the conversion `!{conversion}` of a format")),
    };
    if spec.is_empty() {
        return text_of(&value, budget);
    }
    field(&value, &spec_of(spec, &value)?, budget)
}

fn is_plain(name: &str) -> bool {
    !name.contains(['.', '[', '{'])
}

/// Reads `[[fill]align][sign][#][0][width][.precision][type]`.
fn spec_of(source: &str, value: &Value) -> Result<Spec> {
    let (mut spec, mut at) = (Spec::default(), 0);
    let is_align = |c: Option<char>| c.filter(|c| "<>=^".contains(*c));
    let mut characters = source.chars();
    let (first, second) = (characters.next(), characters.next());
    if let (Some(fill), Some(align)) = (first, is_align(second)) {
        (spec.fill, spec.align, at) = (fill, Some(align), fill.len_utf8() + 1);
    } else if let Some(align) = is_align(first) {
        (spec.align, at) = (Some(align), 1);
    }
    if let Some(sign) = source[at..].chars().next().filter(|c| "+- ".contains(*c)) {
        (spec.sign, at) = (Some(sign), at + 1);
    }
    if source[at..].starts_with('#') {
        (spec.alternate, at) = (true, at + 1);
    }
    if source[at..].starts_with('0') && spec.align.is_none() {
        (spec.fill, spec.align) = ('0', Some('='));
    }
    spec.width = digits(source, &mut at)?.unwrap_or(0);
    if source[at..].starts_with('.') {
        at += 1;
        spec.precision = digits(source, &mut at)?;
    }
    let number = value.as_number().is_some();
    spec.kind = match (&source[at..], value) {
        ("", Value::Float(_)) if spec.precision.is_some() => {
            return unsupported(format!("the format `{source}` of a float"));
        }
        ("", Value::Integer(_) | Value::Bool(_)) => 'd',
        ("", Value::Float(_)) | ("" | "s", Value::Text(_)) => 's',
        (kind @ ("d" | "x" | "X" | "o" | "f" | "F"), _) if number => {
            kind.chars().next().unwrap_or('d')
        }
        _ => return unsupported(format!("the format `{source}` of {}", value.kind())),
    };
    let default = if number { '>' } else { '<' };
    spec.align = Some(spec.align.unwrap_or(default));
    Ok(spec)
}

/// The text of a field.
fn field(value: &Value, spec: &Spec, budget: &Budget) -> Result<Text> {
    let size = spec.width.saturating_add(spec.precision.unwrap_or(0));
    budget.write(size.saturating_mul(spec.fill.len_utf8()))?;
    if spec.kind == 's' {
        let text = text_of(value, budget)?;
        let end = spec
            .precision
            .and_then(|precision| text.as_str().char_indices().nth(precision));
        let text = text.part(0..end.map_or(text.len(), |(at, _)| at));
        return Ok(padded(&text, spec, 0));
    }
    let Some(number) = value.as_number() else {
        return refused(format!("the format `{}` of {}", spec.kind, value.kind()));
    };
    let digits = match (spec.kind, value.as_integer()) {
        ('f' | 'F', _) => format!("{:.*}", spec.precision.unwrap_or(6), number.abs()),
        ('d', Some(number)) => number.unsigned_abs().to_string(),
        ('x', Some(number)) => format!("{:x}", number.unsigned_abs()),
        ('X', Some(number)) => format!("{:X}", number.unsigned_abs()),
        ('o', Some(number)) => format!("{:o}", number.unsigned_abs()),
        _ => {
            return refused(format!(
                "the format `{}` of the float {}",
                spec.kind,
                float(number)
            ));
        }
    };
    if spec.alternate || (spec.precision.is_some() && spec.kind != 'f') {
        return unsupported("a number's format with `#` or a precision");
    }
    let sign = match (number.is_sign_negative() && number != 0.0, spec.sign) {
        (true, _) => "-",
        (false, Some('+')) => "+",
        (false, Some(' ')) => " ",
        _ => "",
    };
    let text = Text::untrusted(format!("{sign}{digits}"));
    Ok(padded(&text, spec, sign.len()))
}

/// Pads a text to the width of a field. Zeros follow the sign, whose length is in bytes.
fn padded(text: &Text, spec: &Spec, sign: usize) -> Text {
    let len = text.as_str().chars().count();
    let missing = spec.width.saturating_sub(len);
    let fill = |count: usize| spec.fill.to_string().repeat(count);
    let mut padded = Text::default();
    match spec.align {
        Some('>') => {
            padded.push(&fill(missing), false);
            padded.push_text(text);
        }
        Some('=') => {
            padded.push_part(text, 0..sign);
            padded.push(&fill(missing), false);
            padded.push_part(text, sign..text.len());
        }
        Some('^') => {
            padded.push(&fill(missing / 2), false);
            padded.push_text(text);
            padded.push(&fill(missing - missing / 2), false);
        }
        _ => {
            padded.push_text(text);
            padded.push(&fill(missing), false);
        }
    }
    padded
}

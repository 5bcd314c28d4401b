//! Values as JSON: `tojson` of transformers, which is Python's `json.dumps`.

use super::budget::Budget;
use super::display::float;
use super::fault::{Result, refused};
use super::sort::sort;
use super::text::Text;
use super::value::Value;
use std::fmt::Write;

/// How JSON is written.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) ascii: bool,
    /// The text of one level of indentation.
    pub(super) indent: Option<Text>,
    pub(super) separators: [Text; 2],
    pub(super) sort_keys: bool,
}

/// The JSON of a value.
pub(super) fn json(value: &Value, options: &Options, budget: &Budget) -> Result<Text> {
    let to = Text::default();
    let mut writer = Writer {
        options,
        budget,
        to,
    };
    writer.value(value, 0)?;
    Ok(writer.to)
}

struct Writer<'a> {
    options: &'a Options,
    budget: &'a Budget,
    to: Text,
}

impl Writer<'_> {
    fn add(&mut self, text: &str) -> Result<()> {
        self.budget.write(text.len())?;
        self.to.push(text, false);
        Ok(())
    }

    fn add_text(&mut self, text: &Text) -> Result<()> {
        self.budget.write(text.size())?;
        self.to.push_text(text);
        Ok(())
    }

    fn value(&mut self, value: &Value, level: usize) -> Result<()> {
        self.budget.step(1)?;
        match value {
            Value::None => self.add("null"),
            Value::Bool(true) => self.add("true"),
            Value::Bool(false) => self.add("false"),
            Value::Integer(number) => self.add(&number.to_string()),
            Value::Float(number) => self.add(&json_float(*number)),
            Value::Text(text) => self.string(text),
            Value::List(list) | Value::Tuple(list) => {
                let elements = list.elements.iter().map(|value| (None, value));
                self.nested(["[", "]"], elements.collect(), level)
            }
            Value::Dict(dict) => {
                let entries = dict.entries.iter();
                let mut entries: Vec<_> =
                    entries.map(|(key, value)| (key.clone(), value)).collect();
                if self.options.sort_keys {
                    entries = sort(entries, false, self.budget)?;
                }
                let entries = entries.into_iter();
                let entries = entries.map(|(key, value)| Ok((Some(json_key(&key)?), value)));
                let entries = entries.collect::<Result<_>>()?;
                self.nested(["{", "}"], entries, level)
            }
            _ => refused(format!("`tojson` of {}", value.kind())),
        }
    }

    fn nested(
        &mut self,
        [start, end]: [&str; 2],
        entries: Vec<(Option<Text>, &Value)>,
        level: usize,
    ) -> Result<()> {
        let [between, after_key] = &self.options.separators;
        self.add(start)?;
        let is_empty = entries.is_empty();
        for (index, (key, value)) in entries.into_iter().enumerate() {
            if index > 0 {
                self.add_text(between)?;
            }
            self.line(level + 1)?;
            if let Some(key) = key {
                self.string(&key)?;
                self.add_text(after_key)?;
            }
            self.value(value, level + 1)?;
        }
        if !is_empty {
            self.line(level)?;
        }
        self.add(end)
    }

    fn line(&mut self, level: usize) -> Result<()> {
        let Some(indent) = &self.options.indent else {
            return Ok(());
        };
        self.add("\n")?;
        (0..level).try_for_each(|_| self.add_text(indent))
    }

    fn string(&mut self, text: &Text) -> Result<()> {
        self.add("\"")?;
        // An escape of one byte has six.
        self.budget.write(text.size() * 2)?;
        let ascii = self.options.ascii;
        self.to
            .push_text(&text.map(|_, character, to| escape(character, ascii, to)));
        self.add("\"")
    }
}

/// The text of a key, which JSON has no numbers for.
fn json_key(key: &Value) -> Result<Text> {
    Ok(match key {
        Value::Text(text) => text.clone(),
        Value::None => Text::untrusted("null"),
        Value::Bool(value) => Text::untrusted(value.to_string()),
        Value::Integer(number) => Text::untrusted(number.to_string()),
        Value::Float(number) => Text::untrusted(json_float(*number)),
        _ => return refused(format!("`tojson` of a key that is {}", key.kind())),
    })
}

fn json_float(number: f64) -> String {
    match number {
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        _ if number.is_nan() => "NaN".to_owned(),
        _ => float(number),
    }
}

fn escape(character: char, ascii: bool, to: &mut String) {
    match character {
        '"' => to.push_str("\\\""),
        '\\' => to.push_str("\\\\"),
        '\n' => to.push_str("\\n"),
        '\r' => to.push_str("\\r"),
        '\t' => to.push_str("\\t"),
        '\u{8}' => to.push_str("\\b"),
        '\u{c}' => to.push_str("\\f"),
        _ if character < ' ' || (ascii && character > '\u{7e}') => {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(to, "\\u{unit:04x}");
            }
        }
        _ => to.push(character),
    }
}

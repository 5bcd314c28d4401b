//! Limits of the work that a JSON schema takes.
//!
//! The parser limits its own work only in part: divisors, intersections and long lists of names cost seconds before it
//! counts anything, some end in a panic, and definitions that refer to each other take stack. These limits come first:
//! a schema within them is read within 100 ms.

use super::schema_keywords::{Holds, holds};
use crate::error::{Error, Result};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The largest divisor of `multipleOf`, without its decimal point: the automaton of its multiples has as many states as
/// the divisor.
const MAX_DIVISOR: u64 = 10_000;

/// The largest number of characters of a pattern.
const MAX_PATTERN: usize = 2_000;

/// The largest number of patterns that one text may have to match.
const MAX_JOINED: usize = 8;

/// The largest depth of nested schemas, including schemas that references lead to.
const MAX_DEPTH: usize = 100;

/// The largest number of steps, of a microsecond or less each on a processor of 2020.
const MAX_STEPS: u64 = 60_000;

/// The largest number of bytes of a schema.
const MAX_BYTES: usize = 1 << 20;

/// Refuses a text that is too long to be read at once.
///
/// # Errors
/// `InvalidArgument` with the length and its limit.
pub(super) fn check_length(schema: &str) -> Result<()> {
    if schema.len() <= MAX_BYTES {
        return Ok(());
    }
    Err(too_large(
        format!("a schema of {} bytes", schema.len()),
        format!("one of at most {MAX_BYTES}"),
    ))
}

/// Refuses a schema that takes too much work.
///
/// # Errors
/// `InvalidArgument` with the value and its limit.
pub(super) fn check(schema: &Value) -> Result<()> {
    let mut walk = Walk {
        root: schema,
        followed: HashSet::new(),
        steps: 0,
        joined: 0,
        divisors: Vec::new(),
        intersects: false,
    };
    walk.schema(schema, 0)?;
    walk.check_divisors()?;
    walk.check_steps()
}

fn too_large(value: String, requirement: impl Into<String>) -> Error {
    Error::invalid("json_schema", value, requirement.into())
}

/// A walk over a schema and the schemas that it refers to.
struct Walk<'a> {
    root: &'a Value,
    /// The references that were followed, each once as by the parser.
    followed: HashSet<&'a str>,
    steps: u64,
    /// The patterns so far that texts of this schema may have to match, all of them.
    joined: usize,
    /// The divisors of `multipleOf` without their decimal points.
    divisors: Vec<u64>,
    /// Whether schemas may be joined to one that has several divisors.
    intersects: bool,
}

impl<'a> Walk<'a> {
    fn pay(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(steps as u64);
    }

    fn check_steps(&self) -> Result<()> {
        if self.steps <= MAX_STEPS {
            return Ok(());
        }
        Err(too_large(
            format!("a schema of more than {MAX_STEPS} steps"),
            "one with fewer names, values, patterns or divisors",
        ))
    }

    /// Walks over a schema, or a list of schemas.
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(too_large(
                format!("a schema with more than {MAX_DEPTH} schemas within each other"),
                format!("one with at most {MAX_DEPTH}"),
            ));
        }
        self.check_steps()?;
        match schema {
            Value::Object(object) => self.object(object, depth),
            Value::Array(schemas) => schemas
                .iter()
                .try_for_each(|schema| self.schema(schema, depth)),
            _ => Ok(()),
        }
    }

    /// Walks over schemas of other values than this one's.
    fn apart(&mut self, schemas: &'a Value, depth: usize) -> Result<()> {
        let joined = self.joined;
        let list = std::slice::from_ref(schemas);
        for schema in schemas.as_array().map_or(list, Vec::as_slice) {
            self.joined = 0;
            self.schema(schema, depth)?;
        }
        self.joined = joined;
        Ok(())
    }

    /// Walks over alternative schemas; a value must satisfy one of them.
    fn any(&mut self, schemas: &'a Value, depth: usize) -> Result<()> {
        let before = self.joined;
        let mut most = before;
        for schema in schemas.as_array().into_iter().flatten() {
            self.joined = before;
            self.schema(schema, depth)?;
            most = most.max(self.joined);
        }
        self.joined = most;
        Ok(())
    }

    fn object(&mut self, object: &'a Map<String, Value>, depth: usize) -> Result<()> {
        self.pay(20);
        self.names(object);
        for (name, value) in object {
            match (name.as_str(), holds(name)) {
                ("pattern", _) => {
                    self.join()?;
                    self.pattern("pattern", value)?;
                }
                ("format", _) => self.join()?,
                ("multipleOf", _) => self.divisor(value)?,
                ("enum" | "const", _) => self.data(value, false),
                ("$ref", _) => self.reference(value, object.len() > 1, depth)?,
                ("x-guidance", _) => self.options(value)?,
                (_, Some(Holds::Named)) => {
                    let named = value.as_object().into_iter().flatten();
                    for (key, value) in named {
                        if name == "patternProperties" {
                            self.pattern_text("patternProperties", key)?;
                        }
                        self.pay(key.len() / 4);
                        self.apart(value, depth + 1)?;
                    }
                }
                ("allOf", _) => {
                    self.intersects = true;
                    self.schema(value, depth + 1)?;
                }
                ("anyOf" | "oneOf", _) => {
                    self.intersects |= object.len() > 1;
                    self.any(value, depth + 1)?;
                }
                (_, Some(Holds::Schemas)) => self.apart(value, depth + 1)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Pays for the names of an object, each of which the parser puts before all later ones.
    fn names(&mut self, object: &Map<String, Value>) {
        let count = |name: &str| match object.get(name) {
            Some(Value::Object(named)) => named.len(),
            Some(Value::Array(names)) => names.len(),
            _ => 0,
        };
        let names = count("properties") + count("required");
        let patterns = count("patternProperties");
        if names + patterns > 0 {
            self.pay(60 + 30 * names);
        }
        let counted = object.contains_key("minProperties") || object.contains_key("maxProperties");
        let squares = names.saturating_mul(names);
        self.pay(if counted {
            squares.saturating_mul(16)
        } else {
            squares / 7
        });
        // Each is compared with all others.
        self.pay(patterns.saturating_mul(patterns).saturating_mul(15));
        let required = object.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        self.pay(required.map(str::len).sum::<usize>() / 4);
    }

    /// Pays for the values that an answer may have. Values within lists and objects become rules of the grammar.
    fn data(&mut self, value: &Value, is_within: bool) {
        match value {
            Value::String(text) => self.pay(5 + text.len() / 4),
            Value::Array(values) => {
                if is_within {
                    self.pay(40);
                }
                for value in values {
                    self.data(value, true);
                }
            }
            Value::Object(values) => {
                self.pay(40);
                for (name, value) in values {
                    self.pay(10 + name.len() / 4);
                    self.data(value, true);
                }
            }
            _ => self.pay(5),
        }
    }

    fn join(&mut self) -> Result<()> {
        self.joined += 1;
        if self.joined <= MAX_JOINED {
            return Ok(());
        }
        Err(too_large(
            format!("a schema of a text with more than {MAX_JOINED} patterns and formats"),
            "one with fewer",
        ))
    }

    fn pattern(&mut self, keyword: &str, value: &Value) -> Result<()> {
        let text = value.as_str().unwrap_or_default();
        self.pattern_text(keyword, text)
    }

    fn pattern_text(&mut self, keyword: &str, text: &str) -> Result<()> {
        let length = text.chars().count();
        self.pay(10 + length);
        if length <= MAX_PATTERN {
            return Ok(());
        }
        Err(too_large(
            format!("a schema with a pattern of {length} characters in `{keyword}`"),
            format!("one whose patterns have at most {MAX_PATTERN}; `enum` lists texts"),
        ))
    }

    fn options(&mut self, options: &Value) -> Result<()> {
        let options = options.as_object().into_iter().flatten();
        for (name, value) in options {
            self.pattern(name, value)?;
        }
        Ok(())
    }

    fn divisor(&mut self, value: &Value) -> Result<()> {
        let Some(mut digits) = value.as_f64().filter(|divisor| *divisor >= 0.0) else {
            return Ok(()); // The parser refuses it.
        };
        while digits.fract() != 0.0 {
            digits *= 10.0;
        }
        if digits > MAX_DIVISOR as f64 {
            return Err(divisor_too_large(value));
        }
        self.divisors.push(digits as u64);
        self.check_divisors()?;
        self.pay(4 * digits as usize);
        Ok(())
    }

    /// Checks the least common multiple of divisors that the parser may join.
    fn check_divisors(&self) -> Result<()> {
        if !self.intersects {
            return Ok(());
        }
        let mut multiple = 1;
        for &divisor in self.divisors.iter().filter(|&&divisor| divisor > 0) {
            multiple = multiple / common(multiple, divisor) * divisor;
            if multiple > MAX_DIVISOR {
                return Err(divisor_too_large(&Value::from(multiple)));
            }
        }
        Ok(())
    }

    fn reference(&mut self, value: &'a Value, has_more: bool, depth: usize) -> Result<()> {
        self.intersects |= has_more;
        let reference = value.as_str().unwrap_or_default();
        let Some(pointer) = reference.strip_prefix('#') else {
            return Ok(());
        };
        if !self.followed.insert(reference) {
            return Ok(());
        }
        let root = self.root;
        let found = root.pointer(pointer);
        found.map_or(Ok(()), |schema| self.schema(schema, depth + 1))
    }
}

fn divisor_too_large(value: &Value) -> Error {
    too_large(
        format!("a schema with `multipleOf` {value}"),
        format!(
            "one whose divisors have at most the digits of {MAX_DIVISOR}, and so has their least common multiple with \
             `allOf` or beside `$ref`, `anyOf` or `oneOf`"
        ),
    )
}

fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::{check, check_length};
    use serde_json::{Value, json};

    fn listed(count: usize, schema: impl Fn(usize) -> Value) -> Value {
        (0..count).map(schema).collect()
    }

    #[test]
    fn schemas_beyond_a_limit_are_refused_by_name() {
        let integers = |divisors: [u32; 2]| {
            let divisors = divisors.map(|divisor| json!({ "multipleOf": divisor }));
            json!({ "allOf": divisors })
        };
        let definitions = |count: usize| {
            let next = |i: usize| json!({ "items": { "$ref": format!("#/$defs/d{}", i + 1) } });
            let all = (0..count).map(|i| (format!("d{i}"), next(i)));
            json!({ "$defs": all.collect::<serde_json::Map<_, _>>(), "$ref": "#/$defs/d0" })
        };
        let patterns = |count| json!({ "allOf": listed(count, |_| json!({ "pattern": "a" })) });
        for (within, beyond, message) in [
            (
                json!({ "multipleOf": 10_000 }),
                json!({ "multipleOf": 10_007 }),
                "`multipleOf` 10007",
            ),
            (
                json!({ "multipleOf": 0.01 }),
                json!({ "multipleOf": 1.234_567 }),
                "`multipleOf` 1.234567",
            ),
            (
                integers([6, 4]),
                integers([9973, 9967]),
                "`multipleOf` 99400891",
            ),
            (
                json!({ "pattern": "a".repeat(2000) }),
                json!({ "pattern": "a".repeat(2001) }),
                "2001 characters",
            ),
            (patterns(8), patterns(9), "more than 8 patterns"),
            (definitions(40), definitions(60), "more than 100 schemas"),
            (
                json!({ "enum": listed(9_000, |i| json!(i)) }),
                json!({ "enum": listed(13_000, |i| json!(i)) }),
                "60000 steps",
            ),
        ] {
            check(&within).unwrap();
            let error = check(&beyond).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn alternatives_and_other_values_join_no_patterns() {
        let schema = json!({ "pattern": "a" });
        check(&json!({ "anyOf": listed(50, |_| schema.clone()) })).unwrap();
        check(&json!({ "allOf": [{ "prefixItems": listed(50, |_| schema.clone()) }] })).unwrap();
        let names = (0..50).map(|i| (format!("k{i}"), schema.clone()));
        let properties: serde_json::Map<_, _> = names.collect();
        check(&json!({ "allOf": [{ "properties": properties }] })).unwrap();
    }

    #[test]
    fn references_in_circles_are_followed_once() {
        check(&json!({ "$ref": "#" })).unwrap();
        check(&json!({ "allOf": [{ "$ref": "#" }], "items": { "$ref": "#" } })).unwrap();
    }

    #[test]
    fn long_texts_are_refused_before_they_are_read() {
        let error = check_length(&" ".repeat((1 << 20) + 1)).unwrap_err();
        assert!(error.to_string().contains("1048577 bytes"), "{error}");
    }
}

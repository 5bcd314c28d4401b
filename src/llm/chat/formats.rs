//! Formats of strings whose values the parser's own patterns do not check in full.

use super::schema_keywords::{Holds, holds};
use serde_json::{Map, Value, json};

/// Years from 1 to 9999.
const YEAR: &str = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)";

/// Months with their days but the 29th of February.
const DAY: &str = "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
     |02-(?:0[1-9]|1[0-9]|2[0-8]))";

/// Years with that day.
const LEAP_YEAR: &str =
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";

/// A time of RFC 3339 without leap seconds, which occur at certain moments only.
const TIME: &str = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?\
     (?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";

/// Returns the pattern of a format.
fn pattern(format: &str) -> Option<String> {
    let date = format!("(?:{YEAR}-{DAY}|{LEAP_YEAR}-02-29)");
    let pattern = match format {
        "date" => date,
        "time" => TIME.to_owned(),
        "date-time" => format!("{date}T{TIME}"),
        // At most 64 bytes before the `@`, and parts of host names of at most 63 after it.
        "email" => {
            let byte = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]";
            let part = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
            format!("{byte}{{1,32}}(?:\\.{byte}{{1,15}}){{0,2}}@{part}(?:\\.{part}){{0,2}}")
        }
        _ => return None,
    };
    Some(format!("^{pattern}$"))
}

/// Replaces formats by patterns, wherever schemas are.
pub(super) fn replace(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            replace_in(object);
            for (name, value) in object {
                match holds(name) {
                    Some(Holds::Schemas) => replace(value),
                    Some(Holds::Named) => {
                        let named = value.as_object_mut();
                        named
                            .into_iter()
                            .flatten()
                            .for_each(|(_, value)| replace(value));
                    }
                    Some(Holds::Data) | None => {}
                }
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(replace),
        _ => {}
    }
}

fn replace_in(object: &mut Map<String, Value>) {
    let format = object.get("format").and_then(Value::as_str);
    let Some(pattern) = format.and_then(pattern) else {
        return;
    };
    object.remove("format");
    if !object.contains_key("pattern") {
        object.insert("pattern".to_owned(), pattern.into());
        return;
    }
    let all = object.entry("allOf").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        all.push(json!({ "pattern": pattern }));
    }
}

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

#[cfg(test)]
mod tests {
    use super::{pattern, replace};
    use regex::Regex;
    use serde_json::json;

    fn days(year: u32, month: u32) -> u32 {
        let is_leap =
            year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        match month {
            2 => 28 + u32::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let date = Regex::new(&pattern("date").unwrap()).unwrap();
        for year in 0..10_000 {
            for (month, day) in [(2, 28), (2, 29), (2, 30), (12, 31)] {
                let exists = year > 0 && day <= days(year, month);
                let text = format!("{year:04}-{month:02}-{day:02}");
                assert_eq!(date.is_match(&text), exists, "{text}");
            }
        }
        for year in [1900, 2000, 2023, 2024] {
            for month in 0..=13 {
                for day in 0..=32 {
                    let exists = (1..=12).contains(&month) && day > 0 && day <= days(year, month);
                    let text = format!("{year}-{month:02}-{day:02}");
                    assert_eq!(date.is_match(&text), exists, "{text}");
                }
            }
        }
    }

    #[test]
    fn times_and_addresses_follow_their_standards() {
        for (format, right, wrong) in [
            ("time", "23:59:59.5+01:00", "12:34:60Z"),
            ("time", "00:00:00Z", "24:00:00Z"),
            ("date-time", "2024-02-29T10:00:00Z", "2023-02-29T10:00:00Z"),
            (
                "date-time",
                "2024-02-29T10:00:00.123456789-23:59",
                "2024-02-29 10:00:00Z",
            ),
            ("email", "a.b+c@example.com", "a..b@example.com"),
            ("email", "a@b", "a@-b"),
        ] {
            let pattern = Regex::new(&pattern(format).unwrap()).unwrap();
            assert!(pattern.is_match(right), "{format} {right}");
            assert!(!pattern.is_match(wrong), "{format} {wrong}");
        }
    }

    #[test]
    fn formats_become_patterns_where_schemas_are() {
        let mut schema = json!({
            "properties": { "format": { "format": "date" } },
            "const": { "format": "date" },
            "anyOf": [{ "format": "time", "pattern": "^1" }, { "format": "ipv4" }],
        });
        replace(&mut schema);
        assert_eq!(schema["const"], json!({ "format": "date" }));
        assert_eq!(
            schema["properties"]["format"],
            json!({ "pattern": pattern("date") })
        );
        let joined = json!({ "pattern": "^1", "allOf": [{ "pattern": pattern("time") }] });
        assert_eq!(schema["anyOf"], json!([joined, { "format": "ipv4" }]));
    }
}

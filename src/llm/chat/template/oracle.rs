//! The texts of jinja2 for the same templates, written by `tests/data/templates/generate.py`.

use super::budget::Budget;
use super::fault::Fault;
use super::{ChatTemplate, Text, Value};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/templates");

/// A value of the generator's JSON, in which a mapping is a list of pairs.
fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::None,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Integer(number),
            None => Value::Float(number.as_f64().unwrap()),
        },
        Json::String(text) => Value::Text(Text::untrusted(text.as_str())),
        Json::Array(elements) => Value::list(elements.iter().map(value).collect()).unwrap(),
        Json::Object(_) => {
            let pairs = json["d"].as_array().unwrap().iter();
            Value::dict(
                pairs
                    .map(|pair| (value(&pair[0]), value(&pair[1])))
                    .collect(),
            )
            .unwrap()
        }
    }
}

fn fnv(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The variables of a conversation, and the size of its budget.
fn variables(json: &Json) -> (Vec<(&str, Value)>, Budget) {
    let pairs = json["d"].as_array().unwrap().iter();
    let variables: Vec<_> = pairs
        .map(|pair| (pair[0].as_str().unwrap(), value(&pair[1])))
        .collect();
    let messages = json["d"][0][1].as_array().unwrap().len();
    (variables, Budget::new(messages, json.to_string().len()))
}

/// Compares a result with the result of jinja2. Returns the name of the unsupported construct.
fn check(rendered: Result<Text, Fault>, expected: &str) -> Result<Option<String>, String> {
    let rendered = match rendered {
        Err(Fault::Unsupported(construct)) => return Ok(Some(construct)),
        other => other,
    };
    let (is_same, found) = match &rendered {
        Ok(text) => {
            let text = text.as_str();
            let is_same = expected == fnv(text) || expected.strip_prefix("text: ") == Some(text);
            (is_same, format!("text: {text}"))
        }
        Err(Fault::Raised(reason)) => (
            expected.strip_prefix("raised: ") == Some(reason),
            format!("raised: {reason}"),
        ),
        Err(fault) => (expected.starts_with("error"), format!("{fault:?}")),
    };
    if is_same {
        Ok(None)
    } else {
        Err(format!("jinja2 gives\n{expected}\nbut here it is\n{found}"))
    }
}

#[test]
fn texts_are_those_of_jinja2() {
    let file = std::env::var("RELAMPAGO_TEMPLATES");
    let file = file.unwrap_or_else(|_| format!("{FOLDER}/expected.json"));
    let json: Json = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let folder = json["folder"].as_str().unwrap_or(FOLDER);
    let conversations = json["conversations"].as_array().unwrap();
    let (mut pairs, mut unsupported, mut faults) = (0, BTreeMap::new(), Vec::new());
    let mut texts = 0;
    for (name, expected) in json["expected"].as_object().unwrap() {
        let source =
            std::fs::read_to_string(Path::new(folder).join(format!("{name}.jinja"))).unwrap();
        let template = ChatTemplate::new(&source).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (index, conversation) in conversations.iter().enumerate() {
            let (variables, budget) = variables(conversation);
            let rendered = template.run(&variables, budget, json["now"].as_i64().unwrap());
            let expected = expected[index].as_str().unwrap();
            texts += usize::from(rendered.is_ok());
            match check(rendered, expected) {
                Ok(None) => {}
                Ok(Some(construct)) => *unsupported.entry(construct).or_insert(0) += 1,
                Err(fault) => faults.push(format!("{name}, conversation {index}: {fault}")),
            }
            pairs += 1;
        }
    }
    println!(
        "{pairs} pairs of templates and conversations, {texts} texts; not supported: {unsupported:?}"
    );
    let shown = faults
        .iter()
        .take(5)
        .map(String::as_str)
        .collect::<Vec<_>>();
    assert!(
        faults.is_empty(),
        "{} differ:\n{}",
        faults.len(),
        shown.join("\n\n")
    );
}

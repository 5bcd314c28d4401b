//! Answers by a JSON schema, of models that would say anything.

use super::random_models::{GEMMA, LLAMA, random_model};
use super::{load, on_gpus};
use relampago::InstructionSet;
use relampago::llm::{FinishReason, GenerateOptions, LanguageModel};
use serde_json::Value;

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "colour": { "enum": ["red", "green", "blue"] },
        "count": { "type": "integer", "minimum": 0, "maximum": 999 },
        "ready": { "type": "boolean" }
    },
    "required": ["colour", "count", "ready"],
    "additionalProperties": false
}"#;

fn options(schema: &str, seed: u64) -> GenerateOptions {
    let mut options = GenerateOptions::default();
    options.max_tokens = 200;
    options.json_schema = Some(schema.to_owned());
    options.sampling.temperature = 2.0;
    options.sampling.seed = seed;
    options
}

fn answer(
    model: &LanguageModel,
    options: GenerateOptions,
) -> (String, Option<FinishReason>, Vec<u32>) {
    let mut answer = model.complete("hello", options).unwrap();
    let text = answer.by_ref().map(Result::unwrap).collect();
    (text, answer.finish_reason(), answer.tokens().to_vec())
}

#[test]
fn answers_are_json_of_the_schema() {
    for shape in [LLAMA, GEMMA] {
        let (bytes, _) = random_model(shape, 1);
        let model = load(&bytes, InstructionSet::best());
        let mut colours = Vec::new();
        for seed in 0..8 {
            let (text, reason, _) = answer(&model, options(SCHEMA, seed));
            assert_eq!(reason, Some(FinishReason::Stop), "{text}");
            let value: Value = serde_json::from_str(&text).unwrap();
            // One space after each comma and colon, and no other white space.
            assert_eq!(text.matches([' ', '\n', '\t']).count(), 5, "{text}");
            assert_eq!(text.matches(": ").count() + text.matches(", ").count(), 5);
            let object = value.as_object().unwrap();
            assert_eq!(object.len(), 3, "{text}");
            assert!(["red", "green", "blue"].contains(&object["colour"].as_str().unwrap()));
            assert!(object["count"].as_u64().unwrap() <= 999);
            assert!(object["ready"].is_boolean());
            colours.push(object["colour"].to_string());
        }
        colours.sort();
        colours.dedup();
        assert!(colours.len() > 1, "the model chooses");
    }
}

#[test]
fn answers_by_a_schema_go_on_after_tokens_that_exist() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let schema = r#"{ "type": "string", "pattern": "^[a-c]{3}-[0-9]{2}$" }"#;
    let (whole, reason, tokens) = answer(&model, options(schema, 5));
    assert_eq!(reason, Some(FinishReason::Stop));
    let digits = whole.strip_prefix('"').and_then(|text| text.get(4..6));
    assert!(
        digits.unwrap().bytes().all(|byte| byte.is_ascii_digit()),
        "{whole}"
    );
    let mut rest = options(schema, 5);
    rest.after = tokens[..2].to_vec();
    let (end, _, all) = answer(&model, rest);
    assert_eq!((&whole[2..], all), (end.as_str(), tokens));
}

#[test]
fn tokens_that_a_gpu_chooses_are_those_of_the_host() {
    for (gpu, on_gpu) in on_gpus() {
        for shape in [LLAMA, GEMMA] {
            let (bytes, _) = random_model(shape, 1);
            let model = LanguageModel::from_bytes(bytes, on_gpu.clone()).unwrap();
            for (seed, temperature) in [(0, 0.0), (1, 0.5), (2, 2.0), (3, 2.0)] {
                let mut chosen = options(SCHEMA, seed);
                chosen.sampling.temperature = temperature;
                chosen.sampling.repetition_penalty = 1.1;
                chosen.max_tokens = 40;
                // Log-probabilities bring all logits to the host.
                let mut by_host = chosen.clone();
                by_host.logprobs = Some(0);
                let (_, _, tokens) = answer(&model, chosen);
                assert_eq!(
                    tokens,
                    answer(&model, by_host).2,
                    "{gpu}, {}, {seed}",
                    shape.name
                );
            }
        }
    }
}

#[test]
fn options_of_a_schema_leave_white_space_as_it_is() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let schema = r#"{
        "x-guidance": { "coerce_one_of": true },
        "type": "array",
        "items": { "oneOf": [{ "type": "boolean" }, { "enum": [true, null] }] },
        "minItems": 4,
        "maxItems": 4
    }"#;
    for seed in 0..8 {
        let (text, reason, _) = answer(&model, options(schema, seed));
        assert_eq!(reason, Some(FinishReason::Stop), "{text}");
        assert_eq!(text.matches(", ").count(), 3, "{text}");
        assert_eq!(text.split_whitespace().count(), 4, "{text}");
    }
}

#[test]
fn schemas_that_are_wrong_are_refused() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    for schema in [
        "{",
        r#"{ "type": "unknown" }"#,
        r#"{ "type": "object", "not": {} }"#,
        r#"{ "type": "object", "propertys": {} }"#,
    ] {
        let error = model.complete("hello", options(schema, 0)).unwrap_err();
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
    }
    let mut wrong = options(SCHEMA, 0);
    wrong.after = model.tokenize("x", false).unwrap();
    let error = model.complete("hello", wrong).unwrap_err();
    assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
}

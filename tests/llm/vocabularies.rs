//! Files whose tokenizer or end tokens cannot be used.

use super::keys::assert_refused;
use super::random_models::{GEMMA, LLAMA, Shape, random_model_with};
use super::{load, on_gpus};
use relampago::InstructionSet;
use relampago::llm::{FinishReason, GenerateOptions, GgufWriter, LanguageModel};

/// Writes metadata.
type Set = fn(&mut GgufWriter);

/// A file with some texts replaced by others of the same length.
fn file(shape: Shape, set: impl FnOnce(&mut GgufWriter), replaced: &[(&str, &str)]) -> Vec<u8> {
    let (mut bytes, _) = random_model_with(shape, 1, set);
    for (from, to) in replaced {
        assert_eq!(from.len(), to.len());
        let at = |bytes: &[u8]| {
            let mut parts = bytes.windows(from.len());
            parts.position(|part| part == from.as_bytes())
        };
        assert!(at(&bytes).is_some(), "{from}");
        while let Some(at) = at(&bytes) {
            bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        }
    }
    bytes
}

/// Keys of tokenizers with values that are wrong, and a part of the error.
const WRONG: &[(Shape, &str, Set, &str)] = &[
    (
        LLAMA,
        "model",
        |file| file.unsigned("tokenizer.ggml.model", 2),
        "it is 2",
    ),
    (
        LLAMA,
        "model",
        |file| file.string("tokenizer.ggml.model", "rwkv"),
        "the string `rwkv`",
    ),
    (
        LLAMA,
        "model",
        |file| file.string("tokenizer.ggml.model", ""),
        "the string ``",
    ),
    (
        LLAMA,
        "pre",
        |file| file.string("tokenizer.ggml.pre", "martian"),
        "martian",
    ),
    (
        LLAMA,
        "pre",
        |file| file.unsigned("tokenizer.ggml.pre", 2),
        "it is 2",
    ),
    (
        LLAMA,
        "tokens",
        |file| file.string("tokenizer.ggml.tokens", "abc"),
        "the string `abc`",
    ),
    (
        LLAMA,
        "tokens",
        |file| file.integers("tokenizer.ggml.tokens", &[1; 260]),
        "no string",
    ),
    (
        LLAMA,
        "tokens",
        |file| file.strings("tokenizer.ggml.tokens", &[""; 0]),
        "an array of 0 values",
    ),
    (
        LLAMA,
        "token_type",
        |file| file.integers("tokenizer.ggml.token_type", &[1; 259]),
        "an array of 259 values, but must be an array of 260 values",
    ),
    (
        LLAMA,
        "token_type",
        |file| file.strings("tokenizer.ggml.token_type", &["1"; 260]),
        "no integer",
    ),
    (
        LLAMA,
        "token_type",
        |file| file.unsigned("tokenizer.ggml.token_type", 1),
        "it is 1",
    ),
    (
        LLAMA,
        "merges",
        |file| file.unsigned("tokenizer.ggml.merges", 1),
        "it is 1",
    ),
    (
        LLAMA,
        "merges",
        |file| file.integers("tokenizer.ggml.merges", &[1]),
        "no string",
    ),
    (
        LLAMA,
        "merges",
        |file| file.strings("tokenizer.ggml.merges", &["he"]),
        "no pair",
    ),
    (
        LLAMA,
        "add_bos_token",
        |file| file.unsigned("tokenizer.ggml.add_bos_token", 1),
        "it is 1, but must be a truth value",
    ),
    (
        LLAMA,
        "eos_token_id",
        |file| file.string("tokenizer.ggml.eos_token_id", "<|im_end|>"),
        "the string `<|im_end|>`, but must be the integer of a token",
    ),
    (
        LLAMA,
        "bos_token_id",
        |file| file.float("tokenizer.ggml.bos_token_id", 1.5),
        "1.5",
    ),
    (
        LLAMA,
        "eot_token_id",
        |file| file.boolean("tokenizer.ggml.eot_token_id", true),
        "true",
    ),
    (
        LLAMA,
        "eom_token_id",
        |file| file.string("tokenizer.ggml.eom_token_id", "a"),
        "`a`",
    ),
    (
        GEMMA,
        "unknown_token_id",
        |file| file.string("tokenizer.ggml.unknown_token_id", "a"),
        "the string `a`",
    ),
    (
        GEMMA,
        "scores",
        |file| file.floats("tokenizer.ggml.scores", &[0.0; 3]),
        "of 3 values",
    ),
    (
        GEMMA,
        "scores",
        |file| file.strings("tokenizer.ggml.scores", &["0"; 278]),
        "no number",
    ),
    (
        GEMMA,
        "add_space_prefix",
        |file| file.string("tokenizer.ggml.add_space_prefix", "yes"),
        "the string `yes`",
    ),
    (
        LLAMA,
        "tokens",
        |file| {
            let tokens: Vec<String> = (0..261).map(|token| format!("t{token}")).collect();
            file.strings("tokenizer.ggml.tokens", &tokens);
            file.integers("tokenizer.ggml.token_type", &[1; 261]);
        },
        "261 tokens, but the embedding has rows for 260",
    ),
];

#[test]
fn unusable_tokenizers_are_refused_alike_when_a_file_is_loaded_and_inspected() {
    let mut tried = 0;
    let missing: &[(Shape, &str, &str)] = &[
        (
            LLAMA,
            "tokenizer.ggml.model",
            "`gpt2`, `llama`, `bert` or `t5`",
        ),
        (
            LLAMA,
            "tokenizer.ggml.tokens",
            "an array of 1 to 16 million tokens",
        ),
        (LLAMA, "tokenizer.ggml.merges", "an array of merges"),
        (
            GEMMA,
            "tokenizer.ggml.model",
            "`gpt2`, `llama`, `bert` or `t5`",
        ),
        (
            GEMMA,
            "tokenizer.ggml.tokens",
            "an array of 1 to 16 million tokens",
        ),
    ];
    for &(shape, key, requirement) in missing {
        let other = key.replace("ggml", "GGML");
        let bytes = file(shape, |_| (), &[(key, &other)]);
        let place = format!("metadata `{key}`");
        assert_refused(&bytes, key, &["it is missing", requirement, &place]);
        tried += 1;
    }
    for &(shape, key, set, part) in WRONG {
        let place = format!("metadata `tokenizer.ggml.{key}`");
        assert_refused(&file(shape, set, &[]), key, &[part, &place]);
        tried += 1;
    }
    println!("{tried} unusable tokenizers");
}

/// Models without a token that ends answers.
fn endless() -> Vec<(&'static str, Vec<u8>)> {
    const NAMES: &[(&str, &str)] = &[("<|im_end|>", "<|im_fin|>")];
    const ABSENT: &[(&str, &str)] = &[
        ("<|im_end|>", "<|im_fin|>"),
        ("ggml.eos_token_id", "ggml.EOS_token_id"),
    ];
    let id = |key: &'static str, id: u32| {
        let key = format!("tokenizer.ggml.{key}_token_id");
        move |file: &mut GgufWriter| file.unsigned(&key, id)
    };
    vec![
        ("none", file(LLAMA, |_| (), ABSENT)),
        ("one beyond the rows", file(LLAMA, id("eos", 260), NAMES)),
        ("one far beyond", file(LLAMA, id("eos", 1 << 20), NAMES)),
        ("that of no token", file(LLAMA, id("eos", u32::MAX), NAMES)),
        (
            "an end of turns beyond the rows",
            file(LLAMA, id("eot", 260), ABSENT),
        ),
        (
            "an end of messages far beyond",
            file(LLAMA, id("eom", 1 << 31), ABSENT),
        ),
    ]
}

fn answer(model: &LanguageModel, schema: &str, temperature: f32) -> (String, FinishReason) {
    let mut options = GenerateOptions::default();
    options.max_tokens = 40;
    options.json_schema = Some(schema.to_owned());
    options.sampling.temperature = temperature;
    let mut answer = model.complete("hello", options).unwrap();
    let text = answer.by_ref().map(Result::unwrap).collect();
    (text, answer.finish_reason().unwrap())
}

#[test]
fn answers_by_a_schema_end_without_a_token_that_ends_them() {
    let gpus = on_gpus();
    let mut answers = 0;
    for (what, bytes) in endless() {
        let mut models = vec![load(&bytes, InstructionSet::best())];
        for (_, options) in &gpus {
            models.push(LanguageModel::from_bytes(bytes.clone(), options.clone()).unwrap());
        }
        for model in &models {
            assert!((0..300).all(|token| !model.is_end(token)), "{what}");
            for temperature in [0.0, 2.0] {
                for (schema, expected) in [
                    (r#"{ "enum": [12] }"#, Some("12")),
                    (r#"{ "const": "a\"b" }"#, Some(r#""a\"b""#)),
                    (r#"{ "type": "array", "maxItems": 0 }"#, Some("[]")),
                    (r#"{ "enum": [true, null, 3.5] }"#, None),
                    (r#"{ "type": "string", "pattern": "^[a-c]{3}$" }"#, None),
                ] {
                    let (text, reason) = answer(model, schema, temperature);
                    assert_eq!(reason, FinishReason::Stop, "{what}, {schema}: {text}");
                    assert!(
                        serde_json::from_str::<serde_json::Value>(&text).is_ok(),
                        "{text}"
                    );
                    assert_eq!(expected.unwrap_or(&text), text, "{what}");
                    answers += 1;
                }
            }
            // An integer may always go on.
            let (text, reason) = answer(model, r#"{ "type": "integer" }"#, 0.0);
            assert_eq!(reason, FinishReason::Length, "{what}: {text}");
        }
    }
    println!("{answers} answers without an end token");
}

#[test]
fn end_tokens_that_exist_are_used_beside_others() {
    let bytes = file(
        LLAMA,
        |file| file.unsigned("tokenizer.ggml.eot_token_id", 1 << 20),
        &[],
    );
    let model = load(&bytes, InstructionSet::best());
    assert!(model.is_end(259) && !model.is_end(1 << 20));
    assert_eq!(answer(&model, r#"{ "enum": [12] }"#, 0.0).0, "12");
    // SentencePiece's end of texts is token 2 if the file names none that exists.
    for id in [1, 4000] {
        let set = |file: &mut GgufWriter| file.unsigned("tokenizer.ggml.eos_token_id", id);
        let model = load(&file(GEMMA, set, &[]), InstructionSet::best());
        assert!(model.is_end(if id == 1 { 1 } else { 2 }) && model.is_end(4));
        assert_eq!(answer(&model, r#"{ "enum": [12] }"#, 0.0).0, "12");
    }
}

//! Words of byte-level tokenizers. The crate splits texts by the crate `regex`, the npm package by JavaScript's engine: both
//! must find the same words.

use crate::load;
use crate::random_models::{LLAMA, random_model};
use crate::support::Random;
use crate::vocabulary::CHARACTERS;
use relampago::InstructionSet;

/// One pre-tokenizer of each family.
const PRETOKENIZERS: [&str; 9] = [
    "default",
    "gpt-2",
    "smollm",
    "falcon",
    "llama-bpe",
    "qwen2",
    "qwen35",
    "tekken",
    "gpt-4o",
];

const TEXTS: usize = 1_000;

/// Random texts: short ones, and a few with long runs of one character.
fn texts() -> Vec<String> {
    let random = &mut Random(1);
    let below = |random: &mut Random, count: usize| random.next() as usize % count;
    let texts = (0..TEXTS).map(|index| {
        let runs = 1 + below(random, 12);
        let longest = if index % 100 == 0 { 2_000 } else { 3 };
        let runs = (0..runs).map(|_| {
            let character = CHARACTERS[below(random, CHARACTERS.len())];
            character.to_string().repeat(1 + below(random, longest))
        });
        runs.collect()
    });
    texts.collect()
}

#[test]
fn words_show_in_tokens() {
    let texts = texts();
    let mut all = Vec::new();
    for name in PRETOKENIZERS {
        let (bytes, _) = random_model(LLAMA.with_words_of(name), 1);
        let model = load(&bytes, InstructionSet::best());
        let tokens = texts.iter().map(|text| {
            let tokens = model.tokenize(text, false).unwrap();
            assert_eq!(&model.detokenize(&tokens), text, "{name}");
            tokens
        });
        let tokens: Vec<Vec<u32>> = tokens.collect();
        assert!(!all.contains(&tokens), "{name} splits like another one");
        // For the npm package's tests, which must get the same.
        if let Ok(folder) = std::env::var("RELAMPAGO_TINY_MODEL") {
            std::fs::write(format!("{folder}/words-{name}.gguf"), bytes).unwrap();
        }
        all.push(tokens);
    }
    if let Ok(folder) = std::env::var("RELAMPAGO_TINY_MODEL") {
        let names = PRETOKENIZERS.into_iter();
        let tokens = names
            .zip(all)
            .map(|(name, tokens)| (name.to_owned(), tokens.into()));
        let tokens: serde_json::Map<String, serde_json::Value> = tokens.collect();
        let json = serde_json::json!({ "texts": texts, "tokens": tokens });
        std::fs::write(format!("{folder}/words.json"), json.to_string()).unwrap();
    }
}

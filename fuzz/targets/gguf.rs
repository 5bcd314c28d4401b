//! Reads changed files of models: their heads, and the models.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relampago::llm::{Gguf, LanguageModel, LoadOptions};
use relampago_fuzz::{changed, model};

fuzz_target!(|bytes: &[u8]| {
    let file = changed(model("{{ messages }}"), bytes);
    let _ = Gguf::from_heads(vec![(file.clone(), file.len() as u64)]);
    if let Ok(model) = LanguageModel::from_bytes(file, LoadOptions::default()) {
        let _ = model.tokenize("a text", true);
    }
});

//! Reads adapters from changed safetensors files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relampago::llm::{LanguageModel, LoadOptions, LoraOptions};
use relampago_fuzz::{WIDTH, changed, model};
use serde_json::json;
use std::sync::LazyLock;

static MODEL: LazyLock<LanguageModel> = LazyLock::new(|| {
    let file = model("{{ messages }}");
    LanguageModel::from_bytes(file, LoadOptions::default()).expect("a valid model")
});

/// An adapter of rank 1 for the queries.
static ADAPTER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let name = "base_model.model.model.layers.0.self_attn.q_proj.lora";
    let len = WIDTH * 4;
    let header = json!({
        format!("{name}_A.weight"): { "dtype": "F32", "shape": [1, WIDTH], "data_offsets": [0, len] },
        format!("{name}_B.weight"): { "dtype": "F32", "shape": [WIDTH, 1], "data_offsets": [len, 2 * len] },
    });
    let header = header.to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.resize(file.len() + 2 * len, 0);
    file
});

fuzz_target!(|bytes: &[u8]| {
    let read = |bytes: &[u8]| {
        let file = changed(ADAPTER.clone(), bytes);
        MODEL.lora_from_bytes(file, LoraOptions::default().with_alpha(1.0))
    };
    // The file itself must be an adapter, or nothing but its refusal is tried.
    let whole = read(&[]).err();
    assert!(whole.is_none(), "{whole:?}");
    let _ = read(bytes);
});

//! Adapters: beside quantised weights they give the logits of merged weights.

use super::random_models::{
    GEMMA, HEAD, LLAMA, Oracle, QWEN3_MOE, SHAPES, Shape, WIDTH, random_model,
};
use super::{answer, assert_close, load, on_gpus, tokens};
use crate::support::Random;
use relampago::InstructionSet;
use relampago::llm::{
    GenerateOptions, GgufWriter, LanguageModel, LoadOptions, LoraOptions, QkvLora, ScaledLora,
};

const RANK: usize = 5;
const ALPHA: f32 = 10.0;

/// A matrix's name, its rows, A and B.
pub(super) type Part = (String, usize, Vec<f32>, Vec<f32>);

/// Random low-rank matrices for every linear layer of a shape.
pub(super) fn parts(shape: Shape, random: &mut Random) -> Vec<Part> {
    let mut parts = Vec::new();
    for layer in 0..shape.layers {
        for (name, rows) in Oracle::linear(shape) {
            let mut values = |len| (0..len).map(|_| random.value() / 32.0).collect();
            let name = format!("blk.{layer}.{name}");
            parts.push((name, rows, values(RANK * WIDTH), values(rows * RANK)));
        }
    }
    parts
}

/// Adds `scale * B A` to an oracle's weights.
fn merge(oracle: &mut Oracle, parts: &[Part], scale: f64) {
    for (name, _, a, b) in parts {
        let (block, name) = name["blk.".len()..].split_once('.').unwrap();
        let row = |b: &[f32]| -> Vec<f64> {
            let mut row = vec![0.0; WIDTH];
            for (b, a) in b.iter().zip(a.chunks_exact(WIDTH)) {
                row.iter_mut()
                    .zip(a)
                    .for_each(|(to, a)| *to += scale * f64::from(*b) * f64::from(*a));
            }
            row
        };
        let product: Vec<f64> = b.chunks_exact(RANK).flat_map(row).collect();
        oracle.add(block.parse().unwrap(), name, &product);
    }
}

pub(super) fn gguf(shape: Shape, parts: &[Part]) -> Vec<u8> {
    let mut writer = GgufWriter::default();
    writer.string("general.type", "adapter");
    writer.string("general.architecture", shape.name);
    writer.string("adapter.type", "lora");
    writer.float("adapter.lora.alpha", ALPHA);
    for (name, rows, a, b) in parts {
        let mut write = |ending: &str, shape, values: &[f32]| {
            let name = format!("{name}.weight.lora_{ending}");
            writer.f32_tensor(&name, shape, values).unwrap();
        };
        write("a", &[WIDTH, RANK], a);
        write("b", &[RANK, *rows], b);
    }
    writer.finish()
}

/// A random adapter's file.
pub(crate) fn file_of(shape: Shape, seed: u64) -> Vec<u8> {
    gguf(shape, &parts(shape, &mut Random(seed)))
}

/// PEFT's file: rows of queries and keys are in the order of halves.
pub(super) fn safetensors(shape: Shape, parts: &[Part]) -> Vec<u8> {
    let names = [
        ("attn_q", "self_attn.q_proj"),
        ("attn_k", "self_attn.k_proj"),
        ("attn_v", "self_attn.v_proj"),
        ("attn_output", "self_attn.o_proj"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", "mlp.up_proj"),
        ("ffn_down", "mlp.down_proj"),
    ];
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    let mut add = |name: String, shape: [usize; 2], values: Vec<f32>| {
        let start = data.len();
        data.extend(values.iter().flat_map(|x| x.to_le_bytes()));
        let entry = serde_json::json!({
            "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()],
        });
        header.insert(name, entry);
    };
    for (name, rows, a, b) in parts {
        let (block, name) = name["blk.".len()..].split_once('.').unwrap();
        let peft = names.iter().find(|(gguf, _)| *gguf == name).unwrap().1;
        let name_of =
            |ending| format!("base_model.model.model.layers.{block}.{peft}.lora_{ending}.weight");
        let permuted = shape.neighbours && ["attn_q", "attn_k"].contains(&name);
        let row = |index: usize| {
            let (head, within) = (index / HEAD, index % HEAD);
            let (half, pair) = (within / (HEAD / 2), within % (HEAD / 2));
            let from = if permuted {
                head * HEAD + 2 * pair + half
            } else {
                index
            };
            b[from * RANK..][..RANK].to_vec()
        };
        add(name_of("A"), [RANK, WIDTH], a.clone());
        add(
            name_of("B"),
            [*rows, RANK],
            (0..*rows).flat_map(row).collect(),
        );
    }
    let header = serde_json::Value::from(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.extend(data);
    file
}

fn alpha() -> LoraOptions {
    let mut options = LoraOptions::default();
    options.alpha = Some(ALPHA);
    options
}

fn with_lora(model: &LanguageModel, tokens: &[u32], lora: &[ScaledLora]) -> Vec<f32> {
    let mut session = model.session().unwrap();
    session.set_lora(lora).unwrap();
    session.logits(tokens).unwrap()
}

fn one_by_one(model: &LanguageModel, tokens: &[u32], lora: &[ScaledLora]) -> Vec<f32> {
    let mut session = model.session().unwrap();
    session.set_lora(lora).unwrap();
    let decoded = tokens.iter().map(|&token| session.decode(token).unwrap());
    decoded.flatten().collect()
}

/// An adapter beside the weights of a shape, on a model that was loaded with options.
fn check_shape(shape: Shape, options: &LoadOptions) {
    let random = &mut Random(7);
    let (bytes, mut oracle) = random_model(shape, 3);
    let model = LanguageModel::from_bytes(bytes, options.clone()).unwrap();
    let parts = parts(shape, random);
    let lora = model.lora_from_bytes(gguf(shape, &parts), LoraOptions::default());
    let lora = lora.unwrap();
    assert_eq!(lora.layers(), parts.len());
    let tokens = tokens(13, random);
    let exact = oracle.logits(&tokens).concat();
    merge(&mut oracle, &parts, 0.5 * f64::from(ALPHA) / RANK as f64);
    let adapted = oracle.logits(&tokens).concat();
    let lora = [lora.scaled(0.5)];
    let what = format!("{} with an adapter", shape.name);
    assert_close(&with_lora(&model, &tokens, &lora), &adapted, &what);
    assert_close(&one_by_one(&model, &tokens, &lora), &adapted, &what);
    assert_close(&with_lora(&model, &tokens, &[]), &exact, "without it");
}

#[test]
fn adapters_give_the_logits_of_merged_weights() {
    for shape in SHAPES {
        for &set in InstructionSet::available() {
            let mut options = LoadOptions::default();
            options.instruction_set = Some(set);
            check_shape(shape, &options);
        }
    }
}

#[test]
fn adapters_give_the_logits_of_merged_weights_on_a_gpu() {
    for (_, options) in on_gpus() {
        for shape in SHAPES {
            check_shape(shape, &options);
        }
    }
}

#[test]
fn safetensors_are_the_same_adapter() {
    let random = &mut Random(9);
    for shape in SHAPES.into_iter().filter(|shape| shape.name != "phi3") {
        let (bytes, _) = random_model(shape, 0);
        let model = load(&bytes, InstructionSet::best());
        let (parts, tokens) = (parts(shape, random), tokens(5, random));
        let both = [gguf(shape, &parts), safetensors(shape, &parts)];
        let [a, b] = both.map(|file| model.lora_from_bytes(file, alpha()).unwrap());
        let [a, b] = [a, b].map(|lora| with_lora(&model, &tokens, &[lora.into()]));
        assert_eq!(a, b, "{}", shape.name);
    }
    let (bytes, _) = random_model(LLAMA, 0);
    let model = load(&bytes, InstructionSet::best());
    let file = safetensors(LLAMA, &parts(LLAMA, random));
    let folder = std::env::temp_dir().join(format!("relampago-lora-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("adapter_model.safetensors");
    std::fs::write(&path, &file).unwrap();
    let missing = model.load_lora(&path, LoraOptions::default()).unwrap_err();
    assert_eq!(missing.code(), "INVALID_ARGUMENT");
    let config = r#"{ "r": 5, "lora_alpha": 10, "alpha_pattern": {} }"#;
    std::fs::write(folder.join("adapter_config.json"), config).unwrap();
    let loaded = model.load_lora(&path, LoraOptions::default()).unwrap();
    let given = model.lora_from_bytes(file, alpha()).unwrap();
    let [loaded, given] = [loaded, given].map(|lora| with_lora(&model, &[1, 2], &[lora.into()]));
    assert_eq!(loaded, given);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn several_adapters_add_up_and_switch_without_a_reload() {
    let random = &mut Random(11);
    let (bytes, mut oracle) = random_model(LLAMA, 2);
    let model = load(&bytes, InstructionSet::best());
    let both = [parts(LLAMA, random), parts(LLAMA, random)];
    let files = both.each_ref().map(|parts| gguf(LLAMA, parts));
    let [a, b] = files.map(|file| model.lora_from_bytes(file, alpha()).unwrap());
    let tokens = tokens(6, random);
    let scale = f64::from(ALPHA) / RANK as f64;
    merge(&mut oracle, &both[0], scale);
    merge(&mut oracle, &both[1], -0.25 * scale);
    let lora = [a.scaled(1.0), b.scaled(-0.25)];
    let exact = oracle.logits(&tokens).concat();
    assert_close(&with_lora(&model, &tokens, &lora), &exact, "two adapters");
    let mut session = model.session().unwrap();
    session.prefill(&tokens).unwrap();
    session.set_lora(&[]).unwrap();
    assert_eq!(session.tokens(), tokens);
    session.set_lora(&lora).unwrap();
    assert!(session.tokens().is_empty());
    assert_close(&session.logits(&tokens).unwrap(), &exact, "switched");
    let mut options = GenerateOptions::default();
    options.max_tokens = 3;
    let plain = answer(&model, options.clone());
    options.lora = lora.to_vec();
    let adapted = answer(&model, options.clone());
    options.lora.clear();
    assert_eq!(answer(&model, options), plain);
    assert_ne!(adapted, plain);
}

#[test]
fn matrices_in_memory_are_an_adapter_of_queries_keys_and_values() {
    let random = &mut Random(13);
    let (bytes, mut oracle) = random_model(GEMMA, 0);
    let model = load(&bytes, InstructionSet::best());
    let mut parts = parts(GEMMA, random);
    parts.retain(|(name, ..)| ["blk.1.attn_q", "blk.1.attn_v"].contains(&name.as_str()));
    let [q, v] = ["blk.1.attn_q", "blk.1.attn_v"].map(|name| {
        let part = parts.iter().find(|part| part.0 == name).unwrap();
        (part.2.clone(), part.3.clone())
    });
    let layer = QkvLora::new(RANK, ALPHA).q(q.0, q.1).v(v.0, v.1);
    let lora = model.qkv_lora(&[(1, layer.clone())]).unwrap();
    merge(&mut oracle, &parts, f64::from(ALPHA) / RANK as f64);
    let tokens = tokens(4, random);
    let exact = oracle.logits(&tokens).concat();
    assert_close(
        &with_lora(&model, &tokens, &[lora.into()]),
        &exact,
        "in memory",
    );
    let beyond = model.qkv_lora(&[(7, layer)]).unwrap_err();
    assert_eq!(beyond.code(), "INVALID_MODEL");
    let short = QkvLora::new(RANK, ALPHA).k(vec![0.0; RANK * WIDTH], vec![0.0; RANK]);
    // Four times this rank is 0 in 64 bits.
    let huge = QkvLora::new(1 << 62, ALPHA).k(vec![], vec![]);
    for wrong in [short, huge] {
        let error = model.qkv_lora(&[(0, wrong)]).unwrap_err();
        assert_eq!(error.code(), "INVALID_MODEL");
    }
}

#[test]
fn an_adapter_with_an_alpha_of_0_changes_nothing() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let layer = QkvLora::new(1, 0.0).q(vec![1.0; WIDTH], vec![1.0; WIDTH]);
    let lora = model.qkv_lora(&[(0, layer)]).unwrap();
    let adapted = with_lora(&model, &[1, 2, 3], &[lora.into()]);
    assert_eq!(adapted, with_lora(&model, &[1, 2, 3], &[]));
}

#[test]
fn adapters_that_do_not_fit_are_refused_by_name() {
    let random = &mut Random(15);
    let (bytes, _) = random_model(LLAMA, 0);
    let model = load(&bytes, InstructionSet::best());
    let refused = |file: Vec<u8>, message: &str| {
        let error = model.lora_from_bytes(file, alpha()).unwrap_err();
        assert_eq!(error.code(), "INVALID_MODEL");
        assert!(error.to_string().contains(message), "{error}");
    };
    let all = parts(LLAMA, random);
    refused(
        gguf(GEMMA, &all),
        "it is the string `gemma3`, but must be `llama`",
    );
    refused(bytes.clone(), "metadata `general.type`");
    let renamed = |name: &str| {
        let mut all = all.clone();
        all[0].0 = name.to_owned();
        all
    };
    refused(
        gguf(LLAMA, &renamed("blk.9.attn_q")),
        "no linear layer of this name, at adapter of `blk.9",
    );
    refused(
        gguf(LLAMA, &renamed("token_embd")),
        "adapters of the embedding",
    );
    let mut short = all.clone();
    short[0].1 -= 1;
    short[0].3.truncate((WIDTH - 1) * RANK);
    refused(
        gguf(LLAMA, &short),
        "256 rows of 256 weights need 1280 and 1280",
    );
    refused(b"what is this".to_vec(), "neither GGUF nor safetensors");
    let (mixture, _) = random_model(QWEN3_MOE, 0);
    let mixture = load(&mixture, InstructionSet::best());
    let of_experts = gguf(QWEN3_MOE, &renamed("blk.0.ffn_up_exps"));
    let error = mixture.lora_from_bytes(of_experts, alpha()).unwrap_err();
    assert!(error.to_string().contains("adapters of experts"), "{error}");
    let lora = model.lora_from_bytes(gguf(LLAMA, &all), alpha()).unwrap();
    let other = load(&bytes, InstructionSet::best());
    let set = |model: &LanguageModel, lora: ScaledLora| {
        model
            .session()
            .unwrap()
            .set_lora(&[lora])
            .unwrap_err()
            .code()
    };
    assert_eq!(set(&other, lora.clone().into()), "FOREIGN");
    assert_eq!(set(&model, lora.scaled(f32::NAN)), "INVALID_ARGUMENT");
}

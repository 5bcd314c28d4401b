//! Language models: tiny random files against a pass in `f64`, and hostile files.
#![cfg(all(feature = "llm", not(target_arch = "wasm32")))]

#[path = "support/gguf.rs"]
mod gguf;
mod support;

use gguf::Writer;
use relampago::InstructionSet;
use relampago::llm::{
    FinishReason, GenerateOptions, Gguf, LanguageModel, LoadOptions, Message, WeightType,
};
use support::Random;

const WIDTH: usize = 256;
const HEADS: usize = 8;
const KV_HEADS: usize = 4;
const HEAD: usize = WIDTH / HEADS;
const LAYERS: usize = 2;
const EPSILON: f64 = 1e-5;
const BASE: f64 = 10_000.0;

const TYPES: [WeightType; 15] = [
    WeightType::Q4_1,
    WeightType::Q8_0,
    WeightType::Q4_0,
    WeightType::F32,
    WeightType::F16,
    WeightType::BF16,
    WeightType::Q5_0,
    WeightType::Q5_1,
    WeightType::Q2_K,
    WeightType::Q3_K,
    WeightType::Q4_K,
    WeightType::Q5_K,
    WeightType::Q6_K,
    WeightType::IQ4_NL,
    WeightType::IQ4_XS,
];

/// The characters of byte-level vocabularies, in the order of the bytes.
fn byte_tokens() -> Vec<String> {
    let printable = |byte: u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut next = 0x100;
    let characters = (0..256).map(|byte| {
        if printable(byte) {
            return char::from_u32(byte).unwrap();
        }
        next += 1;
        char::from_u32(next - 1).unwrap()
    });
    characters.map(String::from).collect()
}

/// Metadata of a tiny model with the vocabulary of bytes, two merges and two control tokens.
fn metadata() -> (Writer, usize) {
    let mut writer = Writer::default();
    writer.text("general.architecture", "llama");
    for (key, value) in [
        ("block_count", LAYERS),
        ("context_length", 256),
        ("embedding_length", WIDTH),
        ("feed_forward_length", WIDTH),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KV_HEADS),
    ] {
        writer.number(&format!("llama.{key}"), value as u32);
    }
    writer.float("llama.attention.layer_norm_rms_epsilon", EPSILON as f32);
    let mut tokens = byte_tokens();
    tokens.extend(["he", "hel", "<|im_start|>", "<|im_end|>"].map(String::from));
    let types: Vec<i32> = (0..tokens.len())
        .map(|id| if id < 258 { 1 } else { 3 })
        .collect();
    writer.text("tokenizer.ggml.model", "gpt2");
    writer.text("tokenizer.ggml.pre", "smollm");
    writer.texts("tokenizer.ggml.tokens", &tokens);
    writer.numbers("tokenizer.ggml.token_type", &types);
    writer.texts(
        "tokenizer.ggml.merges",
        &["h e".to_owned(), "he l".to_owned()],
    );
    writer.number("tokenizer.ggml.eos_token_id", 259);
    writer.text(
        "tokenizer.chat_template",
        "{% for m in messages %}\n<|im_start|>{{ m.role }}:{{ m['content'] }}<|im_end|>{% endfor %}",
    );
    (writer, tokens.len())
}

/// The weights of a model, as `f64`.
struct Oracle {
    embedding: Vec<f64>,
    norms: Vec<Vec<f64>>,
    matrices: Vec<Vec<f64>>,
}

const MATRICES: [(&str, usize); 7] = [
    ("attn_q", WIDTH),
    ("attn_k", KV_HEADS * HEAD),
    ("attn_v", KV_HEADS * HEAD),
    ("attn_output", WIDTH),
    ("ffn_gate", WIDTH),
    ("ffn_up", WIDTH),
    ("ffn_down", WIDTH),
];

fn random_model(seed: u64) -> (Vec<u8>, Oracle) {
    let random = &mut Random(seed);
    let (mut writer, vocabulary) = metadata();
    let f32 = WeightType::F32;
    let embedding = [WIDTH, vocabulary];
    let embedding = writer.random("token_embd.weight", &embedding, WeightType::Q8_0, random);
    let (mut norms, mut matrices) = (Vec::new(), Vec::new());
    for layer in 0..LAYERS {
        for norm in ["attn_norm", "ffn_norm"] {
            norms.push(writer.random(&format!("blk.{layer}.{norm}.weight"), &[WIDTH], f32, random));
        }
        for (name, rows) in MATRICES {
            let kind = TYPES[(matrices.len() + seed as usize) % TYPES.len()];
            let name = format!("blk.{layer}.{name}.weight");
            matrices.push(writer.random(&name, &[WIDTH, rows], kind, random));
        }
    }
    norms.push(writer.random("output_norm.weight", &[WIDTH], f32, random));
    let oracle = Oracle {
        embedding,
        norms,
        matrices,
    };
    (writer.finish(), oracle)
}

fn multiply(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    let rows = matrix.chunks_exact(x.len());
    rows.map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum())
        .collect()
}

fn norm(x: &[f64], gain: &[f64]) -> Vec<f64> {
    let square = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    let scale = 1.0 / (square + EPSILON).sqrt();
    x.iter()
        .zip(gain)
        .map(|(x, gain)| x * scale * gain)
        .collect()
}

fn rotate(x: &mut [f64], position: usize) {
    for head in x.chunks_exact_mut(HEAD) {
        for pair in 0..HEAD / 2 {
            let angle = position as f64 * BASE.powf(-(2.0 * pair as f64) / HEAD as f64);
            let (sin, cos) = angle.sin_cos();
            let (a, b) = (head[2 * pair], head[2 * pair + 1]);
            (head[2 * pair], head[2 * pair + 1]) = (a * cos - b * sin, a * sin + b * cos);
        }
    }
}

impl Oracle {
    /// The logits after each token.
    fn logits(&self, tokens: &[u32]) -> Vec<Vec<f64>> {
        let row = |token: u32| self.embedding[token as usize * WIDTH..][..WIDTH].to_vec();
        let mut xs: Vec<Vec<f64>> = tokens.iter().map(|&token| row(token)).collect();
        for layer in 0..LAYERS {
            self.layer(&mut xs, layer);
        }
        let norms = xs.iter().map(|x| norm(x, &self.norms[2 * LAYERS]));
        norms.map(|x| multiply(&self.embedding, &x)).collect()
    }

    fn layer(&self, xs: &mut [Vec<f64>], layer: usize) {
        let matrix = |index: usize| &self.matrices[layer * MATRICES.len() + index];
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (position, x) in xs.iter_mut().enumerate() {
            let h = norm(x, &self.norms[2 * layer]);
            let [mut q, mut k, v] = [0, 1, 2].map(|index| multiply(matrix(index), &h));
            rotate(&mut q, position);
            rotate(&mut k, position);
            keys.push(k);
            values.push(v);
            let mixed: Vec<f64> = (0..HEADS)
                .flat_map(|head| attend(&q, head, &keys, &values))
                .collect();
            add(x, &multiply(matrix(3), &mixed));
            let h = norm(x, &self.norms[2 * layer + 1]);
            let [gate, up] = [4, 5].map(|index| multiply(matrix(index), &h));
            let hidden = gate
                .iter()
                .zip(&up)
                .map(|(g, u)| g / (1.0 + (-g).exp()) * u);
            add(x, &multiply(matrix(6), &hidden.collect::<Vec<f64>>()));
        }
    }
}

fn attend(q: &[f64], head: usize, keys: &[Vec<f64>], values: &[Vec<f64>]) -> Vec<f64> {
    let kv = head / (HEADS / KV_HEADS) * HEAD..(head / (HEADS / KV_HEADS) + 1) * HEAD;
    let q = &q[head * HEAD..(head + 1) * HEAD];
    let dot = |key: &Vec<f64>| {
        q.iter()
            .zip(&key[kv.clone()])
            .map(|(q, k)| q * k)
            .sum::<f64>()
    };
    let weights: Vec<f64> = keys
        .iter()
        .map(|key| (dot(key) / (HEAD as f64).sqrt()).exp())
        .collect();
    let total: f64 = weights.iter().sum();
    let mix = |i: usize| {
        weights
            .iter()
            .zip(values)
            .map(|(w, v)| w / total * v[kv.start + i])
            .sum()
    };
    (0..HEAD).map(mix).collect()
}

fn add(x: &mut [f64], more: &[f64]) {
    x.iter_mut().zip(more).for_each(|(x, more)| *x += more);
}

fn load(bytes: &[u8], set: InstructionSet) -> LanguageModel {
    let mut options = LoadOptions::default();
    options.instruction_set = Some(set);
    LanguageModel::from_bytes(bytes.to_vec(), options).unwrap()
}

fn tokens(len: usize, random: &mut Random) -> Vec<u32> {
    (0..len).map(|_| random.below(260) as u32).collect()
}

fn assert_close(logits: &[f32], exact: &[f64], what: &str) {
    let rms = (exact.iter().map(|x| x * x).sum::<f64>() / exact.len() as f64).sqrt();
    assert_eq!(logits.len(), exact.len());
    for (logit, exact) in logits.iter().zip(exact) {
        let difference = (f64::from(*logit) - exact).abs();
        assert!(
            difference <= 1e-3 * rms,
            "{what}: {logit}, exact {exact}, rms {rms}"
        );
    }
}

#[test]
fn logits_are_those_of_the_pass_in_f64() {
    for seed in 0..TYPES.len() as u64 {
        let (bytes, oracle) = random_model(seed);
        let tokens = tokens(9, &mut Random(seed));
        let exact = oracle.logits(&tokens).concat();
        for &set in InstructionSet::available() {
            let model = load(&bytes, set);
            let what = format!("seed {seed}, {}", set.name());
            let logits = model.session().unwrap().logits(&tokens).unwrap();
            assert_close(&logits, &exact, &what);
            let mut session = model.session().unwrap();
            let decoded = tokens
                .iter()
                .flat_map(|&token| session.decode(token).unwrap());
            assert_close(
                &decoded.collect::<Vec<f32>>(),
                &exact,
                &format!("{what}, one by one"),
            );
        }
    }
}

#[test]
fn prompts_of_several_blocks_and_rewinding_change_nothing() {
    let (bytes, oracle) = random_model(1);
    let model = load(&bytes, InstructionSet::best());
    let tokens = tokens(200, &mut Random(3));
    let exact = oracle.logits(&tokens);
    let mut session = model.session().unwrap();
    assert_close(
        &session.prefill(&tokens).unwrap(),
        &exact[199],
        "in one call",
    );
    session.rewind(150).unwrap();
    assert_eq!(session.tokens(), &tokens[..150]);
    assert_close(
        &session.prefill(&tokens[150..]).unwrap(),
        &exact[199],
        "rewound",
    );
    assert!(session.rewind(201).is_err());
    session.rewind(0).unwrap();
    assert_close(&session.prefill(&tokens[..1]).unwrap(), &exact[0], "anew");
}

#[test]
fn sessions_refuse_what_does_not_fit_and_stay_usable() {
    let (bytes, _) = random_model(1);
    let model = load(&bytes, InstructionSet::best());
    let mut session = model.session().unwrap();
    assert_eq!(session.prefill(&[]).unwrap_err().code(), "EMPTY");
    assert_eq!(session.decode(260).unwrap_err().code(), "INVALID_ARGUMENT");
    assert_eq!(
        session.prefill(&[1; 257]).unwrap_err().code(),
        "LIMIT_EXCEEDED"
    );
    assert_eq!(session.prefill(&[1; 256]).unwrap().len(), 260);
}

#[test]
fn control_tokens_come_from_the_template_only() {
    let (bytes, _) = random_model(1);
    let model = load(&bytes, InstructionSet::best());
    assert_eq!(model.tokenize("hello", false).unwrap(), [257, 108, 111]);
    assert_eq!(model.tokenize("<|im_end|>", true).unwrap(), [259]);
    assert_eq!(model.tokenize("<|im_end|>", false).unwrap().len(), 10);
    let text = "naïve 東京 <|im_start|>\n\n 12";
    for special in [false, true] {
        assert_eq!(
            model.detokenize(&model.tokenize(text, special).unwrap()),
            text
        );
    }
    let messages = [Message::user("a<|im_end|>b")];
    assert_eq!(
        model.render(&messages).unwrap(),
        "<|im_start|>user:a<|im_end|>b<|im_end|>"
    );
    let mut options = GenerateOptions::default();
    options.max_tokens = 20;
    let mut answer = model.chat(&messages, options.clone()).unwrap();
    let text: String = answer.by_ref().map(Result::unwrap).collect();
    assert!(answer.tokens().len() <= 20);
    assert_eq!(
        model.chat(&messages, options).unwrap().text().unwrap(),
        text
    );
}

#[test]
fn generation_takes_the_likeliest_tokens() {
    let (bytes, _) = random_model(1);
    let model = load(&bytes, InstructionSet::best());
    let mut options = GenerateOptions::default();
    options.max_tokens = 8;
    let mut answer = model.complete("hello", options.clone()).unwrap();
    let text: String = answer.by_ref().map(Result::unwrap).collect();
    let tokens = answer.tokens().to_vec();
    let reason = answer.finish_reason();
    let full = tokens.len() == options.max_tokens;
    assert_eq!(reason == Some(FinishReason::Length), full);
    let mut session = model.session().unwrap();
    let prompt = model.tokenize("hello", false).unwrap();
    let mut logits = session.prefill(&prompt).unwrap();
    for &token in &tokens {
        let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        assert_eq!(logits[token as usize], best);
        logits = session.decode(token).unwrap();
    }
    // For the npm package's tests, which must get the same.
    if let Ok(folder) = std::env::var("RELAMPAGO_TINY_MODEL") {
        let mut chat = model.chat(&[Message::user("hello")], options).unwrap();
        chat.by_ref().for_each(|text| drop(text.unwrap()));
        let json = serde_json::json!({ "text": text, "chat": chat.tokens() }).to_string();
        std::fs::write(format!("{folder}/tiny.gguf"), &bytes).unwrap();
        std::fs::write(format!("{folder}/tiny.json"), json).unwrap();
    }
}

#[test]
fn mutated_files_give_errors() {
    let (bytes, _) = random_model(1);
    let (mut writer, _) = metadata();
    writer.random("t", &[32, 2], WeightType::Q4_0, &mut Random(1));
    writer.random("u", &[4], WeightType::F32, &mut Random(1));
    let small = writer.finish();
    let random = &mut Random(5);
    let mut refused = 0;
    for _ in 0..100_000 {
        match Gguf::from_bytes(mutated(&small, random)) {
            Ok(file) => drop(file.keys().filter_map(|key| file.get(key)).count()),
            Err(error) => {
                assert_eq!(error.code(), "INVALID_MODEL");
                refused += 1;
            }
        }
    }
    assert!(refused > 20_000, "{refused}");
    let header = bytes.len() - 1_000_000.min(bytes.len() / 2);
    for _ in 0..300 {
        let mut bytes = bytes.clone();
        bytes[random.below(header.min(8000))] = random.next() as u8;
        // Whatever it says, it must not panic.
        if let Ok(model) = LanguageModel::from_bytes(bytes, LoadOptions::default()) {
            drop(model.session().and_then(|mut session| session.decode(1)));
        }
    }
}

/// A file with some bytes changed, or cut short.
fn mutated(file: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] = random.next() as u8,
            1 => bytes[at] = random.one_of(vec![0, 1, 0x7f, 0x80, 0xff]),
            2 => {
                let end = (at + 8).min(bytes.len());
                bytes[at..end].fill(0xff);
            }
            _ => bytes[at] ^= 1 << random.below(8),
        }
    }
    if random.below(8) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    bytes
}

#[test]
fn unsupported_models_are_refused_by_name() {
    for (name, expected) in [
        ("qwen2", "missing are biases"),
        ("unknown", "not supported"),
    ] {
        let mut writer = Writer::default();
        writer.text("general.architecture", name);
        let error = LanguageModel::from_bytes(writer.finish(), LoadOptions::default()).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(name) && message.contains(expected),
            "{message}"
        );
    }
}

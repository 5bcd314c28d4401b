//! Tiny random encoders, and their pass in `f64`, written independently of the library.

use super::gguf::random_tensor;
use crate::support::Random;
use relampago::llm::{GgufWriter, WeightType};

pub(crate) const WIDTH: usize = 64;
pub(crate) const CONTEXT: usize = 160;
const HEADS: usize = 4;
const HEAD: usize = WIDTH / HEADS;
const HIDDEN: usize = 96;
const LAYERS: usize = 2;
const EPSILON: f64 = 1e-12;
const TYPES: [WeightType; 4] = [
    WeightType::F32,
    WeightType::Q8_0,
    WeightType::Q4_0,
    WeightType::F16,
];

/// The vocabulary of most random encoders: four special tokens, letters and digits as words and as parts of words.
pub(crate) fn vocabulary() -> Vec<String> {
    let mut tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
        .map(String::from)
        .to_vec();
    let characters = || ('a'..='z').chain('0'..='9');
    tokens.extend(characters().map(|character| format!("\u{2581}{character}")));
    tokens.extend(characters().map(String::from));
    tokens
}

/// Writes the vocabulary of `WordPiece`, as llama.cpp's converter does.
fn write_wordpiece(writer: &mut GgufWriter, tokens: &[String]) {
    let id = |text: &str| tokens.iter().position(|token| token == text).unwrap() as u32;
    let kinds = tokens
        .iter()
        .map(|token| match token.starts_with('[') && token.len() > 1 {
            true => 3,
            false => 1,
        });
    writer.string("tokenizer.ggml.model", "bert");
    writer.strings("tokenizer.ggml.tokens", tokens);
    writer.integers("tokenizer.ggml.token_type", &kinds.collect::<Vec<_>>());
    for (name, text) in [
        ("unknown", "[UNK]"),
        ("cls", "[CLS]"),
        ("seperator", "[SEP]"),
    ] {
        writer.unsigned(&format!("tokenizer.ggml.{name}_token_id"), id(text));
    }
}

/// The metadata of a random encoder.
pub(crate) fn metadata(tokens: &[String]) -> GgufWriter {
    let mut writer = GgufWriter::default();
    writer.string("general.architecture", "bert");
    for (name, value) in [
        ("block_count", LAYERS),
        ("context_length", CONTEXT),
        ("embedding_length", WIDTH),
        ("feed_forward_length", HIDDEN),
        ("attention.head_count", HEADS),
    ] {
        writer.unsigned(&format!("bert.{name}"), value as u32);
    }
    writer.float("bert.attention.layer_norm_epsilon", EPSILON as f32);
    write_wordpiece(&mut writer, tokens);
    writer
}

/// The weights of a random encoder.
pub(crate) struct Encoder {
    tokens: Vec<f64>,
    positions: Vec<f64>,
    types: Vec<f64>,
    norm: [Vec<f64>; 2],
    layers: Vec<Layer>,
}

/// Matrices with their biases, and norms with theirs.
struct Layer {
    queries: [Vec<f64>; 2],
    keys: [Vec<f64>; 2],
    values: [Vec<f64>; 2],
    output: [Vec<f64>; 2],
    output_norm: [Vec<f64>; 2],
    up: [Vec<f64>; 2],
    down: [Vec<f64>; 2],
    layer_norm: [Vec<f64>; 2],
}

/// Returns a random file, after `set` has added metadata and tensors, and its weights.
pub(crate) fn random_encoder(seed: u64, set: impl FnOnce(&mut GgufWriter)) -> (Vec<u8>, Encoder) {
    random_encoder_of(&vocabulary(), seed, set)
}

/// [`random_encoder`] with these tokens.
pub(crate) fn random_encoder_of(
    tokens: &[String],
    seed: u64,
    set: impl FnOnce(&mut GgufWriter),
) -> (Vec<u8>, Encoder) {
    let random = &mut Random(seed);
    let mut writer = metadata(tokens);
    set(&mut writer);
    let writer = &mut writer;
    let f32 = WeightType::F32;
    let mut matrices = seed as usize;
    let (tokens, width) = (tokens.len(), WIDTH);
    let embedding = |writer: &mut GgufWriter, random: &mut Random, name: &str, rows| {
        random_tensor(writer, name, &[width, rows], f32, random)
    };
    let tokens = embedding(writer, random, "token_embd.weight", tokens);
    let positions = embedding(writer, random, "position_embd.weight", CONTEXT);
    let types = embedding(writer, random, "token_types.weight", 2);
    let mut norm = |writer: &mut GgufWriter, random: &mut Random, name: &str| {
        let part = |part: &str| format!("{name}.{part}");
        let gain = random_tensor(writer, &part("weight"), &[width], f32, random);
        [
            gain,
            random_tensor(writer, &part("bias"), &[width], f32, random),
        ]
    };
    let mut linear = |writer: &mut GgufWriter, random: &mut Random, name: &str, cols, rows| {
        let kind = TYPES[matrices % TYPES.len()];
        matrices += 1;
        let part = |part: &str| format!("{name}.{part}");
        let matrix = random_tensor(writer, &part("weight"), &[cols, rows], kind, random);
        [
            matrix,
            random_tensor(writer, &part("bias"), &[rows], f32, random),
        ]
    };
    let norm_of_input = norm(writer, random, "token_embd_norm");
    let mut layers = Vec::new();
    for index in 0..LAYERS {
        let name = |part: &str| format!("blk.{index}.{part}");
        layers.push(Layer {
            queries: linear(writer, random, &name("attn_q"), WIDTH, WIDTH),
            keys: linear(writer, random, &name("attn_k"), WIDTH, WIDTH),
            values: linear(writer, random, &name("attn_v"), WIDTH, WIDTH),
            output: linear(writer, random, &name("attn_output"), WIDTH, WIDTH),
            output_norm: norm(writer, random, &name("attn_output_norm")),
            up: linear(writer, random, &name("ffn_up"), WIDTH, HIDDEN),
            down: linear(writer, random, &name("ffn_down"), HIDDEN, WIDTH),
            layer_norm: norm(writer, random, &name("layer_output_norm")),
        });
    }
    let encoder = Encoder {
        tokens,
        positions,
        types,
        norm: norm_of_input,
        layers,
    };
    (std::mem::take(writer).finish(), encoder)
}

fn linear([matrix, bias]: &[Vec<f64>; 2], x: &[f64]) -> Vec<f64> {
    let rows = matrix.chunks_exact(x.len()).zip(bias);
    let row = |(row, bias): (&[f64], &f64)| {
        bias + row.iter().zip(x).map(|(weight, x)| weight * x).sum::<f64>()
    };
    rows.map(row).collect()
}

fn norm([gain, bias]: &[Vec<f64>; 2], x: &[f64]) -> Vec<f64> {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
    let scale = 1.0 / (variance + EPSILON).sqrt();
    let all = x.iter().zip(gain).zip(bias);
    all.map(|((x, gain), bias)| (x - mean) * scale * gain + bias)
        .collect()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

impl Encoder {
    /// Returns the values of all tokens after the last layer.
    pub(crate) fn values(&self, tokens: &[u32]) -> Vec<Vec<f64>> {
        let row = |matrix: &'_ [f64], at: usize| matrix[at * WIDTH..][..WIDTH].to_vec();
        let input = tokens.iter().enumerate().map(|(position, &token)| {
            let embedding = row(&self.tokens, token as usize);
            let embedding = sum(&embedding, &row(&self.positions, position));
            norm(&self.norm, &sum(&embedding, &row(&self.types, 0)))
        });
        let mut xs: Vec<Vec<f64>> = input.collect();
        for layer in &self.layers {
            let all = |by: &[Vec<f64>; 2]| xs.iter().map(|x| linear(by, x)).collect();
            let [queries, keys, values]: [Vec<Vec<f64>>; 3] =
                [&layer.queries, &layer.keys, &layer.values].map(all);
            for (x, query) in xs.iter_mut().zip(&queries) {
                let mixed = attend(query, &keys, &values);
                *x = norm(&layer.output_norm, &sum(x, &linear(&layer.output, &mixed)));
                let hidden: Vec<f64> = linear(&layer.up, x).into_iter().map(gelu).collect();
                *x = norm(&layer.layer_norm, &sum(x, &linear(&layer.down, &hidden)));
            }
        }
        xs
    }
}

/// The attention of one token, all heads.
fn attend(query: &[f64], keys: &[Vec<f64>], values: &[Vec<f64>]) -> Vec<f64> {
    let of_head = |head: usize| {
        let part = head * HEAD..(head + 1) * HEAD;
        let score = |key: &Vec<f64>| {
            let products = query[part.clone()].iter().zip(&key[part.clone()]);
            products.map(|(q, k)| q * k).sum::<f64>() / (HEAD as f64).sqrt()
        };
        let weights: Vec<f64> = keys.iter().map(|key| score(key).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mut mixed = vec![0.0; HEAD];
        for (weight, value) in weights.iter().zip(values) {
            for (mixed, value) in mixed.iter_mut().zip(&value[part.clone()]) {
                *mixed += weight / total * value;
            }
        }
        mixed
    };
    (0..HEADS).flat_map(of_head).collect()
}

/// `x Φ(x)`, by Simpson's rule for the integral of the normal density.
fn gelu(x: f64) -> f64 {
    const STEPS: usize = 200;
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let step = x / STEPS as f64;
    let inner = (1..STEPS).map(|i| {
        let weight = if i % 2 == 1 { 4.0 } else { 2.0 };
        weight * density(i as f64 * step)
    });
    let integral = (density(0.0) + density(x) + inner.sum::<f64>()) * step / 3.0;
    x * (0.5 + integral)
}

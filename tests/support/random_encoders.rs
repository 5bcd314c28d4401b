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
/// The base of rotations.
const BASE: f64 = 1000.0;

/// The properties of an encoder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Whether positions have embeddings; else heads are rotated.
    embeds_positions: bool,
    /// Whether there are gates and no biases, and queries, keys and values are rows of one matrix.
    gated: bool,
    /// The number of types of tokens.
    types: usize,
}

pub(crate) const BERT: Shape = Shape {
    name: "bert",
    embeds_positions: true,
    gated: false,
    types: 2,
};

/// `bert` with one type of tokens, as models have it that rank texts.
pub(crate) const RANKING: Shape = Shape { types: 1, ..BERT };

pub(crate) const NOMIC: Shape = Shape {
    name: "nomic-bert",
    embeds_positions: false,
    gated: true,
    types: 2,
};

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
pub(crate) fn write_wordpiece(writer: &mut GgufWriter, tokens: &[String]) {
    let id = |text: &str| tokens.iter().position(|token| token == text).unwrap() as u32;
    let is_special = |token: &String| token.len() > 1 && token.starts_with('[');
    let kinds = tokens
        .iter()
        .map(|token| if is_special(token) { 3 } else { 1 });
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
pub(crate) fn metadata(shape: Shape) -> GgufWriter {
    let mut writer = GgufWriter::default();
    let key = |name: &str| format!("{}.{name}", shape.name);
    writer.string("general.architecture", shape.name);
    for (name, value) in [
        ("block_count", LAYERS),
        ("context_length", CONTEXT),
        ("embedding_length", WIDTH),
        ("feed_forward_length", HIDDEN),
        ("attention.head_count", HEADS),
    ] {
        writer.unsigned(&key(name), value as u32);
    }
    writer.float(&key("attention.layer_norm_epsilon"), EPSILON as f32);
    writer.boolean(&key("attention.causal"), false);
    if !shape.embeds_positions {
        writer.float(&key("rope.freq_base"), BASE as f32);
    }
    writer
}

/// The weights of a random encoder.
pub(crate) struct Encoder {
    shape: Shape,
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
    gate: [Vec<f64>; 2],
    up: [Vec<f64>; 2],
    down: [Vec<f64>; 2],
    result_norm: [Vec<f64>; 2],
}

/// Returns a random file, after `set` has added metadata and tensors, and its weights.
pub(crate) fn random_encoder(
    shape: Shape,
    seed: u64,
    set: impl FnOnce(&mut GgufWriter),
) -> (Vec<u8>, Encoder) {
    let tokens = vocabulary();
    random_encoder_of(shape, tokens.len(), seed, |writer| {
        write_wordpiece(writer, &tokens);
        set(writer);
    })
}

/// [`random_encoder`] with this number of tokens, which `set` writes, too.
pub(crate) fn random_encoder_of(
    shape: Shape,
    tokens: usize,
    seed: u64,
    set: impl FnOnce(&mut GgufWriter),
) -> (Vec<u8>, Encoder) {
    let random = &mut Random(seed);
    let mut writer = metadata(shape);
    set(&mut writer);
    let writer = &mut writer;
    let f32 = WeightType::F32;
    let mut matrices = seed as usize;
    let width = WIDTH;
    let embedding = |writer: &mut GgufWriter, random: &mut Random, name: &str, rows| {
        random_tensor(writer, name, &[width, rows], f32, random)
    };
    let tokens = embedding(writer, random, "token_embd.weight", tokens);
    let positions = if shape.embeds_positions {
        embedding(writer, random, "position_embd.weight", CONTEXT)
    } else {
        vec![0.0; CONTEXT * WIDTH]
    };
    let types = embedding(writer, random, "token_types.weight", shape.types);
    let norm = |writer: &mut GgufWriter, random: &mut Random, name: &str| {
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
        if shape.gated {
            return [matrix, vec![0.0; rows]];
        }
        [
            matrix,
            random_tensor(writer, &part("bias"), &[rows], f32, random),
        ]
    };
    let norm_of_input = norm(writer, random, "token_embd_norm");
    let mut layers = Vec::new();
    for index in 0..LAYERS {
        let name = |part: &str| format!("blk.{index}.{part}");
        let [queries, keys, values] = if shape.gated {
            let [all, bias] = linear(writer, random, &name("attn_qkv"), WIDTH, 3 * WIDTH);
            [0, 1, 2].map(|part| [part_of(&all, part), part_of(&bias, part)])
        } else {
            ["attn_q", "attn_k", "attn_v"]
                .map(|part| linear(writer, random, &name(part), WIDTH, WIDTH))
        };
        layers.push(Layer {
            queries,
            keys,
            values,
            gate: if shape.gated {
                linear(writer, random, &name("ffn_gate"), WIDTH, HIDDEN)
            } else {
                Default::default()
            },
            output: linear(writer, random, &name("attn_output"), WIDTH, WIDTH),
            output_norm: norm(writer, random, &name("attn_output_norm")),
            up: linear(writer, random, &name("ffn_up"), WIDTH, HIDDEN),
            down: linear(writer, random, &name("ffn_down"), HIDDEN, WIDTH),
            result_norm: norm(writer, random, &name("layer_output_norm")),
        });
    }
    let encoder = Encoder {
        shape,
        tokens,
        positions,
        types,
        norm: norm_of_input,
        layers,
    };
    (std::mem::take(writer).finish(), encoder)
}

/// Returns a third of a matrix or a vector.
fn part_of(all: &[f64], part: usize) -> Vec<f64> {
    let len = all.len() / 3;
    all[part * len..(part + 1) * len].to_vec()
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

/// Writes the head of an encoder that ranks texts, after metadata that says so, and one type of tokens.
pub(crate) fn write_ranking_head(
    writer: &mut GgufWriter,
    random: &mut Random,
) -> [[Vec<f64>; 2]; 2] {
    let mut layer = |name: &str, rows: usize| {
        let mut part = |part: &str, shape: &[usize]| {
            random_tensor(
                writer,
                &format!("{name}.{part}"),
                shape,
                WeightType::F32,
                random,
            )
        };
        [part("weight", &[WIDTH, rows]), part("bias", &[rows])]
    };
    [layer("cls", WIDTH), layer("cls.output", 1)]
}

/// The score of the values of a pair's first token.
pub(crate) fn score(head: &[[Vec<f64>; 2]; 2], first: &[f64]) -> f64 {
    let hidden: Vec<f64> = linear(&head[0], first).into_iter().map(f64::tanh).collect();
    linear(&head[1], &hidden)[0]
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
            let [mut queries, mut keys, values]: [Vec<Vec<f64>>; 3] =
                [&layer.queries, &layer.keys, &layer.values].map(all);
            if !self.shape.embeds_positions {
                for rows in [&mut queries, &mut keys] {
                    let rows = rows.iter_mut().enumerate();
                    rows.for_each(|(position, row)| rotate(row, position));
                }
            }
            for (x, query) in xs.iter_mut().zip(&queries) {
                let mixed = attend(query, &keys, &values);
                *x = norm(&layer.output_norm, &sum(x, &linear(&layer.output, &mixed)));
                let up = linear(&layer.up, x);
                let hidden: Vec<f64> = if self.shape.gated {
                    let gate = linear(&layer.gate, x).into_iter().zip(up);
                    gate.map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up)
                        .collect()
                } else {
                    up.into_iter().map(gelu).collect()
                };
                *x = norm(&layer.result_norm, &sum(x, &linear(&layer.down, &hidden)));
            }
        }
        xs
    }
}

/// Rotates each pair of elements of both halves of each head.
fn rotate(row: &mut [f64], position: usize) {
    for head in row.chunks_exact_mut(HEAD) {
        for pair in 0..HEAD / 2 {
            let angle = position as f64 * BASE.powf(-(2.0 * pair as f64) / HEAD as f64);
            let (a, b) = (head[pair], head[pair + HEAD / 2]);
            head[pair] = a * angle.cos() - b * angle.sin();
            head[pair + HEAD / 2] = a * angle.sin() + b * angle.cos();
        }
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

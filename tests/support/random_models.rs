//! Tiny random models of every architecture, and their forward pass in `f64`, written independently
//! of the library.

use super::gguf::random_tensor;
use super::vocabulary::{write_byte_pairs, write_calls, write_pieces, write_words};
use crate::support::Random;
use relampago::llm::{GgufWriter, WeightType};

pub(crate) const WIDTH: usize = 256;
pub(crate) const HEADS: usize = 8;
pub(crate) const KV_HEADS: usize = 4;
pub(crate) const HEAD: usize = WIDTH / HEADS;
pub(crate) const EPSILON: f64 = 1e-5;
const BASE: f64 = 10_000.0;
/// Gemma's base for layers that see everything.
const GLOBAL_BASE: f64 = 1_000_000.0;
/// The positions that a window has.
pub(crate) const WINDOW: usize = 5;
const ROWS: usize = KV_HEADS * HEAD;

pub(crate) const TYPES: [WeightType; 15] = [
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

/// What a random model is like.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Columns of a table.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) layers: usize,
    /// The most tokens.
    context: usize,
    /// Whether a rotation takes neighbours, and not one element of each half.
    pub(crate) neighbours: bool,
    biases: bool,
    gemma: bool,
    head_norms: bool,
    /// Whether all heads of queries, and all of keys, are normalised together.
    joint_norms: bool,
    /// Whether results are normalised, and not inputs.
    olmo: bool,
    fused: bool,
    windows: bool,
    /// The last of as many layers has no rotation; 0 if all rotate.
    unrotated: usize,
    /// The factors of embeddings, scores and additions to the residual, and the divisor of logits, if the file has them.
    multipliers: Option<[f64; 4]>,
    /// The bounds of scores and of logits; infinite if there are none.
    soft_caps: [f64; 2],
    /// Whether the rotation is scaled by `YaRN`, and queries have a temperature.
    yarn: bool,
    /// Whether the feed-forward network is a mixture of experts; whether the weights of the used ones add up to 1.
    pub(crate) experts: Option<bool>,
    /// Whether the file has a factor for each frequency of the rotation.
    factors: bool,
    tokenizer: Tokenizer,
}

/// The tokenizer of a random model.
#[derive(Clone, Copy, Debug)]
enum Tokenizer {
    /// Byte-level pairs.
    Bytes,
    /// Byte-level pairs, and the tokens around calls of functions and reasoning.
    Calls,
    /// Byte-level pairs whose tokens show the words of this pre-tokenizer.
    Words(&'static str),
    /// `SentencePiece`'s.
    Pieces,
}

impl Shape {
    /// Returns the shape with room for other numbers of tokens.
    pub(crate) fn with_context(self, context: usize) -> Self {
        Self { context, ..self }
    }

    /// Returns whether layers with windows have a base of their own.
    fn own_base(self) -> bool {
        self.name == "gemma3"
    }

    /// Returns the shape with the tokens around calls of functions and reasoning.
    pub(crate) fn with_calls(self) -> Self {
        let tokenizer = Tokenizer::Calls;
        Self { tokenizer, ..self }
    }

    /// Returns the shape with tokens that show the words of a pre-tokenizer.
    pub(crate) fn with_words_of(self, pretokenizer: &'static str) -> Self {
        let tokenizer = Tokenizer::Words(pretokenizer);
        Self { tokenizer, ..self }
    }
}

const PLAIN: Shape = Shape {
    name: "llama",
    layers: 2,
    context: 256,
    neighbours: true,
    biases: false,
    gemma: false,
    head_norms: false,
    joint_norms: false,
    olmo: false,
    fused: false,
    windows: false,
    unrotated: 0,
    multipliers: None,
    soft_caps: [f64::INFINITY; 2],
    yarn: false,
    experts: None,
    factors: false,
    tokenizer: Tokenizer::Bytes,
};

pub(crate) const LLAMA: Shape = PLAIN;

pub(crate) const GEMMA: Shape = Shape {
    name: "gemma3",
    layers: 7,
    neighbours: false,
    gemma: true,
    head_norms: true,
    windows: true,
    tokenizer: Tokenizer::Pieces,
    ..PLAIN
};

pub(crate) const GEMMA2: Shape = Shape {
    name: "gemma2",
    layers: 4,
    neighbours: false,
    gemma: true,
    windows: true,
    // Small ones, which random scores and logits reach.
    soft_caps: [0.5, 2.0],
    tokenizer: Tokenizer::Pieces,
    ..PLAIN
};

pub(crate) const OLMO2: Shape = Shape {
    name: "olmo2",
    layers: 4,
    neighbours: false,
    joint_norms: true,
    olmo: true,
    windows: true,
    ..PLAIN
};

pub(crate) const QWEN2: Shape = Shape {
    name: "qwen2",
    neighbours: false,
    biases: true,
    ..PLAIN
};

pub(crate) const QWEN3: Shape = Shape {
    name: "qwen3",
    neighbours: false,
    head_norms: true,
    ..PLAIN
};

pub(crate) const PHI: Shape = Shape {
    name: "phi3",
    neighbours: false,
    fused: true,
    windows: true,
    ..PLAIN
};

pub(crate) const SMOLLM3: Shape = Shape {
    name: "smollm3",
    layers: 4,
    unrotated: 4,
    ..PLAIN
};

pub(crate) const GRANITE: Shape = Shape {
    name: "granite",
    biases: true,
    multipliers: Some([12.0, 0.25, 0.125, 8.0]),
    ..PLAIN
};

pub(crate) const MISTRAL3: Shape = Shape {
    name: "mistral3",
    yarn: true,
    ..PLAIN
};

pub(crate) const QWEN3_MOE: Shape = Shape {
    name: "qwen3moe",
    neighbours: false,
    head_norms: true,
    experts: Some(true),
    ..PLAIN
};

pub(crate) const OLMOE: Shape = Shape {
    name: "olmoe",
    neighbours: false,
    joint_norms: true,
    experts: Some(false),
    ..PLAIN
};

pub(crate) const GRANITE_MOE: Shape = Shape {
    name: "granitemoe",
    multipliers: Some([12.0, 0.25, 0.125, 8.0]),
    experts: Some(true),
    ..PLAIN
};

/// The experts of a mixture, and those that a token uses.
pub(crate) const EXPERTS: usize = 6;
pub(crate) const USED_EXPERTS: usize = 2;

/// The original context of [`MISTRAL3`], and the scale of its temperature.
const ORIGINAL: usize = 8;
const TEMPERATURE: f64 = 0.5;

pub(crate) const SHAPES: [Shape; 14] = [
    LLAMA,
    Shape {
        factors: true,
        ..PLAIN
    },
    QWEN2,
    QWEN3,
    GEMMA,
    GEMMA2,
    OLMO2,
    PHI,
    SMOLLM3,
    GRANITE,
    MISTRAL3,
    QWEN3_MOE,
    OLMOE,
    GRANITE_MOE,
];

/// Metadata of a tiny model; returns the number of tokens, too.
pub(crate) fn metadata(shape: Shape) -> (GgufWriter, usize) {
    let mut writer = GgufWriter::default();
    let key = |name: &str| format!("{}.{name}", shape.name);
    writer.string("general.architecture", shape.name);
    for (name, value) in [
        ("block_count", shape.layers),
        ("context_length", shape.context),
        ("embedding_length", WIDTH),
        ("feed_forward_length", WIDTH),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KV_HEADS),
    ] {
        writer.unsigned(&key(name), value as u32);
    }
    writer.float(&key("attention.layer_norm_rms_epsilon"), EPSILON as f32);
    if shape.windows {
        writer.unsigned(&key("attention.sliding_window"), WINDOW as u32);
    }
    if shape.own_base() {
        writer.float(&key("rope.freq_base"), GLOBAL_BASE as f32);
    }
    if shape.experts.is_some() {
        writer.unsigned(&key("expert_count"), EXPERTS as u32);
        writer.unsigned(&key("expert_used_count"), USED_EXPERTS as u32);
        writer.unsigned(&key("expert_feed_forward_length"), WIDTH as u32);
    }
    if shape.yarn {
        writer.string(&key("rope.scaling.type"), "yarn");
        for (name, value) in [
            ("rope.scaling.factor", 4.0),
            ("rope.scaling.yarn_beta_slow", 0.1),
            ("rope.scaling.yarn_log_multiplier", 1.0),
            ("attention.temperature_scale", TEMPERATURE),
        ] {
            writer.float(&key(name), value as f32);
        }
        let original = key("rope.scaling.original_context_length");
        writer.unsigned(&original, ORIGINAL as u32);
    }
    let names = ["attn_logit_softcapping", "final_logit_softcapping"];
    for (name, cap) in names.into_iter().zip(shape.soft_caps) {
        if cap.is_finite() {
            writer.float(&key(name), cap as f32);
        }
    }
    let names = [
        "embedding_scale",
        "attention.scale",
        "residual_scale",
        "logit_scale",
    ];
    for (name, factor) in names.into_iter().zip(shape.multipliers.iter().flatten()) {
        writer.float(&key(name), *factor as f32);
    }
    let tokens = match shape.tokenizer {
        Tokenizer::Bytes => write_byte_pairs(&mut writer),
        Tokenizer::Calls => write_calls(&mut writer),
        Tokenizer::Words(pretokenizer) => write_words(&mut writer, pretokenizer),
        Tokenizer::Pieces => write_pieces(&mut writer),
    };
    (writer, tokens)
}

/// A model's weights and settings, as `f64`.
pub(crate) struct Oracle {
    shape: Shape,
    /// The bases of rotations of layers without and with a window.
    pub(crate) bases: [f64; 2],
    /// The factor that divides the frequencies, of Gemma in layers without a window only.
    pub(crate) scaling: f64,
    /// The factor of heads that are rotated.
    pub(crate) magnitude: f64,
    /// The number of elements of a head that are rotated.
    pub(crate) rotated: usize,
    /// The last one of as many layers has no window; 0 if all have one.
    pub(crate) period: usize,
    pub(crate) window: usize,
    pub(crate) epsilon: f64,
    /// The last of as many layers has no rotation; 0 if all rotate.
    pub(crate) unrotated: usize,
    /// The factors of embeddings, scores and additions to the residual, and the divisor of logits.
    pub(crate) multipliers: [f64; 4],
    /// The bounds of scores and of logits.
    pub(crate) soft_caps: [f64; 2],
    /// The scale of the temperature of queries, and its number of positions.
    pub(crate) temperature: (f64, usize),
    embedding: Vec<f64>,
    norm: Vec<f64>,
    pub(crate) factors: Vec<f64>,
    layers: Vec<Layer>,
}

#[derive(Default)]
struct Layer {
    attention_norm: Vec<f64>,
    feed_norm: Vec<f64>,
    /// The norms of the results of attention and of the feed-forward network.
    result_norms: [Vec<f64>; 2],
    /// The norms of the heads of queries and keys.
    head_norms: [Vec<f64>; 2],
    /// Queries, keys and values.
    projections: [Vec<f64>; 3],
    biases: [Vec<f64>; 3],
    output: Vec<f64>,
    /// The logits of experts.
    router: Vec<f64>,
    /// The matrices of the feed-forward network: of all experts one after the other.
    gate: Vec<f64>,
    up: Vec<f64>,
    down: Vec<f64>,
}

/// A random file and the weights in it; matrices have the type after that of the one before.
pub(crate) fn random_model(shape: Shape, seed: u64) -> (Vec<u8>, Oracle) {
    random_model_with(shape, seed, |_| ())
}

/// Returns a random model with more metadata and tensors, or other ones.
pub(crate) fn random_model_with(
    shape: Shape,
    seed: u64,
    set: impl FnOnce(&mut GgufWriter),
) -> (Vec<u8>, Oracle) {
    let random = &mut Random(seed);
    let (mut writer, vocabulary) = metadata(shape);
    set(&mut writer);
    let q8_0 = WeightType::Q8_0;
    let embedding = random_tensor(
        &mut writer,
        "token_embd.weight",
        &[WIDTH, vocabulary],
        q8_0,
        random,
    );
    let mut layers = Vec::new();
    let mut matrices = seed as usize;
    for index in 0..shape.layers {
        layers.push(random_layer(
            shape,
            index,
            &mut matrices,
            (&mut writer, random),
        ));
    }
    let norm = random_tensor(
        &mut writer,
        "output_norm.weight",
        &[WIDTH],
        WeightType::F32,
        random,
    );
    let mut factors = vec![1.0; HEAD / 2];
    if shape.factors {
        factors = (0..HEAD / 2).map(|i| f64::from(1 + i as u32)).collect();
        let values: Vec<f32> = factors.iter().map(|&x| x as f32).collect();
        writer
            .f32_tensor("rope_freqs.weight", &[values.len()], &values)
            .unwrap();
    }
    if shape.yarn {
        factors = yarn(4.0, ORIGINAL, [32.0, 0.1]);
    }
    let oracle = Oracle {
        shape,
        bases: [if shape.own_base() { GLOBAL_BASE } else { BASE }, BASE],
        scaling: 1.0,
        magnitude: 1.0,
        rotated: HEAD,
        period: match shape.name {
            "gemma3" => 6,
            "gemma2" => 2,
            "olmo2" => 4,
            _ => 0,
        },
        window: WINDOW,
        epsilon: EPSILON,
        unrotated: shape.unrotated,
        soft_caps: shape.soft_caps,
        temperature: (if shape.yarn { TEMPERATURE } else { 0.0 }, ORIGINAL),
        multipliers: shape.multipliers.unwrap_or([
            if shape.gemma {
                (WIDTH as f64).sqrt()
            } else {
                1.0
            },
            1.0 / (HEAD as f64).sqrt(),
            1.0,
            1.0,
        ]),
        embedding,
        norm,
        factors,
        layers,
    };
    (writer.finish(), oracle)
}

/// Adds the weights of a layer to a file. `matrices` counts matrices, which have the type after that of the one before.
fn random_layer(
    shape: Shape,
    index: usize,
    matrices: &mut usize,
    (writer, random): (&mut GgufWriter, &mut Random),
) -> Layer {
    let mut vector = |name: &str, len: usize| {
        let name = format!("blk.{index}.{name}");
        random_tensor(writer, &name, &[len], WeightType::F32, random)
    };
    let mut layer = Layer::default();
    if !shape.olmo {
        layer.attention_norm = vector("attn_norm.weight", WIDTH);
        layer.feed_norm = vector("ffn_norm.weight", WIDTH);
    }
    if shape.gemma || shape.olmo {
        let names = ["post_attention_norm.weight", "post_ffw_norm.weight"];
        layer.result_norms = names.map(|name| vector(name, WIDTH));
    }
    if shape.head_norms {
        let names = ["attn_q_norm.weight", "attn_k_norm.weight"];
        layer.head_norms = names.map(|name| vector(name, HEAD));
    }
    if shape.joint_norms {
        let norms = [("attn_q_norm.weight", WIDTH), ("attn_k_norm.weight", ROWS)];
        layer.head_norms = norms.map(|(name, len)| vector(name, len));
    }
    if shape.biases {
        let biases = [
            ("attn_q.bias", WIDTH),
            ("attn_k.bias", ROWS),
            ("attn_v.bias", ROWS),
        ];
        layer.biases = biases.map(|(name, len)| vector(name, len));
    }
    let mut matrix = |name: &str, rows: usize| {
        let kind = TYPES[*matrices % TYPES.len()];
        *matrices += 1;
        let name = format!("blk.{index}.{name}.weight");
        random_tensor(writer, &name, &[WIDTH, rows], kind, random)
    };
    if shape.fused {
        let all = matrix("attn_qkv", WIDTH + 2 * ROWS);
        let (queries, rest) = all.split_at(WIDTH * WIDTH);
        let (keys, values) = rest.split_at(ROWS * WIDTH);
        layer.projections = [queries, keys, values].map(<[f64]>::to_vec);
        let all = matrix("ffn_up", 2 * WIDTH);
        let (gate, up) = all.split_at(WIDTH * WIDTH);
        (layer.gate, layer.up) = (gate.to_vec(), up.to_vec());
    } else {
        let parts = [("attn_q", WIDTH), ("attn_k", ROWS), ("attn_v", ROWS)];
        layer.projections = parts.map(|(name, rows)| matrix(name, rows));
        if shape.experts.is_none() {
            layer.gate = matrix("ffn_gate", WIDTH);
            layer.up = matrix("ffn_up", WIDTH);
        }
    }
    layer.output = matrix("attn_output", WIDTH);
    if shape.experts.is_none() {
        layer.down = matrix("ffn_down", WIDTH);
    } else {
        layer.router = matrix("ffn_gate_inp", EXPERTS);
        let mut stacked = |name: &str| {
            let kind = TYPES[*matrices % TYPES.len()];
            *matrices += 1;
            let name = format!("blk.{index}.{name}_exps.weight");
            random_tensor(writer, &name, &[WIDTH, WIDTH, EXPERTS], kind, random)
        };
        layer.gate = stacked("ffn_gate");
        layer.up = stacked("ffn_up");
        layer.down = stacked("ffn_down");
    }
    layer
}

fn multiply(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    let rows = matrix.chunks_exact(x.len());
    rows.map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum())
        .collect()
}

fn add(x: &mut [f64], more: &[f64]) {
    x.iter_mut().zip(more).for_each(|(x, more)| *x += more);
}

/// The divisors of the frequencies of a rotation with the plain base, as `YaRN` scales it: from the pairs that turn
/// `fast` times in the original context on to those that turn `slow` times, they grow from 1 to the factor.
pub(crate) fn yarn(factor: f64, original: usize, [fast, slow]: [f64; 2]) -> Vec<f64> {
    let pair = |turns: f64| {
        let radians = turns * 2.0 * std::f64::consts::PI;
        HEAD as f64 * (original as f64 / radians).ln() / (2.0 * BASE.ln())
    };
    let low = pair(fast).floor().max(0.0);
    let high = pair(slow).ceil().min(HEAD as f64 - 1.0);
    let divisor = |i: usize| {
        let frequency = BASE.powf(-2.0 * i as f64 / HEAD as f64);
        let kept = 1.0 - ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
        let scaled = frequency / factor * (1.0 - kept) + frequency * kept;
        frequency / scaled
    };
    (0..HEAD / 2).map(divisor).collect()
}

fn bounded(x: f64, cap: f64) -> f64 {
    if cap.is_finite() {
        cap * (x / cap).tanh()
    } else {
        x
    }
}

impl Oracle {
    /// Adds to the weights of a layer's tensor, by its name in the file.
    pub(crate) fn add(&mut self, layer: usize, name: &str, more: &[f64]) {
        let Layer {
            projections: [q, k, v],
            output,
            gate,
            up,
            down,
            ..
        } = &mut self.layers[layer];
        let parts = match name {
            "attn_q" => vec![q],
            "attn_k" => vec![k],
            "attn_v" => vec![v],
            "attn_qkv" => vec![q, k, v],
            "attn_output" => vec![output],
            "ffn_gate" => vec![gate],
            "ffn_up" if self.shape.fused => vec![gate, up],
            "ffn_up" => vec![up],
            _ => vec![down],
        };
        let mut rest = more;
        for part in parts {
            let (more, after) = rest.split_at(part.len());
            add(part, more);
            rest = after;
        }
        assert!(rest.is_empty());
    }

    /// The linear layers of a block and their rows.
    pub(crate) fn linear(shape: Shape) -> Vec<(&'static str, usize)> {
        let mut all = vec![("attn_output", WIDTH), ("ffn_down", WIDTH)];
        if shape.fused {
            all.extend([("attn_qkv", WIDTH + 2 * ROWS), ("ffn_up", 2 * WIDTH)]);
        } else {
            all.extend([("attn_q", WIDTH), ("attn_k", ROWS), ("attn_v", ROWS)]);
            all.extend([("ffn_gate", WIDTH), ("ffn_up", WIDTH)]);
        }
        if shape.experts.is_some() {
            all.retain(|(name, _)| !name.starts_with("ffn"));
        }
        all
    }

    /// The logits after each token.
    pub(crate) fn logits(&self, tokens: &[u32]) -> Vec<Vec<f64>> {
        let normed = self.hidden(tokens).into_iter();
        let logits = normed.map(|x| multiply(&self.embedding, &x));
        let divided = logits.map(|logits| {
            logits
                .iter()
                .map(|x| bounded(x / self.multipliers[3], self.soft_caps[1]))
                .collect()
        });
        divided.collect()
    }

    /// The values after the last norm.
    pub(crate) fn hidden(&self, tokens: &[u32]) -> Vec<Vec<f64>> {
        let scale = self.multipliers[0];
        let row = |token: u32| &self.embedding[token as usize * WIDTH..][..WIDTH];
        let scaled = |token: &u32| row(*token).iter().map(|x| x * scale).collect();
        let mut xs: Vec<Vec<f64>> = tokens.iter().map(scaled).collect();
        for layer in 0..self.layers.len() {
            self.layer(&mut xs, layer);
        }
        xs.iter().map(|x| self.norm(x, &self.norm)).collect()
    }

    /// Rows as long as the gain, normalised; as they are without a gain.
    fn norm(&self, x: &[f64], gain: &[f64]) -> Vec<f64> {
        if gain.is_empty() {
            return x.to_vec();
        }
        let normed = x.chunks_exact(gain.len()).flat_map(|x| {
            let square = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
            let scale = 1.0 / (square + self.epsilon).sqrt();
            x.iter().zip(gain).map(move |(x, gain)| x * scale * gain)
        });
        normed.collect()
    }

    fn layer(&self, xs: &mut [Vec<f64>], index: usize) {
        let norm = |x: &[f64], gain: &[f64]| self.norm(x, gain);
        let layer = &self.layers[index];
        let is_global = self.period > 0 && index % self.period == self.period - 1;
        let local = self.shape.windows && !is_global;
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (position, x) in xs.iter_mut().enumerate() {
            let h = norm(x, &layer.attention_norm);
            let [mut q, mut k, mut v] = layer.projections.each_ref().map(|w| multiply(w, &h));
            for (x, bias) in [&mut q, &mut k, &mut v].into_iter().zip(&layer.biases) {
                add(x, bias);
            }
            q = norm(&q, &layer.head_norms[0]);
            k = norm(&k, &layer.head_norms[1]);
            if self.unrotated == 0 || !(index + 1).is_multiple_of(self.unrotated) {
                self.rotate(&mut q, position, local);
                self.rotate(&mut k, position, local);
            }
            let (scale, length) = self.temperature;
            let temperature = 1.0 + scale * ((position / length) as f64 + 1.0).ln();
            for q in &mut q {
                *q *= temperature;
            }
            keys.push(k);
            values.push(v);
            let first = if local {
                (position + 1).saturating_sub(self.window)
            } else {
                0
            };
            let mixed: Vec<f64> = (0..HEADS)
                .flat_map(|head| self.attend(&q, head, &keys[first..], &values[first..]))
                .collect();
            let attended = norm(&multiply(&layer.output, &mixed), &layer.result_norms[0]);
            self.add_to_residual(x, &attended);
            let h = norm(x, &layer.feed_norm);
            let fed = match self.shape.experts {
                Some(normalises) => self.mix_experts(layer, &h, normalises),
                None => self.feed(layer, &h, 0),
            };
            let fed = norm(&fed, &layer.result_norms[1]);
            self.add_to_residual(x, &fed);
        }
    }

    /// The result of the feed-forward network, or of one of its experts.
    fn feed(&self, layer: &Layer, h: &[f64], expert: usize) -> Vec<f64> {
        let own = |w: &'_ [f64]| w[expert * WIDTH * WIDTH..][..WIDTH * WIDTH].to_vec();
        let [gate, up] = [&layer.gate, &layer.up].map(|w| multiply(&own(w), h));
        let hidden = gate.iter().zip(&up).map(|(&g, u)| self.activation(g) * u);
        let hidden: Vec<f64> = hidden.collect();
        multiply(&own(&layer.down), &hidden)
    }

    /// The weighted sum of the results of the likeliest experts.
    fn mix_experts(&self, layer: &Layer, h: &[f64], normalises: bool) -> Vec<f64> {
        let odds: Vec<f64> = multiply(&layer.router, h).iter().map(|x| x.exp()).collect();
        let mut order: Vec<usize> = (0..EXPERTS).collect();
        order.sort_by(|&a, &b| odds[b].total_cmp(&odds[a]));
        let used = &order[..USED_EXPERTS];
        let counted = if normalises { used } else { &order };
        let total: f64 = counted.iter().map(|&expert| odds[expert]).sum();
        let mut sum = vec![0.0; WIDTH];
        for &expert in used {
            let weighted = self.feed(layer, h, expert);
            let weighted: Vec<f64> = weighted.iter().map(|x| x * odds[expert] / total).collect();
            add(&mut sum, &weighted);
        }
        sum
    }

    fn add_to_residual(&self, x: &mut [f64], more: &[f64]) {
        let [_, _, factor, _] = self.multipliers;
        for (x, more) in x.iter_mut().zip(more) {
            *x += factor * more;
        }
    }

    fn activation(&self, x: f64) -> f64 {
        if !self.shape.gemma {
            return x / (1.0 + (-x).exp());
        }
        let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
        0.5 * x * (1.0 + inner.tanh())
    }

    fn rotate(&self, x: &mut [f64], position: usize, local: bool) {
        let base = self.bases[usize::from(local)];
        let is_scaled = !(local && (self.shape.own_base() || self.shape.olmo));
        let scaling = if is_scaled { self.scaling } else { 1.0 };
        let magnitude = if local && self.shape.olmo {
            1.0
        } else {
            self.magnitude
        };
        let rotated = self.rotated;
        for head in x.chunks_exact_mut(HEAD) {
            for pair in 0..rotated / 2 {
                let frequency = base.powf(-(2.0 * pair as f64) / rotated as f64);
                let factor = if is_scaled { self.factors[pair] } else { 1.0 };
                let frequency = frequency / factor / scaling;
                let (sin, cos) = (position as f64 * frequency).sin_cos();
                let [sin, cos] = [sin, cos].map(|part| part * magnitude);
                let [first, second] = if self.shape.neighbours {
                    [2 * pair, 2 * pair + 1]
                } else {
                    [pair, pair + rotated / 2]
                };
                let (a, b) = (head[first], head[second]);
                (head[first], head[second]) = (a * cos - b * sin, a * sin + b * cos);
            }
        }
    }

    fn attend(&self, q: &[f64], head: usize, keys: &[Vec<f64>], values: &[Vec<f64>]) -> Vec<f64> {
        let kv = head / (HEADS / KV_HEADS) * HEAD..(head / (HEADS / KV_HEADS) + 1) * HEAD;
        let q = &q[head * HEAD..(head + 1) * HEAD];
        let dot = |key: &Vec<f64>| {
            let products = q.iter().zip(&key[kv.clone()]).map(|(q, k)| q * k);
            bounded(
                products.sum::<f64>() * self.multipliers[1],
                self.soft_caps[0],
            )
        };
        let scores: Vec<f64> = keys.iter().map(dot).collect();
        let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mix = |i: usize| {
            let parts = weights.iter().zip(values);
            parts.map(|(w, v)| w / total * v[kv.start + i]).sum()
        };
        (0..HEAD).map(mix).collect()
    }
}

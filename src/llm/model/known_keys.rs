//! The table of metadata keys that change the mathematics of a model in llama.cpp, and of tensors that change nothing.
//!
//! A file with a setting that the forward pass does not implement is refused. [`Config`] reads a key, or the key
//! changes nothing, or it must have the value that the forward pass uses. An unknown key with the name of such a
//! setting must be 0, false or empty.

use super::Config;
use super::metadata::Keys;
use super::rotation::Temperature;
use crate::error::Result;
use crate::graph::steps::Activation;
use crate::llm::Value;

/// The requirement on a key's value.
enum Rule {
    /// Anything: `Config` reads and checks it.
    Read,
    /// Anything: the forward pass does not depend on it, or depends on it only with another key that is refused.
    Free,
    /// One of these numbers; `false` is 0 and `true` is 1.
    Numbers(&'static [f64]),
    /// The number that the forward pass uses, or 0, which means that the file does not set it.
    Same(fn(&Config) -> f64),
    /// One of these numbers if the model has experts.
    OfExperts(&'static [f64]),
    /// Whether the weights of the experts that a token uses add up to 1, if the model has experts.
    Norm,
    /// Whether tokens see only those before them, as the architecture has it.
    Causal,
    /// 0, or a window that a session does not fill.
    NoWindow,
    /// A name of the activation that the forward pass computes.
    ActivationName,
}

/// A setting that the forward pass does not implement: 0 or `false`.
const OFF: Rule = Rule::Numbers(&[0.0]);
/// A factor that the forward pass does not apply: 1, or 0, which means that the file does not set it.
const NO_FACTOR: Rule = Rule::Numbers(&[0.0, 1.0]);

/// The keys of an architecture that llama.cpp reads. A name that ends in a point stands for all keys that begin with it.
const RULES: &[(&str, Rule)] = &[
    // Sizes.
    ("vocab_size", Rule::Free), // The embedding has the number.
    ("context_length", Rule::Read),
    ("embedding_length", Rule::Read),
    ("block_count", Rule::Read),
    ("feed_forward_length", Rule::Read),
    (
        "embedding_length_out",
        Rule::Same(|config| config.width as f64),
    ),
    ("embedding_length_per_layer_input", OFF),
    ("features_length", OFF),
    ("nextn_predict_layers", OFF),
    ("n_deepstack_layers", OFF),
    ("deepstack_mapping", Rule::Numbers(&[-1.0])),
    ("num_loops", NO_FACTOR),
    // Attention.
    ("attention.head_count", Rule::Read),
    ("attention.head_count_kv", Rule::Read),
    ("attention.key_length", Rule::Read),
    ("attention.value_length", Rule::Read),
    (
        "attention.key_length_swa",
        Rule::Same(|config| config.head_len as f64),
    ),
    (
        "attention.value_length_swa",
        Rule::Same(|config| config.head_len as f64),
    ),
    ("attention.layer_norm_rms_epsilon", Rule::Read),
    ("attention.layer_norm_epsilon", Rule::Free), // Of norms that subtract the mean.
    ("attention.sliding_window", Rule::NoWindow),
    ("attention.sliding_window_pattern", Rule::Read),
    ("attention.causal", Rule::Causal),
    (
        "attention.scale",
        Rule::Same(|config| config.multipliers.scores.into()),
    ),
    (
        "attention.temperature_scale",
        Rule::Same(|config| temperature(config).map_or(0.0, |temperature| temperature.scale)),
    ),
    (
        "attention.temperature_length",
        Rule::Same(|config| temperature(config).map_or(0.0, |temperature| temperature.length)),
    ),
    ("attention.output_scale", NO_FACTOR),
    ("attention.value_scale", NO_FACTOR),
    ("attention.clamp_kqv", OFF),
    ("attention.max_alibi_bias", OFF),
    (
        "attn_logit_softcapping",
        Rule::Same(|config| config.soft_caps.scores.unwrap_or(0.0).into()),
    ),
    ("full_attention_interval", OFF),
    // Rotation.
    ("rope.dimension_count", Rule::Read),
    (
        "rope.dimension_count_swa",
        Rule::Same(|config| config.rotations[0].rotated as f64),
    ),
    ("rope.freq_base", Rule::Read),
    (
        "rope.freq_base_swa",
        Rule::Same(|config| config.rotations[1].base),
    ),
    ("rope.scale_linear", Rule::Read),
    ("rope.scaling.type", Rule::Read),
    ("rope.scaling.factor", Rule::Read),
    ("rope.scaling.attn_factor", Rule::Read),
    ("rope.scaling.original_context_length", Rule::Read),
    ("rope.scaling.finetuned", Rule::Read),
    ("rope.scaling.yarn_ext_factor", Rule::Read),
    ("rope.scaling.yarn_attn_factor", NO_FACTOR),
    ("rope.scaling.yarn_beta_fast", Rule::Read),
    ("rope.scaling.yarn_beta_slow", Rule::Read),
    ("rope.scaling.yarn_log_multiplier", Rule::Read),
    // Factors, limits and activations.
    (
        "logit_scale",
        Rule::Same(|config| 1.0 / f64::from(config.multipliers.logits)),
    ),
    (
        "residual_scale",
        Rule::Same(|config| config.multipliers.additions.into()),
    ),
    (
        "embedding_scale",
        Rule::Same(|config| config.multipliers.embedding.into()),
    ),
    (
        "final_logit_softcapping",
        Rule::Same(|config| config.soft_caps.logits.unwrap_or(0.0).into()),
    ),
    ("router_logit_softcapping", OFF),
    ("hidden_activation", Rule::ActivationName),
    ("hidden_act", Rule::ActivationName),
    ("use_parallel_residual", OFF),
    ("tensor_data_layout", Rule::Free), // A remark of the first converters.
    // Mixtures of experts: without experts their other settings change nothing.
    (
        "expert_count",
        Rule::Same(|config| config.experts.map_or(0.0, |experts| experts.count as f64)),
    ),
    ("expert_used_count", Rule::Read),
    ("expert_feed_forward_length", Rule::Read),
    ("expert_gating_func", Rule::OfExperts(&[0.0, 1.0])), // Softmax.
    ("expert_weights_scale", Rule::OfExperts(&[0.0, 1.0])),
    ("expert_weights_norm", Rule::Norm),
    ("expert_group_count", Rule::OfExperts(&[0.0, 1.0])),
    ("expert_group_used_count", Rule::OfExperts(&[0.0, 1.0])),
    ("expert_", Rule::OfExperts(&[0.0])),
    ("experts_per_group", Rule::OfExperts(&[0.0])),
    ("leading_dense_block_count", Rule::OfExperts(&[0.0])),
    ("interleave_moe_layer_step", Rule::OfExperts(&[0.0, 1.0])),
    ("moe_every_n_layers", Rule::OfExperts(&[0.0])),
    // Results other than logits.
    ("pooling_type", Rule::Free), // Embeddings read it.
    ("classifier.", Rule::Free),
    ("decoder_start_token_id", Rule::Free),
    // Other networks in the same file.
    ("vision.", Rule::Free),
    ("audio.", Rule::Free),
    ("mm.", Rule::Free),
    // Architectures that are not supported.
    ("ssm.", OFF),
    ("wkv.", OFF),
    ("kda.", OFF),
    ("shortconv.", OFF),
    ("hyper_connection.", OFF),
];

/// Parts of names of keys that change the mathematics. An unknown key with one of them must be 0, false or empty.
const TELLING: &[&str] = &[
    "activation",
    "alibi",
    "attention",
    "attn",
    "bias",
    "causal",
    "clamp",
    "conv",
    "dense",
    "expert",
    "factor",
    "layer",
    "loop",
    "moe",
    "norm",
    "residual",
    "rope",
    "scale",
    "scaling",
    "sliding",
    "softcap",
    "token_shift",
    "window",
];

/// Beginnings of names of tensors that the logits of texts do not depend on: other networks and heads in the same file.
const OTHER_NETWORKS: &[&str] = &["v.", "a.", "mm.", "cls."];

/// Endings of names of tensors that repeat metadata.
const REPEATED: &[&str] = &[".attn_rot_embd.weight"];

/// Refuses metadata that the forward pass of a model does not have.
///
/// # Errors
/// `InvalidModel` with the key, its value and the supported values.
pub(super) fn check(keys: Keys<'_>, config: &Config) -> Result<()> {
    let prefix = format!("{}.", keys.architecture);
    for key in keys.file.keys() {
        let Some(key) = key.strip_prefix(&prefix) else {
            continue;
        };
        let rule = rule(key);
        if let Some(value) = keys.get(key)
            && !rule.allows(value, config)
        {
            return Err(keys.misfit(key, &rule.requirement(config)));
        }
    }
    Ok(())
}

/// Returns whether the logits of texts do not depend on a tensor, by its name.
pub(super) fn is_other_tensor(name: &str) -> bool {
    OTHER_NETWORKS.iter().any(|start| name.starts_with(start))
        || REPEATED.iter().any(|end| name.ends_with(end))
}

/// Returns the rule of a key, which is named without the architecture.
fn rule(key: &str) -> &'static Rule {
    let same = RULES.iter().find(|(name, _)| *name == key);
    let is_group = |name: &str| name.ends_with(['.', '_']) && key.starts_with(name);
    let row = same.or_else(|| RULES.iter().find(|(name, _)| is_group(name)));
    match row {
        Some((_, rule)) => rule,
        None if TELLING.iter().any(|part| key.contains(part)) => &OFF,
        None => &Rule::Free,
    }
}

impl Rule {
    fn allows(&self, value: Value<'_>, config: &Config) -> bool {
        if let Value::Array(array) = value {
            return matches!(self, Rule::Read | Rule::Free)
                || array.iter().all(|value| self.allows(value, config));
        }
        let number = value
            .as_f64()
            .or(value.as_bool().map(|value| f64::from(u8::from(value))));
        match self {
            Rule::Read | Rule::Free => true,
            Rule::Numbers(allowed) => number.is_some_and(|number| allowed.contains(&number)),
            Rule::OfExperts(allowed) => {
                config.experts.is_none() || number.is_some_and(|number| allowed.contains(&number))
            }
            Rule::Norm => {
                let normalises = config.experts.map(|experts| experts.normalises);
                normalises.is_none_or(|normalises| number == Some(f64::from(u8::from(normalises))))
            }
            Rule::Same(of) => {
                let expected = of(config);
                // Files have the number in 32 bits.
                let is_same = |x: f64| x == 0.0 || (x - expected).abs() <= 1e-6 * expected.abs();
                number.is_some_and(is_same)
            }
            Rule::Causal => number == Some(causal(config)),
            Rule::NoWindow => {
                let is_filled = |x: f64| x > 0.0 && x < config.capacity as f64;
                config.window.is_some() || number.is_some_and(|window| !is_filled(window))
            }
            Rule::ActivationName => value
                .as_str()
                .is_some_and(|name| activation_names(config).contains(&name)),
        }
    }

    /// Returns the values that are allowed, as the end of "must be".
    fn requirement(&self, config: &Config) -> String {
        match self {
            Rule::Read | Rule::Free => "anything".to_owned(),
            Rule::Norm => {
                let normalises = config.experts.is_some_and(|experts| experts.normalises);
                format!("{normalises}: others are not supported")
            }
            Rule::Numbers(allowed) | Rule::OfExperts(allowed) => {
                let allowed: Vec<String> = allowed.iter().map(f64::to_string).collect();
                format!("{}: others are not supported", allowed.join(" or "))
            }
            Rule::Same(of) => format!("{}: others are not supported", of(config)),
            Rule::Causal => format!("{}: others are not supported", causal(config)),
            Rule::NoWindow => format!(
                "0 or at least the context of {} tokens: windows of this architecture are not supported",
                config.capacity
            ),
            Rule::ActivationName => activation_names(config).join(" or "),
        }
    }
}

fn temperature(config: &Config) -> Option<Temperature> {
    config.rotations[0].temperature
}

fn causal(config: &Config) -> f64 {
    f64::from(u8::from(!config.is_encoder()))
}

fn activation_names(config: &Config) -> &'static [&'static str] {
    let encoder = config.architecture.encoder.as_ref();
    if encoder.is_some_and(|encoder| !encoder.gates) {
        return &["gelu"];
    }
    match config.architecture.activation {
        Activation::Silu => &["silu", "swish"],
        Activation::GeluTanh => &["gelu_pytorch_tanh", "gelu_tanh"],
    }
}

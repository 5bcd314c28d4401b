//! The table of architectures, and the hyperparameters of a file's model.

use super::rotation::{Pairs, Rotation};
use crate::error::Result;
use crate::graph::transformer::Activation;
use crate::llm::gguf::{Gguf, invalid};
use crate::llm::{CacheType, Value};

/// The layers whose attention sees only a window of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Windows {
    None,
    All,
    /// All but every sixth layer. Their rotation has a base of its own.
    FiveOfSix,
}

/// What distinguishes an architecture.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // Columns of a table.
pub(super) struct Architecture {
    pub(super) name: &'static str,
    pub(super) pairs: Pairs,
    pub(super) activation: Activation,
    pub(super) windows: Windows,
    /// Whether queries and keys are normalised head by head.
    pub(super) norms_heads: bool,
    /// Whether the results of attention and of the feed-forward network are normalised.
    pub(super) norms_results: bool,
    /// Whether embeddings are multiplied by the square root of their length.
    pub(super) scales_embedding: bool,
    /// Whether queries, keys and values are rows of one matrix, and gate and up rows of another.
    pub(super) fused: bool,
}

/// The columns that most architectures share.
const PLAIN: Architecture = Architecture {
    name: "",
    pairs: Pairs::Halves,
    activation: Activation::Silu,
    windows: Windows::None,
    norms_heads: false,
    norms_results: false,
    scales_embedding: false,
    fused: false,
};

/// The architectures that the forward pass supports.
const ARCHITECTURES: &[Architecture] = &[
    Architecture {
        name: "llama",
        pairs: Pairs::Neighbours,
        ..PLAIN
    },
    Architecture {
        name: "qwen2",
        ..PLAIN
    },
    Architecture {
        name: "qwen3",
        norms_heads: true,
        ..PLAIN
    },
    Architecture {
        name: "gemma3",
        activation: Activation::GeluTanh,
        windows: Windows::FiveOfSix,
        norms_heads: true,
        norms_results: true,
        scales_embedding: true,
        ..PLAIN
    },
    Architecture {
        name: "phi3",
        windows: Windows::All,
        fused: true,
        ..PLAIN
    },
];

/// The layers of Gemma 3 with 27 billion parameters, whose scores have a scale of their own.
const GEMMA3_27B_LAYERS: usize = 62;

/// The longest head in elements, so that no file makes its reader allocate more. Models have heads of 64 to 256.
const MOST_HEAD: usize = 1 << 14;

/// A model's hyperparameters.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(super) architecture: &'static Architecture,
    pub(crate) layers: usize,
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_len: usize,
    pub(crate) hidden: usize,
    /// The most tokens that the model was trained for.
    pub(crate) context: usize,
    /// The most tokens of a session.
    pub(crate) capacity: usize,
    /// The type of keys and values.
    pub(crate) cache_type: CacheType,
    /// Whether layers with a window keep the keys and values of all positions.
    pub(crate) keeps_all: bool,
    /// The rotation of layers that see everything, and that of layers with a window.
    pub(super) rotations: [Rotation; 2],
    pub(super) window: Option<usize>,
    pub(super) epsilon: f32,
}

impl Config {
    /// Reads the hyperparameters of a model whose sessions have at most `capacity` tokens, 2048 or
    /// the model's own limit if that is smaller by default.
    pub(in crate::llm) fn new(
        file: &Gguf,
        capacity: Option<usize>,
        cache_type: CacheType,
    ) -> Result<Self> {
        let architecture = architecture(file)?;
        let keys = Keys(file, architecture.name);
        let width = keys.size("embedding_length", None)?;
        let heads = keys.size("attention.head_count", None)?;
        let head_len = keys.size("attention.key_length", Some((width / heads).max(1)))?;
        let context = keys.size("context_length", None)?;
        let capacity = capacity.unwrap_or(context.min(2048));
        if !(1..=context).contains(&capacity) {
            let requirement = format!("from 1 to {context}");
            let value = capacity.to_string();
            return Err(crate::error::Error::invalid(
                "context_length",
                value,
                requirement,
            ));
        }
        let rotated = rotated(keys, head_len)?;
        let config = Self {
            architecture,
            layers: keys.size("block_count", None)?,
            width,
            heads,
            kv_heads: keys.size("attention.head_count_kv", Some(heads))?,
            head_len,
            hidden: keys.size("feed_forward_length", None)?,
            context,
            capacity,
            cache_type,
            keeps_all: false,
            rotations: rotations(keys, architecture, rotated, capacity)?,
            window: keys.window(architecture)?,
            epsilon: keys.number("attention.layer_norm_rms_epsilon", None)? as f32,
        };
        config.check(keys)?;
        Ok(config)
    }

    fn check(&self, keys: Keys<'_>) -> Result<()> {
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(keys.invalid("the heads are no multiple of those of keys and values"));
        }
        if keys.size("attention.value_length", Some(self.head_len))? != self.head_len {
            return Err(keys.invalid("values are not as long as keys"));
        }
        if !(self.epsilon >= 0.0 && self.epsilon.is_finite()) {
            return Err(keys.invalid("the epsilon of the norms is no positive number"));
        }
        if keys.get("expert_count").is_some() {
            return Err(keys.invalid("experts are not supported"));
        }
        Ok(())
    }

    /// Returns whether a layer's attention sees only a window of positions.
    pub(super) fn is_local(&self, layer: usize) -> bool {
        self.window.is_some()
            && match self.architecture.windows {
                Windows::None => false,
                Windows::All => true,
                Windows::FiveOfSix => layer % 6 != 5,
            }
    }

    /// Returns the factor of the products of queries and keys.
    pub(super) fn score_scale(&self) -> f32 {
        let is_27b = self.architecture.name == "gemma3" && self.layers == GEMMA3_27B_LAYERS;
        let len = if is_27b {
            self.width / self.heads
        } else {
            self.head_len
        };
        1.0 / libm::sqrtf(len as f32)
    }

    /// Returns the factor of embeddings.
    pub(super) fn embedding_scale(&self) -> f32 {
        if self.architecture.scales_embedding {
            libm::sqrtf(self.width as f32)
        } else {
            1.0
        }
    }
}

/// The row of the file's architecture.
fn architecture(file: &Gguf) -> Result<&'static Architecture> {
    const KEY: &str = "general.architecture";
    let name = file.get(KEY).and_then(Value::as_str).unwrap_or_default();
    let row = ARCHITECTURES.iter().find(|row| row.name == name);
    row.ok_or_else(|| {
        let known: Vec<&str> = ARCHITECTURES.iter().map(|row| row.name).collect();
        let known = known.join(", ");
        let what = format!("the architecture `{name}` is not supported; supported are {known}");
        invalid(what, format!("metadata `{KEY}`"))
    })
}

/// The number of elements of a head that are rotated.
fn rotated(keys: Keys<'_>, head_len: usize) -> Result<usize> {
    if head_len > MOST_HEAD {
        let what = format!("heads of {head_len} elements, beyond the limit of {MOST_HEAD}");
        return Err(keys.invalid(&what));
    }
    let rotated = keys.size("rope.dimension_count", Some(head_len))?;
    if rotated > head_len || !rotated.is_multiple_of(2) {
        return Err(keys.invalid("the rotated part of a head is odd or longer than the head"));
    }
    Ok(rotated)
}

/// The rotations of layers that see everything and of layers with a window.
fn rotations(
    keys: Keys<'_>,
    architecture: &Architecture,
    rotated: usize,
    capacity: usize,
) -> Result<[Rotation; 2]> {
    let new = |base: f64| Rotation::new(architecture.pairs, rotated, base);
    let mut global = new(keys.positive("rope.freq_base", 1e4)?);
    match keys.get("rope.scaling.type").and_then(Value::as_str) {
        None | Some("none" | "longrope") => {}
        Some("linear") => global.divide(&[keys.positive("rope.scaling.factor", 1.0)?]),
        Some(other) => {
            return Err(keys.invalid(&format!("rotations scaled by `{other}` are not supported")));
        }
    }
    // Factors are weights, which a file's beginning does not have.
    let factors = factors(keys, capacity)?.filter(|_| !keys.0.is_head());
    if let Some((name, magnitude)) = factors {
        let factors = super::weights::vector(keys.0, name, rotated / 2)?;
        let factors: Vec<f64> = factors.into_iter().map(f64::from).collect();
        if !factors
            .iter()
            .all(|factor| *factor > 0.0 && factor.is_finite())
        {
            return Err(invalid(
                "a factor that is no positive number",
                format!("tensor `{name}`"),
            ));
        }
        global.divide(&factors);
        global.magnitude = magnitude;
    }
    let local = match architecture.windows {
        Windows::FiveOfSix => new(keys.positive("rope.freq_base_swa", 1e4)?),
        Windows::None | Windows::All => global.clone(),
    };
    Ok([global, local])
}

/// The tensor with a factor for each frequency, if there is one, and the factor of what is rotated:
/// Llama 3 has one tensor, Phi 3 one for contexts as long as at first and one for longer ones.
fn factors(keys: Keys<'_>, capacity: usize) -> Result<Option<(&'static str, f64)>> {
    let has = |name: &&str| keys.0.tensor(name).is_some();
    if has(&"rope_freqs.weight") {
        return Ok(Some(("rope_freqs.weight", 1.0)));
    }
    let original = keys.size("rope.scaling.original_context_length", Some(capacity))?;
    let name = if capacity > original {
        "rope_factors_long.weight"
    } else {
        "rope_factors_short.weight"
    };
    let magnitude = keys.positive("rope.scaling.attn_factor", 1.0)?;
    Ok(Some(name).filter(has).map(|name| (name, magnitude)))
}

/// The metadata of an architecture.
#[derive(Clone, Copy)]
struct Keys<'a>(&'a Gguf, &'static str);

impl<'a> Keys<'a> {
    fn get(self, key: &str) -> Option<Value<'a>> {
        self.0.get(&format!("{}.{key}", self.1))
    }

    /// A number of things: at least 1, and at most 2³⁰.
    fn size(self, key: &str, default: Option<usize>) -> Result<usize> {
        let value = match self.get(key) {
            Some(value) => value.as_u64(),
            None => default.map(|default| default as u64),
        };
        let size = value.filter(|size| (1..=1 << 30).contains(size));
        size.map(|size| size as usize)
            .ok_or_else(|| self.fault(key))
    }

    fn number(self, key: &str, default: Option<f64>) -> Result<f64> {
        let number = self.get(key).map_or(default, Value::as_f64);
        number.ok_or_else(|| self.fault(key))
    }

    fn positive(self, key: &str, default: f64) -> Result<f64> {
        let number = self.number(key, Some(default))?;
        let number = Some(number).filter(|number| *number > 0.0 && number.is_finite());
        number.ok_or_else(|| self.fault(key))
    }

    /// The positions that a layer with a window sees; a file says 0 for none.
    fn window(self, architecture: &Architecture) -> Result<Option<usize>> {
        const KEY: &str = "attention.sliding_window";
        let absent = self.get(KEY).is_none_or(|value| value.as_u64() == Some(0));
        if architecture.windows == Windows::None || absent {
            return Ok(None);
        }
        self.size(KEY, None).map(Some)
    }

    fn invalid(self, what: &str) -> crate::error::Error {
        invalid(what, format!("metadata of `{}`", self.1))
    }

    fn fault(self, key: &str) -> crate::error::Error {
        invalid(
            "missing, or out of its range",
            format!("metadata `{}.{key}`", self.1),
        )
    }
}

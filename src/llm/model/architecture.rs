//! The table of architectures, and the hyperparameters of a file's model.

use super::experts::{Experts, Normalises};
use super::factors::{Multipliers, SoftCaps};
use super::known_keys;
use super::metadata::{Keys, is_local};
use super::rotation::{Pairs, Rotation};
use super::rotations::{rotated, rotations};
use crate::error::{Error, Result};
use crate::graph::steps::Activation;
use crate::llm::gguf::{Gguf, invalid, misfit};
use crate::llm::{CacheType, Value};

/// The layers whose attention sees only a window of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Windows {
    None,
    All,
    /// All but the last one of each period.
    Periodic {
        /// The number of layers of a period, unless a file says otherwise.
        period: usize,
        /// The positions that a layer sees, unless a file says otherwise; `None` if layers then have no window.
        len: Option<usize>,
        rotation: LocalRotation,
    },
}

/// The rotation of layers with a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocalRotation {
    /// The rotation of the other layers.
    Same,
    /// A rotation with a base of its own, 10,000 unless a file says otherwise. Nothing scales its frequencies.
    OwnBase,
    /// The rotation of the other layers without their scaling and magnitude.
    Unscaled,
}

/// The norms of queries and of keys before their rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadNorms {
    None,
    /// Of each head by itself.
    Each,
    /// Of all heads of queries together, and of all heads of keys.
    Joint,
}

/// The properties that distinguish an encoder: its tokens see all tokens of their text, norms follow additions and have
/// a bias, and there are no logits.
#[derive(Debug)]
pub(super) struct Encoder {
    /// Whether each position has an embedding, in place of rotations.
    pub(super) embeds_positions: bool,
    /// Whether the feed-forward network has gates; else it has the GELU of values.
    pub(super) gates: bool,
}

/// The properties that distinguish an architecture.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // Columns of a table.
pub(super) struct Architecture {
    pub(super) name: &'static str,
    pub(super) pairs: Pairs,
    pub(super) activation: Activation,
    pub(super) windows: Windows,
    pub(super) norms_heads: HeadNorms,
    /// Whether the residual is normalised before attention and the feed-forward network.
    pub(super) norms_inputs: bool,
    /// Whether the results of attention and of the feed-forward network are normalised.
    pub(super) norms_results: bool,
    /// Whether embeddings are multiplied by the square root of their length.
    pub(super) scales_embedding: bool,
    /// Whether a file has factors for embeddings, scores, additions to the residual and logits.
    pub(super) has_multipliers: bool,
    /// Whether a file may have a temperature of queries.
    pub(super) has_temperature: bool,
    /// The bounds of scores and of logits if a file may have them, unless it says otherwise.
    pub(super) soft_caps: Option<[f32; 2]>,
    /// The number of layers of the model of the family whose scores depend on the width of a head's share, and not on the
    /// length of a head; 0 if there is none.
    pub(super) layers_of_wide: usize,
    /// The last of as many layers has no rotation; 0 if all rotate.
    unrotated: usize,
    /// Whether the feed-forward network is a mixture of experts, and whether the weights of the chosen ones add up to 1.
    pub(super) experts: Option<Normalises>,
    /// Whether queries, keys and values are rows of one matrix, and of a decoder gate and up rows of another.
    pub(super) fused: bool,
    /// The properties of an encoder; `None` for a decoder.
    pub(super) encoder: Option<Encoder>,
}

/// The columns that most architectures share.
const PLAIN: Architecture = Architecture {
    name: "",
    pairs: Pairs::Halves,
    activation: Activation::Silu,
    windows: Windows::None,
    norms_heads: HeadNorms::None,
    norms_inputs: true,
    norms_results: false,
    scales_embedding: false,
    has_multipliers: false,
    has_temperature: false,
    soft_caps: None,
    layers_of_wide: 0,
    unrotated: 0,
    experts: None,
    fused: false,
    encoder: None,
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
        norms_heads: HeadNorms::Each,
        ..PLAIN
    },
    Architecture {
        name: "gemma3",
        activation: Activation::GeluTanh,
        windows: Windows::Periodic {
            period: 6,
            len: None,
            rotation: LocalRotation::OwnBase,
        },
        norms_heads: HeadNorms::Each,
        norms_results: true,
        scales_embedding: true,
        layers_of_wide: 62,
        ..PLAIN
    },
    Architecture {
        name: "gemma2",
        activation: Activation::GeluTanh,
        windows: Windows::Periodic {
            period: 2,
            len: Some(4096),
            rotation: LocalRotation::Same,
        },
        norms_results: true,
        scales_embedding: true,
        soft_caps: Some([50.0, 30.0]),
        layers_of_wide: 46,
        ..PLAIN
    },
    Architecture {
        name: "phi3",
        windows: Windows::All,
        fused: true,
        ..PLAIN
    },
    Architecture {
        name: "olmo2",
        windows: Windows::Periodic {
            period: 4,
            len: None,
            rotation: LocalRotation::Unscaled,
        },
        norms_heads: HeadNorms::Joint,
        norms_inputs: false,
        norms_results: true,
        ..PLAIN
    },
    Architecture {
        name: "smollm3",
        pairs: Pairs::Neighbours,
        unrotated: 4,
        ..PLAIN
    },
    Architecture {
        name: "granite",
        pairs: Pairs::Neighbours,
        has_multipliers: true,
        ..PLAIN
    },
    Architecture {
        name: "mistral3",
        pairs: Pairs::Neighbours,
        has_temperature: true,
        ..PLAIN
    },
    Architecture {
        name: "qwen3moe",
        norms_heads: HeadNorms::Each,
        experts: Some(Normalises(true)),
        ..PLAIN
    },
    Architecture {
        name: "olmoe",
        norms_heads: HeadNorms::Joint,
        experts: Some(Normalises(false)),
        ..PLAIN
    },
    Architecture {
        name: "granitemoe",
        pairs: Pairs::Neighbours,
        has_multipliers: true,
        experts: Some(Normalises(true)),
        ..PLAIN
    },
    Architecture {
        name: "bert",
        encoder: Some(Encoder {
            embeds_positions: true,
            gates: false,
        }),
        ..PLAIN
    },
    Architecture {
        name: "nomic-bert",
        fused: true,
        encoder: Some(Encoder {
            embeds_positions: false,
            gates: true,
        }),
        ..PLAIN
    },
];

/// A model's hyperparameters.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(super) architecture: &'static Architecture,
    pub(crate) layers: usize,
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_len: usize,
    /// The length of a token's values between the matrices of the feed-forward network: of all experts that it uses.
    pub(crate) hidden: usize,
    pub(super) experts: Option<Experts>,
    /// The largest number of tokens that the model was trained for.
    pub(crate) context: usize,
    /// The largest number of tokens of a session.
    pub(crate) capacity: usize,
    /// The type of keys and values.
    pub(crate) cache_type: CacheType,
    /// Whether layers with a window keep the keys and values of all positions.
    pub(crate) keeps_all: bool,
    /// The rotation of layers that see everything, and that of layers with a window.
    pub(super) rotations: [Rotation; 2],
    /// The last of as many layers has no rotation; 0 if all rotate.
    unrotated: usize,
    pub(super) multipliers: Multipliers,
    pub(super) soft_caps: SoftCaps,
    pub(super) window: Option<usize>,
    /// The last of every `period` layers has no window; 0 if all layers have one.
    period: usize,
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
        let keys = Keys {
            file,
            architecture: architecture.name,
        };
        let layers = keys.size("block_count", None)?;
        let width = keys.size("embedding_length", None)?;
        let heads = keys.size_of_layers("attention.head_count", layers, None)?;
        let head_len = keys.size("attention.key_length", Some((width / heads).max(1)))?;
        let context = keys.size("context_length", None)?;
        let capacity = checked_capacity(capacity, context)?;
        let rotated = match architecture.encoder {
            Some(Encoder {
                embeds_positions: true,
                ..
            }) => 0,
            _ => rotated(keys, head_len)?,
        };
        let experts = Experts::new(keys, architecture, layers)?;
        let config = Self {
            architecture,
            layers,
            width,
            heads,
            kv_heads: keys.size_of_layers("attention.head_count_kv", layers, Some(heads))?,
            head_len,
            hidden: match experts {
                Some(experts) => experts.used * experts.hidden,
                None => keys.size_of_layers("feed_forward_length", layers, None)?,
            },
            experts,
            context,
            capacity,
            cache_type: match architecture.encoder {
                Some(_) => CacheType::F32,
                None => cache_type,
            },
            keeps_all: false,
            rotations: rotations(keys, architecture, [rotated, head_len], [capacity, context])?,
            unrotated: architecture.unrotated(keys),
            multipliers: Multipliers::new(keys, architecture, [width, heads, head_len, layers])?,
            soft_caps: SoftCaps::new(keys, architecture)?,
            window: architecture.window(keys)?,
            period: architecture.period(keys, layers)?,
            epsilon: keys.number(architecture.epsilon_key(), None)? as f32,
        };
        config.check(keys)?;
        Ok(config)
    }

    fn check(&self, keys: Keys<'_>) -> Result<()> {
        if !self.heads.is_multiple_of(self.kv_heads) {
            let (heads, kv_heads) = (self.heads, self.kv_heads);
            let what = format!("{heads} heads are no multiple of {kv_heads} of keys and values");
            return Err(keys.invalid(&what));
        }
        if keys.size("attention.value_length", Some(self.head_len))? != self.head_len {
            let requirement = format!("{} as that of keys", self.head_len);
            return Err(keys.misfit("attention.value_length", &requirement));
        }
        if !(self.epsilon >= 0.0 && self.epsilon.is_finite()) {
            let key = self.architecture.epsilon_key();
            return Err(keys.misfit(key, "a number that is not negative"));
        }
        known_keys::check(keys, self)
    }

    /// Returns whether the model is an encoder, which has no sessions.
    pub(crate) fn is_encoder(&self) -> bool {
        self.architecture.encoder.is_some()
    }

    /// Returns whether a layer's attention sees only a window of positions.
    pub(super) fn is_local(&self, layer: usize) -> bool {
        self.window.is_some() && is_local(layer, self.period)
    }

    /// Returns whether a layer rotates queries and keys.
    pub(super) fn rotates(&self, layer: usize) -> bool {
        self.unrotated == 0 || !(layer + 1).is_multiple_of(self.unrotated)
    }
}

impl Architecture {
    /// Returns the number of layers of which the last one has no rotation; 0 if all rotate. As in llama.cpp, a file of an
    /// architecture with multipliers whose rotation is not `finetuned` has none.
    fn unrotated(&self, keys: Keys<'_>) -> usize {
        let rotates = keys.get("rope.scaling.finetuned").and_then(Value::as_bool);
        if self.has_multipliers && rotates == Some(false) {
            return 1;
        }
        self.unrotated
    }

    fn epsilon_key(&self) -> &'static str {
        match self.encoder {
            Some(_) => "attention.layer_norm_epsilon",
            None => "attention.layer_norm_rms_epsilon",
        }
    }

    /// Returns the positions that a layer with a window sees, if layers have windows.
    fn window(&self, keys: Keys<'_>) -> Result<Option<usize>> {
        match self.windows {
            Windows::None => Ok(None),
            Windows::All => keys.window(None),
            Windows::Periodic { len, .. } => keys.window(len),
        }
    }

    /// Returns the period of layers without a window, 0 if all have one.
    fn period(&self, keys: Keys<'_>, layers: usize) -> Result<usize> {
        match self.windows {
            Windows::None => Ok(0),
            Windows::All => keys.period(layers, 0),
            Windows::Periodic { period, .. } => keys.period(layers, period),
        }
    }
}

/// The row of the file's architecture.
fn architecture(file: &Gguf) -> Result<&'static Architecture> {
    const KEY: &str = "general.architecture";
    let known: Vec<&str> = ARCHITECTURES.iter().map(|row| row.name).collect();
    let known = known.join(", ");
    let Some(name) = file.text(KEY)? else {
        return Err(misfit(KEY, None, &format!("one of {known}")));
    };
    let row = ARCHITECTURES.iter().find(|row| row.name == name);
    row.ok_or_else(|| {
        let what = format!("the architecture `{name}` is not supported; supported are {known}");
        invalid(what, format!("metadata `{KEY}`"))
    })
}

/// Returns the largest number of tokens of a session, for a model that was trained with `context` tokens.
fn checked_capacity(capacity: Option<usize>, context: usize) -> Result<usize> {
    let capacity = capacity.unwrap_or(context.min(2048));
    if (1..=context).contains(&capacity) {
        return Ok(capacity);
    }
    let requirement = format!("from 1 to {context}");
    let value = capacity.to_string();
    Err(Error::invalid("context_length", value, requirement))
}

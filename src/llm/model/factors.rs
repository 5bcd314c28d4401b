//! The factors and bounds of a model's values.

use super::architecture::Architecture;
use super::metadata::Keys;
use crate::error::Result;

/// The factors of a model's values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Multipliers {
    /// The factor of embeddings.
    pub(super) embedding: f32,
    /// The factor of the products of queries and keys.
    pub(super) scores: f32,
    /// The factor of the results of attention and of the feed-forward network.
    pub(super) additions: f32,
    /// The factor of logits.
    pub(super) logits: f32,
}

impl Multipliers {
    /// Reads the factors of a model by its width, its heads and their length, and its layers.
    pub(super) fn new(
        keys: Keys<'_>,
        architecture: &Architecture,
        [width, heads, head_len, layers]: [usize; 4],
    ) -> Result<Self> {
        let is_wide = architecture.layers_of_wide == layers;
        let len = if is_wide { width / heads } else { head_len };
        let plain = Self {
            embedding: if architecture.scales_embedding {
                libm::sqrtf(width as f32)
            } else {
                1.0
            },
            scores: 1.0 / libm::sqrtf(len as f32),
            additions: 1.0,
            logits: 1.0,
        };
        if !architecture.has_multipliers {
            return Ok(plain);
        }
        Ok(Self {
            embedding: keys.factor("embedding_scale", plain.embedding)?,
            scores: keys.factor("attention.scale", plain.scores)?,
            additions: keys.factor("residual_scale", plain.additions)?,
            // The file has the divisor.
            logits: 1.0 / keys.factor("logit_scale", plain.logits)?,
        })
    }
}

/// The bounds of a model's values: a value `x` becomes `c · tanh(x / c)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SoftCaps {
    pub(super) scores: Option<f32>,
    pub(super) logits: Option<f32>,
}

impl SoftCaps {
    /// Reads the bounds of an architecture that has some.
    pub(super) fn new(keys: Keys<'_>, architecture: &Architecture) -> Result<Self> {
        let Some(defaults) = architecture.soft_caps else {
            return Ok(Self {
                scores: None,
                logits: None,
            });
        };
        let cap = |key, default| keys.factor(key, default).map(Some);
        Ok(Self {
            scores: cap("attn_logit_softcapping", defaults[0])?,
            logits: cap("final_logit_softcapping", defaults[1])?,
        })
    }
}

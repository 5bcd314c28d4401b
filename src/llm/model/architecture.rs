//! The table of architectures, and what a file says of its model.

use crate::error::Result;
use crate::llm::Value;
use crate::llm::gguf::{Gguf, invalid};

/// Which values a rotation takes for a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rope {
    /// Neighbours.
    Interleaved,
    /// One from each half of the head.
    #[allow(dead_code)] // For the architectures whose rows are still missing.
    Halves,
}

/// What distinguishes an architecture.
#[derive(Debug)]
pub(super) struct Architecture {
    pub(super) name: &'static str,
    pub(super) rope: Rope,
}

/// The architectures that the forward pass supports.
const ARCHITECTURES: &[Architecture] = &[Architecture {
    name: "llama",
    rope: Rope::Interleaved,
}];

/// What known architectures need that the forward pass does not have.
const MISSING: &[(&str, &str)] = &[
    ("qwen2", "biases and rotation by halves"),
    ("qwen3", "norms of queries and keys and rotation by halves"),
    (
        "gemma3",
        "norms of queries and keys, norms after blocks, GELU, windows and a second rotation",
    ),
    ("phi3", "fused projections and rotation by halves"),
];

/// A model's hyperparameters.
#[derive(Debug)]
pub(crate) struct Config {
    pub(super) architecture: &'static Architecture,
    pub(crate) layers: usize,
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_len: usize,
    pub(crate) hidden: usize,
    pub(crate) context: usize,
    pub(super) rotated: usize,
    pub(super) rope_base: f64,
    pub(super) epsilon: f32,
}

impl Config {
    pub(super) fn new(file: &Gguf) -> Result<Self> {
        let architecture = architecture(file)?;
        let keys = Keys(file, architecture.name);
        let width = keys.size("embedding_length", None)?;
        let heads = keys.size("attention.head_count", None)?;
        let head_len = keys.size("attention.key_length", Some(width / heads))?;
        let config = Self {
            architecture,
            layers: keys.size("block_count", None)?,
            width,
            heads,
            kv_heads: keys.size("attention.head_count_kv", Some(heads))?,
            head_len,
            hidden: keys.size("feed_forward_length", None)?,
            context: keys.size("context_length", None)?,
            rotated: keys.size("rope.dimension_count", Some(head_len))?,
            rope_base: keys.number("rope.freq_base", Some(1e4))?,
            epsilon: keys.number("attention.layer_norm_rms_epsilon", None)? as f32,
        };
        config.check(keys)?;
        Ok(config)
    }

    fn check(&self, keys: Keys<'_>) -> Result<()> {
        let fault = |what: &str| Err(invalid(what, format!("metadata of `{}`", keys.1)));
        if !self.heads.is_multiple_of(self.kv_heads) {
            return fault("the heads are no multiple of those of keys and values");
        }
        if self.rotated > self.head_len || !self.rotated.is_multiple_of(2) {
            return fault("the rotated part of a head is odd or longer than the head");
        }
        if keys.size("attention.value_length", Some(self.head_len))? != self.head_len {
            return fault("values are not as long as keys");
        }
        if !(self.rope_base > 0.0 && self.rope_base.is_finite() && self.epsilon >= 0.0) {
            return fault(
                "the base of the rotation or the epsilon of the norms is no positive number",
            );
        }
        let scaling = keys.get("rope.scaling.type").and_then(Value::as_str);
        if scaling.is_some_and(|scaling| scaling != "none") || keys.get("expert_count").is_some() {
            return fault("scaled rotations and experts are not supported");
        }
        Ok(())
    }
}

/// The row of the file's architecture.
fn architecture(file: &Gguf) -> Result<&'static Architecture> {
    const KEY: &str = "general.architecture";
    let name = file.get(KEY).and_then(Value::as_str).unwrap_or_default();
    let row = ARCHITECTURES.iter().find(|row| row.name == name);
    let missing = MISSING.iter().find(|row| row.0 == name);
    row.ok_or_else(|| {
        let missing = missing.map_or(String::new(), |row| format!("; missing are {}", row.1));
        let what = format!("the architecture `{name}` is not supported{missing}");
        invalid(what, format!("metadata `{KEY}`"))
    })
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

    fn fault(self, key: &str) -> crate::error::Error {
        invalid(
            "missing, or out of its range",
            format!("metadata `{}.{key}`", self.1),
        )
    }
}

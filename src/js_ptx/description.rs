//! Which kernel is meant: one plain object for each, whose types TypeScript gets from here.

mod build;

use serde::Deserialize;
use tsify::Tsify;

use crate::ptx::PtxType;
use crate::ptx::kernels::{Activation, Binary, Epilogue, Pairs, QuantFormat, Reduction, Unary};

/// Tiles of 128 × 128 or of 64 × 64 values a block.
#[derive(Clone, Copy, Default, Deserialize, Tsify)]
#[serde(rename_all = "snake_case")]
pub enum TileSize {
    #[default]
    Large,
    Small,
}

/// The type of a product's result.
#[derive(Clone, Copy, Deserialize, Tsify)]
#[serde(rename_all = "snake_case")]
pub enum WmmaOutput {
    F16,
    F32,
}

/// Two bytes a number.
#[derive(Clone, Copy, Deserialize, Tsify)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    F16,
    BF16,
}

impl From<Half> for PtxType {
    fn from(half: Half) -> Self {
        match half {
            Half::F16 => Self::F16,
            Half::BF16 => Self::BF16,
        }
    }
}

/// What kernels compute with; `'f32'` unless given.
#[derive(Clone, Copy, Default, Deserialize, Tsify)]
#[serde(rename_all = "lowercase")]
pub enum Float {
    F16,
    BF16,
    #[default]
    F32,
}

impl From<Float> for PtxType {
    fn from(float: Float) -> Self {
        match float {
            Float::F16 => Self::F16,
            Float::BF16 => Self::BF16,
            Float::F32 => Self::F32,
        }
    }
}

/// One of two kernels by which many blocks share a row: what becomes known of its parts, and what
/// follows from that.
#[derive(Clone, Copy, Deserialize, Tsify)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Statistics,
    Rest,
}

/// Objects with these properties and no others.
macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident { $($fields:tt)* })*) => {$(
        $(#[$doc])*
        #[derive(Deserialize, Tsify)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name { $($fields)* }
    )*};
}

objects! {
    /// `C = act(α·A·B + β·C + bias)` in f32, one thread to a value of `C`: to compare with.
    GemmNaive {
        #[serde(default)]
        batched: bool,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// The same from tiles in shared memory, on any GPU.
    GemmTiled {
        #[serde(default)]
        tile: TileSize,
        /// For sizes that are multiples of 4 and matrices aligned to 16 bytes.
        #[serde(default)]
        aligned: bool,
        #[serde(default)]
        batched: bool,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// f16 on the tensor cores of any GPU since Volta.
    GemmWmma {
        /// The type of `C`.
        output: WmmaOutput,
        /// For `n` and `k` that are multiples of 8 and matrices aligned to 16 bytes.
        #[serde(default)]
        aligned: bool,
        #[serde(default)]
        batched: bool,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// On the tensor cores of any GPU since Ampere; f32 is rounded to tf32.
    GemmMma {
        r#type: Float,
        #[serde(default)]
        batched: bool,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// On Hopper's tensor cores; f32 is rounded to tf32.
    GemmWgmma {
        r#type: Float,
        /// Columns of a tile, 256 unless given, of f16 and bf16.
        #[tsify(optional, type = "128 | 256")]
        cols: Option<u32>,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// The sums of a product whose `k` is divided among blocks.
    GemmWgmmaSplit {
        r#type: Half,
        #[tsify(type = "128 | 256")]
        cols: u32,
    }

    /// What adds these up.
    GemmSplitSum {
        output: Float,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// The softmax of every row.
    Softmax {
        /// The layout that is fastest for rows of so many values; otherwise one for any.
        #[tsify(optional)]
        cols: Option<u32>,
        /// Whether its logarithm.
        #[serde(default)]
        log: bool,
        /// For rows that many blocks share.
        #[tsify(optional)]
        stage: Option<Stage>,
    }

    /// A norm of every row.
    Norm {
        /// The layout that is fastest for rows of so many values; otherwise one for any.
        #[tsify(optional)]
        cols: Option<u32>,
        /// For rows that many blocks share.
        #[tsify(optional)]
        stage: Option<Stage>,
    }

    /// Attention in f32, one warp to a query, on any GPU. A launch has at most 65,535 batches and heads.
    AttentionSimple {
        /// Values of a head: a multiple of 32 up to 256.
        dim: u32,
        #[serde(default)]
        causal: bool,
    }

    /// Attention in f32 by tiles in shared memory, on any GPU. A launch has at most 65,535 batches and heads.
    AttentionFlashTiled {
        #[tsify(type = "64 | 128")]
        dim: u32,
        #[serde(default)]
        causal: bool,
    }

    /// Attention on tensor cores. A launch has at most 65,535 batches and heads.
    AttentionFlash {
        r#type: Half,
        #[tsify(type = "64 | 128")]
        dim: u32,
        #[serde(default)]
        causal: bool,
    }

    /// Single queries over a cache of keys and values, whose length is divided among blocks.
    AttentionDecode {
        r#type: Half,
        #[tsify(type = "64 | 128 | 256")]
        dim: u32,
        /// Heads of queries that a block takes of those that share keys: as many share them, or a
        /// multiple.
        #[tsify(type = "1 | 2 | 4")]
        group: u32,
    }

    /// What joins its parts.
    AttentionDecodeSum {
        r#type: Float,
        /// Values of a head: a multiple of 4 up to 1024.
        dim: u32,
    }

    /// ggml's blocks as f32.
    Dequantize {
        format: QuantFormat,
    }

    /// A matrix of ggml's blocks times a vector.
    QuantizedGemv {
        format: QuantFormat,
        /// By the tensor cores of any GPU since Ampere.
        #[serde(default)]
        tensor_cores: bool,
    }

    /// Rows times the transpose of a matrix of ggml's blocks.
    QuantizedGemm {
        format: QuantFormat,
        r#type: Half,
        /// With `n`, the sizes for which work is shared out best.
        #[tsify(optional)]
        m: Option<u32>,
        #[tsify(optional)]
        n: Option<u32>,
    }

    /// A vector becomes one number.
    Reduce {
        reduction: Reduction,
        #[serde(default)]
        r#type: Float,
        /// Or one for each of several blocks, to be reduced again.
        #[serde(default)]
        parts: bool,
    }

    /// Rotary position embedding.
    Rope {
        /// Values of a head: a multiple of 8 up to 1024.
        dim: u32,
        pairs: Pairs,
        #[serde(default)]
        r#type: Float,
    }

    /// A function of every value.
    OfOne {
        function: Unary,
        #[serde(default)]
        r#type: Float,
    }

    /// An activation of every value.
    Activated {
        function: Activation,
        #[serde(default)]
        r#type: Float,
    }

    /// A function of every pair of values.
    OfTwo {
        function: Binary,
        #[serde(default)]
        r#type: Float,
    }
}

/// A kernel and its variant. Sizes are parameters of the launch: one text serves all of them.
#[derive(Deserialize, Tsify)]
#[serde(tag = "kernel", rename_all = "snake_case")]
pub enum KernelDescription {
    GemmNaive(GemmNaive),
    GemmTiled(GemmTiled),
    GemmWmma(GemmWmma),
    GemmMma(GemmMma),
    GemmWgmma(GemmWgmma),
    GemmWgmmaSplit(GemmWgmmaSplit),
    GemmSplitSum(GemmSplitSum),
    Softmax(Softmax),
    LayerNorm(Norm),
    RmsNorm(Norm),
    AttentionSimple(AttentionSimple),
    /// On those of Hopper.
    AttentionFlash(AttentionFlash),
    /// On those of any GPU since Ampere.
    AttentionFlashMma(AttentionFlash),
    AttentionFlashTiled(AttentionFlashTiled),
    AttentionDecode(AttentionDecode),
    AttentionDecodeSum(AttentionDecodeSum),
    Dequantize(Dequantize),
    QuantizedGemv(QuantizedGemv),
    QuantizedGemm(QuantizedGemm),
    Reduce(Reduce),
    Rope(Rope),
    Unary(OfOne),
    Activation(Activated),
    Binary(OfTwo),
}

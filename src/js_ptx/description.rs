//! Plain objects that describe kernels. Their TypeScript types are generated from here.

mod build;

use serde::Deserialize;
use tsify::Tsify;

use relampago_ptx::PtxType;
use relampago_ptx::kernels::{Activation, Binary, Epilogue, Pairs, QuantFormat, Reduction, Unary};

/// The tile of a block: 128 × 128 or 64 × 64 elements.
#[derive(Clone, Copy, Default, Deserialize, Tsify)]
#[serde(rename_all = "snake_case")]
pub enum TileSize {
    #[default]
    Large,
    Small,
}

/// The type of the result of a matmul.
#[derive(Clone, Copy, Deserialize, Tsify)]
#[serde(rename_all = "snake_case")]
pub enum WmmaOutput {
    F16,
    F32,
}

/// A 16-bit floating-point type.
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

/// A floating-point type; the default is `'f32'`.
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

/// One of two kernels for rows that are split among blocks: the first computes statistics of each
/// part, the second the result.
#[derive(Clone, Copy, Deserialize, Tsify)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Statistics,
    Rest,
}

/// Declares objects that accept exactly these properties.
macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident { $($fields:tt)* })*) => {$(
        $(#[$doc])*
        #[derive(Deserialize, Tsify)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name { $($fields)* }
    )*};
}

objects! {
    /// `C = act(α·A·B + β·C + bias)` in f32 with one thread for each element of `C`, as a baseline.
    GemmNaive {
        #[serde(default)]
        batched: bool,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// An f32 matmul with tiles in shared memory, on any GPU.
    GemmTiled {
        #[serde(default)]
        tile: TileSize,
        /// Whether all sizes are multiples of 4 and all matrices are aligned to 16 bytes.
        #[serde(default)]
        aligned: bool,
        #[serde(default)]
        batched: bool,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// An f16 matmul on the tensor cores of Volta and later GPUs.
    GemmWmma {
        /// The type of `C`.
        output: WmmaOutput,
        /// Whether `n` and `k` are multiples of 8 and all matrices are aligned to 16 bytes.
        #[serde(default)]
        aligned: bool,
        #[serde(default)]
        batched: bool,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// A matmul on the tensor cores of Ampere and later GPUs; f32 is rounded to tf32.
    GemmMma {
        r#type: Float,
        #[serde(default)]
        batched: bool,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// A matmul on Hopper's tensor cores; f32 is rounded to tf32.
    GemmWgmma {
        r#type: Float,
        /// The number of columns of a tile for f16 and bf16; the default is 256.
        #[tsify(optional, type = "128 | 256")]
        cols: Option<u32>,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// The partial results of a matmul whose `k` is split among blocks.
    GemmWgmmaSplit {
        r#type: Half,
        #[tsify(type = "128 | 256")]
        cols: u32,
    }

    /// The sum of the partial results of `gemm_wgmma_split`.
    GemmSplitSum {
        output: Float,
        #[serde(default)]
        epilogue: Epilogue,
    }

    /// The softmax of every row.
    Softmax {
        /// The number of columns to choose the fastest layout for; the default layout works for
        /// any.
        #[tsify(optional)]
        cols: Option<u32>,
        /// Whether to compute the logarithm of the softmax.
        #[serde(default)]
        log: bool,
        /// The stage, for rows that are split among blocks.
        #[tsify(optional)]
        stage: Option<Stage>,
    }

    /// A norm of every row.
    Norm {
        /// The number of columns to choose the fastest layout for; the default layout works for
        /// any.
        #[tsify(optional)]
        cols: Option<u32>,
        /// The stage, for rows that are split among blocks.
        #[tsify(optional)]
        stage: Option<Stage>,
    }

    /// Attention in f32 with one warp for each query, on any GPU. A launch has at most 65,535
    /// batches and heads.
    AttentionSimple {
        /// The dimension of a head: a multiple of 32 up to 256.
        dim: u32,
        #[serde(default)]
        causal: bool,
    }

    /// Attention in f32 with tiles in shared memory, on any GPU. A launch has at most 65,535
    /// batches and heads.
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

    /// Attention of single queries over a cache of keys and values that is split among blocks.
    AttentionDecode {
        r#type: Half,
        #[tsify(type = "64 | 128 | 256")]
        dim: u32,
        /// The number of query heads for each block. The number of query heads that share keys must
        /// be a multiple of it.
        #[tsify(type = "1 | 2 | 4")]
        group: u32,
    }

    /// The combination of the parts of `attention_decode`.
    AttentionDecodeSum {
        r#type: Float,
        /// The dimension of a head: a multiple of 4 up to 1024.
        dim: u32,
    }

    /// The conversion of ggml's blocks to f32.
    Dequantize {
        format: QuantFormat,
    }

    /// A matrix of ggml's blocks times a vector.
    QuantizedGemv {
        format: QuantFormat,
        /// Whether to use the tensor cores of Ampere and later GPUs.
        #[serde(default)]
        tensor_cores: bool,
    }

    /// A matrix times the transpose of a matrix of ggml's blocks.
    QuantizedGemm {
        format: QuantFormat,
        r#type: Half,
        /// The number of rows to optimise for, together with `n`.
        #[tsify(optional)]
        m: Option<u32>,
        #[tsify(optional)]
        n: Option<u32>,
    }

    /// A reduction of a vector to one number.
    Reduce {
        reduction: Reduction,
        #[serde(default)]
        r#type: Float,
        /// Whether each block writes a partial result, to be reduced again.
        #[serde(default)]
        parts: bool,
    }

    /// Rotary position embedding.
    Rope {
        /// The dimension of a head: a multiple of 8 up to 1024.
        dim: u32,
        pairs: Pairs,
        #[serde(default)]
        r#type: Float,
    }

    /// A function of every element.
    OfOne {
        function: Unary,
        #[serde(default)]
        r#type: Float,
    }

    /// An activation of every element.
    Activated {
        function: Activation,
        #[serde(default)]
        r#type: Float,
    }

    /// A function of every pair of elements.
    OfTwo {
        function: Binary,
        #[serde(default)]
        r#type: Float,
    }
}

/// A kernel and its variant. Sizes are parameters of the launch, so one text serves all sizes.
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
    /// Attention on Hopper's tensor cores.
    AttentionFlash(AttentionFlash),
    /// Attention on the tensor cores of Ampere and later GPUs.
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

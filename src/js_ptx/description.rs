//! Which kernel is meant: one plain object for each, whose types TypeScript gets from here.

use serde::Deserialize;
use tsify::Tsify;

use crate::ptx::kernels::{
    Activation, AttentionKernel, Binary, DecodeAttentionKernel, DecodeSumKernel, ElementwiseKernel,
    Epilogue, GemmKernel, Kernel, LayerNormKernel, Pairs, QuantFormat, QuantizeKernel,
    ReduceKernel, Reduction, RopeKernel, RowLayout, SoftmaxKernel, SplitSumKernel, Tile, Unary,
};
use crate::ptx::{Error, PtxKernel, PtxType, Result, Target};

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

    /// Attention in f32, one warp to a query, on any GPU.
    AttentionSimple {
        /// Values of a head: a multiple of 32 up to 256.
        dim: u32,
        #[serde(default)]
        causal: bool,
    }

    /// Attention in f32 by tiles in shared memory, on any GPU.
    AttentionFlashTiled {
        #[tsify(type = "64 | 128")]
        dim: u32,
        #[serde(default)]
        causal: bool,
    }

    /// Attention on tensor cores.
    AttentionFlash {
        r#type: Half,
        #[tsify(type = "64 | 128")]
        dim: u32,
        #[serde(default)]
        causal: bool,
    }

    /// Single queries over a cache of keys and values, whose length is divided among blocks.
    AttentionDecode {
        r#type: Float,
        dim: u32,
        /// Heads of queries to a head of keys.
        group: u32,
    }

    /// What joins its parts.
    AttentionDecodeSum {
        r#type: Float,
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

impl KernelDescription {
    /// The kernel for `target`, or for the first that has what it needs.
    pub(super) fn build(self, target: Option<Target>) -> Result<PtxKernel> {
        let kernel = self.kernel(target);
        let needed = kernel.first_target();
        let target = target.unwrap_or(needed);
        if target < needed {
            // The builder would name the first instruction that is missing there.
            return Err(Error::Target {
                what: kernel.name(),
                needed,
                target,
            });
        }
        kernel.build(target)
    }

    fn kernel(self, target: Option<Target>) -> Box<dyn Kernel> {
        use KernelDescription as D;
        match self {
            D::GemmNaive(x) => gemm(GemmKernel::naive(), x.batched, x.epilogue),
            D::GemmTiled(x) => gemm(tiled(x.tile, x.aligned), x.batched, x.epilogue),
            D::GemmWmma(x) => gemm(wmma(x.output, x.aligned), x.batched, x.epilogue),
            D::GemmMma(x) => gemm(mma(x.r#type), x.batched, x.epilogue),
            D::GemmWgmma(x) => gemm(wgmma(x.r#type, x.cols), false, x.epilogue),
            D::GemmWgmmaSplit(x) => Box::new(GemmKernel::wgmma_split(x.r#type.into(), x.cols)),
            D::GemmSplitSum(x) => {
                Box::new(SplitSumKernel::new(x.output.into()).with_epilogue(x.epilogue))
            }
            D::Softmax(x) => softmax(layout(x.cols, target), x.log, x.stage),
            D::LayerNorm(x) => norm(LayerNormKernel::new(), layout(x.cols, target), x.stage),
            D::RmsNorm(x) => norm(LayerNormKernel::rms(), layout(x.cols, target), x.stage),
            D::AttentionSimple(x) => attention(AttentionKernel::simple(x.dim), x.causal),
            D::AttentionFlash(x) => {
                attention(AttentionKernel::flash(x.r#type.into(), x.dim), x.causal)
            }
            D::AttentionFlashMma(x) => {
                attention(AttentionKernel::flash_mma(x.r#type.into(), x.dim), x.causal)
            }
            D::AttentionFlashTiled(x) => attention(AttentionKernel::flash_tiled(x.dim), x.causal),
            D::AttentionDecode(x) => {
                Box::new(DecodeAttentionKernel::new(x.r#type.into(), x.dim, x.group))
            }
            D::AttentionDecodeSum(x) => Box::new(DecodeSumKernel::new(x.r#type.into(), x.dim)),
            D::Dequantize(x) => Box::new(QuantizeKernel::dequantize(x.format)),
            D::QuantizedGemv(x) => gemv(x.format, x.tensor_cores),
            D::QuantizedGemm(x) => quantized_gemm(
                QuantizeKernel::gemm(x.format, x.r#type.into()),
                x.m.zip(x.n),
            ),
            D::Reduce(x) => reduce(ReduceKernel::new(x.reduction).of(x.r#type.into()), x.parts),
            D::Rope(x) => Box::new(RopeKernel::new(x.dim, x.pairs).of(x.r#type.into())),
            D::Unary(x) => unary(x.function, x.r#type),
            D::Activation(x) => unary(Unary::Activation(x.function), x.r#type),
            D::Binary(x) => Box::new(ElementwiseKernel::binary(x.function).of(x.r#type.into())),
        }
    }
}

fn gemm(kernel: GemmKernel, batched: bool, epilogue: Epilogue) -> Box<dyn Kernel> {
    let kernel = kernel.with_epilogue(epilogue);
    Box::new(if batched { kernel.batched() } else { kernel })
}

fn tiled(tile: TileSize, aligned: bool) -> GemmKernel {
    let tile = match tile {
        TileSize::Large => Tile::LARGE,
        TileSize::Small => Tile::SMALL,
    };
    GemmKernel::tiled_by(if aligned { tile.aligned() } else { tile })
}

fn wmma(output: WmmaOutput, aligned: bool) -> GemmKernel {
    let kernel = match output {
        WmmaOutput::F16 => GemmKernel::tensor_core(),
        WmmaOutput::F32 => GemmKernel::wmma_fp16(),
    };
    if aligned { kernel.aligned() } else { kernel }
}

fn mma(ty: Float) -> GemmKernel {
    match ty {
        Float::F32 => GemmKernel::mma_tf32(),
        ty => GemmKernel::mma(ty.into()),
    }
}

fn wgmma(ty: Float, cols: Option<u32>) -> GemmKernel {
    match (ty, cols) {
        (Float::F32, None) => GemmKernel::wgmma_tf32(),
        (ty, cols) => GemmKernel::wgmma_by(ty.into(), cols.unwrap_or(256)),
    }
}

fn layout(cols: Option<u32>, target: Option<Target>) -> RowLayout {
    match (cols, target) {
        (None, _) => RowLayout::ANY,
        (Some(cols), None) => RowLayout::for_cols(cols),
        (Some(cols), Some(target)) => RowLayout::for_target(cols, target),
    }
}

fn softmax(layout: RowLayout, log: bool, stage: Option<Stage>) -> Box<dyn Kernel> {
    let kernel = SoftmaxKernel::new().with_layout(layout);
    let kernel = if log { kernel.log() } else { kernel };
    Box::new(match stage {
        None => kernel,
        Some(Stage::Statistics) => kernel.statistics(),
        Some(Stage::Rest) => kernel.rest(),
    })
}

fn norm(kernel: LayerNormKernel, layout: RowLayout, stage: Option<Stage>) -> Box<dyn Kernel> {
    let kernel = kernel.with_layout(layout);
    Box::new(match stage {
        None => kernel,
        Some(Stage::Statistics) => kernel.statistics(),
        Some(Stage::Rest) => kernel.rest(),
    })
}

fn attention(kernel: AttentionKernel, causal: bool) -> Box<dyn Kernel> {
    Box::new(if causal { kernel.causal() } else { kernel })
}

fn gemv(format: QuantFormat, tensor_cores: bool) -> Box<dyn Kernel> {
    Box::new(if tensor_cores {
        QuantizeKernel::gemv_mma(format)
    } else {
        QuantizeKernel::gemv(format)
    })
}

fn quantized_gemm(kernel: QuantizeKernel, sizes: Option<(u32, u32)>) -> Box<dyn Kernel> {
    Box::new(match sizes {
        Some((m, n)) => kernel.for_size(m, n),
        None => kernel,
    })
}

fn reduce(kernel: ReduceKernel, parts: bool) -> Box<dyn Kernel> {
    Box::new(if parts { kernel.parts() } else { kernel })
}

fn unary(function: Unary, ty: Float) -> Box<dyn Kernel> {
    Box::new(ElementwiseKernel::unary(function).of(ty.into()))
}

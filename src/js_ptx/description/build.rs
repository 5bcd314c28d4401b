//! Builds the kernel that a description names.

use super::{Float, KernelDescription, Stage, TileSize, WmmaOutput};
use relampago_ptx::kernels::{
    AttentionKernel, DecodeAttentionKernel, DecodeSumKernel, ElementwiseKernel, Epilogue,
    GemmKernel, Kernel, LayerNormKernel, QuantFormat, QuantizeKernel, ReduceKernel, RopeKernel,
    RowLayout, SoftmaxKernel, SplitSumKernel, Tile, Unary,
};
use relampago_ptx::{PtxKernel, Result, Target};

impl KernelDescription {
    /// Builds the kernel for `target`, or for the oldest target that supports it.
    pub(in crate::js_ptx) fn build(self, target: Option<Target>) -> Result<PtxKernel> {
        let kernel = self.kernel(target);
        let target = target.unwrap_or_else(|| kernel.first_target());
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

//! Writes every kernel's PTX for one target, with its launch as JSON, into a folder: what a
//! machine with a GPU and without Rust needs (`benches/ptx/run.py`).
//!
//! `cargo run --no-default-features --features ptx --example ptx_bundle -- sm_90a FOLDER`

use relampago::ptx::kernels::{
    Activation, Binary, CachedAttentionKernel, DecodeAttentionKernel, DecodeSumKernel, DigitSplit,
    ElementwiseKernel, PackedFormat, PackedMatmulKernel, Pairs, PlanesMatmulKernel, QuantFormat,
    ReduceKernel, Reduction, RopeKernel, RowLayout, SplitKernel, SplitSumKernel, Tile, Unary,
    UnpackKernel,
};
use relampago::ptx::{
    AttentionKernel, Error, Extent, GemmKernel, Kernel, LayerNormKernel, ParamType, PtxKernel,
    PtxModule, PtxType, QuantizeKernel, SoftmaxKernel, Target,
};
use std::fmt::Write;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let target: Target = arguments.next().as_deref().unwrap_or("sm_90a").parse()?;
    let folder = PathBuf::from(
        arguments
            .next()
            .unwrap_or_else(|| "target/bench/ptx".into()),
    );
    std::fs::create_dir_all(&folder)?;
    let mut manifest = Vec::new();
    for (kernel, cols) in kernels(target) {
        let built = match kernel.build(target) {
            Err(Error::Target { .. }) => continue,
            built => built?,
        };
        manifest.push(describe(&built, cols)?);
        let text = PtxModule::new(target).with(built)?.emit();
        std::fs::write(folder.join(kernel.name() + ".ptx"), text)?;
    }
    let manifest = format!("[\n{}\n]\n", manifest.join(",\n"));
    std::fs::write(folder.join("manifest.json"), manifest)?;
    println!("{}", folder.display());
    Ok(())
}

/// What the benchmark measures, and for rows of how many columns.
fn kernels(target: Target) -> Vec<(Box<dyn Kernel>, u32)> {
    let mut products: Vec<Box<dyn Kernel>> = vec![
        Box::new(GemmKernel::naive()),
        Box::new(GemmKernel::mma_tf32()),
        Box::new(GemmKernel::wgmma_tf32()),
        Box::new(GemmKernel::tiled()),
        Box::new(GemmKernel::tiled_by(Tile::LARGE.aligned())),
        Box::new(GemmKernel::tiled_by(Tile::SMALL.aligned())),
        Box::new(GemmKernel::wmma_fp16()),
        Box::new(GemmKernel::tensor_core()),
        Box::new(GemmKernel::wmma_fp16().aligned()),
        Box::new(GemmKernel::tensor_core().aligned()),
    ];
    for ty in [PtxType::BF16, PtxType::F16] {
        for cols in [128, 256] {
            products.push(Box::new(GemmKernel::wgmma_by(ty, cols)));
            products.push(Box::new(GemmKernel::wgmma_split(ty, cols)));
        }
        products.push(Box::new(SplitSumKernel::new(ty)));
        products.push(Box::new(GemmKernel::mma(ty)));
    }
    for (ty, dim) in [
        (PtxType::BF16, 64),
        (PtxType::BF16, 128),
        (PtxType::F16, 128),
    ] {
        products.push(Box::new(AttentionKernel::flash(ty, dim)));
        products.push(Box::new(AttentionKernel::flash(ty, dim).causal()));
        products.push(Box::new(AttentionKernel::flash_mma(ty, dim)));
        products.push(Box::new(AttentionKernel::flash_mma(ty, dim).causal()));
    }
    products.push(Box::new(AttentionKernel::simple(128)));
    for dim in [64, 128] {
        products.push(Box::new(AttentionKernel::flash_tiled(dim)));
        products.push(Box::new(AttentionKernel::flash_tiled(dim).causal()));
    }
    for group in [1, 4] {
        let kernel = DecodeAttentionKernel::new(PtxType::BF16, 128, group);
        products.push(Box::new(kernel));
    }
    products.push(Box::new(DecodeSumKernel::new(PtxType::BF16, 128)));
    products.push(Box::new(ElementwiseKernel::binary(Binary::Add)));
    products.push(Box::new(ElementwiseKernel::binary(Binary::SwiGlu)));
    products.push(Box::new(ElementwiseKernel::unary(Unary::Exp)));
    let gelu = Unary::Activation(Activation::GeluTanh);
    products.push(Box::new(ElementwiseKernel::unary(gelu)));
    products.push(Box::new(ReduceKernel::new(Reduction::Sum)));
    products.push(Box::new(ReduceKernel::new(Reduction::Sum).parts()));
    products.push(Box::new(ReduceKernel::new(Reduction::Dot).parts()));
    let rope = RopeKernel::new(128, Pairs::Halves).of(PtxType::BF16);
    products.push(Box::new(rope));
    for format in QuantFormat::ALL {
        products.push(Box::new(QuantizeKernel::dequantize(format)));
        products.push(Box::new(QuantizeKernel::gemv(format)));
        products.push(Box::new(QuantizeKernel::gemv_mma(format)));
        for (m, n) in [(16, 4096), (64, 4096), (512, 4096), (4096, 4096)] {
            let kernel = QuantizeKernel::gemm(format, PtxType::BF16).for_size(m, n);
            products.push(Box::new(kernel));
        }
    }
    for format in PackedFormat::ALL {
        products.push(Box::new(PackedMatmulKernel::few(format)));
        products.push(Box::new(PackedMatmulKernel::gated(
            format,
            Activation::Silu,
        )));
        for split in [DigitSplit::Rows, DigitSplit::Columns, DigitSplit::Tokens] {
            products.push(Box::new(PackedMatmulKernel::digits(format, None, split)));
        }
        products.push(Box::new(PackedMatmulKernel::tiled(format)));
        products.push(Box::new(PackedMatmulKernel::mma(format)));
        products.push(Box::new(PackedMatmulKernel::mma_wide(format)));
        products.push(Box::new(UnpackKernel::new(format)));
    }
    products.push(Box::new(SplitKernel));
    products.push(Box::new(PlanesMatmulKernel::narrow()));
    products.push(Box::new(PlanesMatmulKernel::wide()));
    products.push(Box::new(CachedAttentionKernel::new()));
    products.push(Box::new(CachedAttentionKernel::new().packed()));
    products.push(Box::new(CachedAttentionKernel::split()));
    products.push(Box::new(CachedAttentionKernel::mma(64)));
    products.push(Box::new(CachedAttentionKernel::mma(128).packed()));
    let mut kernels: Vec<_> = products.into_iter().map(|kernel| (kernel, 0)).collect();
    for cols in [1024, 4096, 16384, 32768, 65536, 131_072, 262_144] {
        let layout = RowLayout::for_target(cols, target);
        kernels.push((Box::new(SoftmaxKernel::new().with_layout(layout)), cols));
        kernels.push((Box::new(LayerNormKernel::new().with_layout(layout)), cols));
        kernels.push((Box::new(LayerNormKernel::rms().with_layout(layout)), cols));
    }
    let any = RowLayout::ANY.with_width(4);
    let softmax = SoftmaxKernel::new().with_layout(any);
    kernels.push((Box::new(softmax.statistics()), 0));
    kernels.push((Box::new(softmax.rest()), 0));
    for norm in [LayerNormKernel::new(), LayerNormKernel::rms()] {
        let norm = norm.with_layout(any);
        kernels.push((Box::new(norm.statistics()), 0));
        kernels.push((Box::new(norm.rest()), 0));
    }
    kernels
}

/// A kernel's launch as JSON.
fn describe(kernel: &PtxKernel, cols: u32) -> Result<String, std::fmt::Error> {
    let mut json = String::new();
    let launch = kernel.launch();
    write!(
        json,
        r#"{{"name": "{}", "cols": {cols}, "block": {:?}, "shared": {}, "overlaps": {}, "grid": ["#,
        kernel.name(),
        launch.block,
        kernel.dynamic_shared(),
        launch.overlaps
    )?;
    let grid = launch.grid.iter().map(|extent| match extent {
        Extent::Fixed(blocks) => format!(r#"{{"fixed": {blocks}}}"#),
        Extent::Param(name) => format!(r#"{{"param": "{name}", "per": 1}}"#),
        Extent::Tiles(name, per) => format!(r#"{{"param": "{name}", "per": {per}}}"#),
        Extent::Multiprocessors(times) => format!(r#"{{"multiprocessors": {times}, "of": 1}}"#),
        Extent::Share(times, of) => format!(r#"{{"multiprocessors": {times}, "of": {of}}}"#),
    });
    write!(
        json,
        "{}], \"params\": [",
        grid.collect::<Vec<_>>().join(", ")
    )?;
    let params = kernel.params().iter().map(|param| {
        let name = param.name;
        match param.ty {
            ParamType::Pointer(ty) => format!(r#"{{"name": "{name}", "pointer": "{ty}"}}"#),
            ParamType::Scalar(ty) => format!(r#"{{"name": "{name}", "scalar": "{ty}"}}"#),
            ParamType::TensorMap(tensor) => format!(
                r#"{{"name": "{name}", "tensor": "{}", "box": [{}, {}], "planes": {}}}"#,
                tensor.ty,
                tensor.rows,
                tensor.cols,
                !tensor.planes.is_empty()
            ),
        }
    });
    write!(json, "{}]}}", params.collect::<Vec<_>>().join(", "))?;
    Ok(json)
}

//! Prints the PTX of every product for a target, module after module.
//!
//! `cargo run --no-default-features --features ptx --example gemm_kernel -- --target sm_90a`

use relampago::ptx::kernels::Tile;
use relampago::ptx::{Error, GemmKernel, Kernel, PtxType, Target};

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let target: Target = match arguments.as_slice() {
        [] => Target::Sm80,
        [flag, name] if flag == "--target" => name.parse()?,
        other => {
            return Err(Error::UnknownTarget {
                name: other.join(" "),
            });
        }
    };
    let mut kernels = vec![
        GemmKernel::naive(),
        GemmKernel::tiled(),
        GemmKernel::tiled_by(Tile::LARGE.aligned()),
        GemmKernel::tiled_by(Tile::SMALL),
        GemmKernel::tiled_by(Tile::SMALL.aligned()),
        GemmKernel::wmma_fp16(),
        GemmKernel::tensor_core(),
        GemmKernel::wmma_fp16().aligned(),
        GemmKernel::tensor_core().aligned(),
    ];
    kernels.extend([GemmKernel::mma_tf32(), GemmKernel::wgmma_tf32()]);
    for ty in [PtxType::F16, PtxType::BF16] {
        kernels.extend([
            GemmKernel::mma(ty),
            GemmKernel::wgmma_by(ty, 128),
            GemmKernel::wgmma(ty),
        ]);
    }
    for kernel in kernels {
        match kernel.emit_ptx_for_target(target) {
            Ok(text) => println!("// {}\n{text}", kernel.name()),
            Err(error @ Error::Target { .. }) => eprintln!("{}: {error}", kernel.name()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

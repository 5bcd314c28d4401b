//! Measures how many kernels a second are built, verified and written, on one thread.
//!
//! `cargo run --release --no-default-features --features ptx --example bench_kernel_gen`

use relampago::ptx::kernels::QuantFormat;
use relampago::ptx::{
    AttentionKernel, GemmKernel, Kernel, LayerNormKernel, QuantizeKernel, Result, SoftmaxKernel,
};
use std::time::{Duration, Instant};

fn main() -> Result<()> {
    let kernels: [Box<dyn Kernel>; 8] = [
        Box::new(GemmKernel::naive()),
        Box::new(GemmKernel::tiled()),
        Box::new(GemmKernel::tensor_core()),
        Box::new(GemmKernel::wmma_fp16()),
        Box::new(SoftmaxKernel::new()),
        Box::new(LayerNormKernel::new()),
        Box::new(AttentionKernel::simple(64)),
        Box::new(QuantizeKernel::dequantize(QuantFormat::Q4K)),
    ];
    for kernel in &kernels {
        let (began, mut count, mut bytes) = (Instant::now(), 0u32, 0);
        while began.elapsed() < Duration::from_millis(300) {
            bytes = kernel.emit_ptx()?.len();
            count += 1;
        }
        let rate = f64::from(count) / began.elapsed().as_secs_f64();
        println!("{:32} {rate:10.0} a second, {bytes:7} bytes", kernel.name());
    }
    Ok(())
}

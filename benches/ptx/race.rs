//! How many kernels a second are written, beside aprender-gpu: the same eight kernels, in turns, on
//! one thread. Of the rounds the best counts for each.
//!
//! `cargo run --release --manifest-path benches/ptx/Cargo.toml`

#[path = "../report_head.rs"]
mod report_head;

use relampago::ptx;
use relampago::ptx::kernels::QuantFormat;
use std::hint::black_box;
use std::time::{Duration, Instant};
use trueno_gpu::kernels as peer;

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(100);
/// Sizes that the peer's kernels are written for; ours take theirs at launch.
const SIZE: u32 = 1024;

type Write = Box<dyn Fn() -> String>;

fn ours(kernel: impl ptx::Kernel + 'static) -> Write {
    Box::new(move || kernel.emit_ptx().unwrap_or_default())
}

fn theirs(kernel: impl peer::Kernel + 'static) -> Write {
    Box::new(move || kernel.emit_ptx())
}

fn racers() -> [(&'static str, Write, Write); 8] {
    let (n, head) = (SIZE, 64);
    [
        (
            "gemm naive",
            ours(ptx::GemmKernel::naive()),
            theirs(peer::GemmKernel::naive(n, n, n)),
        ),
        (
            "gemm tiled",
            ours(ptx::GemmKernel::tiled()),
            theirs(peer::GemmKernel::tiled(n, n, n, 32)),
        ),
        (
            "gemm tensor core",
            ours(ptx::GemmKernel::tensor_core()),
            theirs(peer::GemmKernel::tensor_core(n, n, n)),
        ),
        (
            "gemm wmma f16",
            ours(ptx::GemmKernel::wmma_fp16()),
            theirs(peer::GemmKernel::wmma_fp16(n, n, n)),
        ),
        (
            "softmax",
            ours(ptx::SoftmaxKernel::new()),
            theirs(peer::SoftmaxKernel::new(n)),
        ),
        (
            "layer norm",
            ours(ptx::LayerNormKernel::new()),
            theirs(peer::LayerNormKernel::new(n)),
        ),
        (
            "attention",
            ours(ptx::AttentionKernel::simple(head)),
            theirs(peer::AttentionKernel::new(n, head)),
        ),
        (
            "q4_k",
            ours(ptx::QuantizeKernel::gemv(QuantFormat::Q4K)),
            theirs(peer::QuantizeKernel::ggml(n, n, n)),
        ),
    ]
}

/// Texts a second, and bytes of one.
fn rate(write: &Write) -> (f64, usize) {
    let (began, mut count, mut bytes) = (Instant::now(), 0u32, 0);
    while began.elapsed() < ROUND {
        bytes = black_box(write()).len();
        count += 1;
    }
    (f64::from(count) / began.elapsed().as_secs_f64(), bytes)
}

fn main() {
    println!("{}", report_head::head("Generating kernels", "ptx"));
    println!("| kernel | ours, 1/s | bytes | aprender-gpu, 1/s | bytes | ours ÷ peer |");
    println!("|---|---:|---:|---:|---:|---:|");
    // Seconds and bytes of one text of each.
    let (mut mine, mut other) = ((0.0, 0), (0.0, 0));
    for (name, ours, theirs) in racers() {
        let mut best = [(0.0, 0); 2];
        for _ in 0..ROUNDS {
            for (best, write) in best.iter_mut().zip([&ours, &theirs]) {
                let one = rate(write);
                if one.0 > best.0 {
                    *best = one;
                }
            }
        }
        let [(a, bytes_a), (b, bytes_b)] = best;
        mine = (mine.0 + 1.0 / a, mine.1 + bytes_a);
        other = (other.0 + 1.0 / b, other.1 + bytes_b);
        println!(
            "| {name} | {a:.0} | {bytes_a} | {b:.0} | {bytes_b} | {:.2} |",
            a / b
        );
    }
    println!(
        "| all eight | {:.0} | {} | {:.0} | {} | {:.2} |",
        8.0 / mine.0,
        mine.1,
        8.0 / other.0,
        other.1,
        other.0 / mine.0
    );
}

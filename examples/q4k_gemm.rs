//! Rows of bf16 times a matrix of weights in `Q4_K` blocks: how far from `f64` it is, and how fast.
//!
//! `cargo run --release --no-default-features --features cuda --example q4k_gemm -- [M N K]`

use relampago::cuda::{CudaDevice, Error};
use relampago::ptx::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use relampago::ptx::kernels::QuantFormat;
use relampago::ptx::{Kernel, PtxType, QuantizeKernel};
use std::time::Instant;

/// Weights and bytes of a block.
const VALUES: usize = 256;
const BYTES: usize = 144;
const ROUNDS: u32 = 20;

fn main() -> Result<(), Error> {
    let sizes: Vec<usize> = std::env::args().skip(1).flat_map(|a| a.parse()).collect();
    let shape = <[usize; 3]>::try_from(sizes).unwrap_or([512, 4096, 4096]);
    let device = match CudaDevice::open(0) {
        Err(error @ (Error::NoDriver { .. } | Error::NoDevice { .. })) => {
            let kernel = QuantizeKernel::gemm(QuantFormat::Q4K, PtxType::BF16);
            let lines = kernel.emit_ptx()?.lines().count();
            println!("{error}; {}: {lines} lines of PTX", kernel.name());
            return Ok(());
        }
        device => device?,
    };
    let [m, n, k] = shape;
    let number = |i: usize, by: usize| ((i * by) % 1009) as f32 / 504.5 - 1.0;
    let x: Vec<u16> = (0..m * k).map(|i| f32_to_bf16(number(i, 7919))).collect();
    let w = weights(n * k / VALUES);
    let (wide, activations) = (device.upload(&w)?, device.upload(&x)?);
    let mut y = device.zeros(m * n)?;
    let format = (QuantFormat::Q4K, PtxType::BF16);
    device.quantized_matmul(format, &wide, &activations, &mut y, shape)?;
    let result = y.download()?;
    println!(
        "{}: error {:.1e}",
        device.name(),
        error(&w, &x, &result, shape)
    );
    let began = Instant::now();
    for _ in 0..ROUNDS {
        device.quantized_matmul(format, &wide, &activations, &mut y, shape)?;
    }
    device.synchronize()?;
    let seconds = began.elapsed().as_secs_f64() / f64::from(ROUNDS);
    let operations = 2.0 * m as f64 * n as f64 * k as f64;
    println!(
        "{m} × {n} × {k}: {:.1} TFLOP/s",
        operations / seconds / 1e12
    );
    Ok(())
}

/// Blocks of arbitrary bits with scales of about 2⁻⁷.
fn weights(blocks: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..blocks * BYTES)
        .map(|i| (i * 31 + i / 7 * 17) as u8)
        .collect();
    for (i, block) in bytes.chunks_exact_mut(BYTES).enumerate() {
        for at in [0, 2] {
            let scale = f32_to_f16(0.005 + (i * 13 % 97) as f32 * 1e-4);
            block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
        }
    }
    bytes
}

/// Weight `i` of a block, by ggml's `dequantize_row_q4_K`.
fn weight(block: &[u8], i: usize) -> f64 {
    let half = |at: usize| f64::from(f16_to_f32(u16::from_le_bytes([block[at], block[at + 1]])));
    let (j, scales) = (i / 32, &block[4..16]);
    let (scale, minimum) = if j < 4 {
        (scales[j] & 63, scales[j + 4] & 63)
    } else {
        let (low, high) = (scales[j + 4], [scales[j - 4] >> 6, scales[j] >> 6]);
        (low & 15 | high[0] << 4, low >> 4 | high[1] << 4)
    };
    let bits = block[16 + i / 64 * 32 + i % 32] >> (j % 2 * 4) & 15;
    half(0) * f64::from(scale) * f64::from(bits) - half(2) * f64::from(minimum)
}

/// The last row's error relative to its result, both by their norms.
fn error(w: &[u8], x: &[u16], y: &[u16], [m, n, k]: [usize; 3]) -> f64 {
    let x: Vec<f64> = x[(m - 1) * k..]
        .iter()
        .map(|x| bf16_to_f32(*x).into())
        .collect();
    let (mut off, mut size) = (0.0, 0.0);
    for (row, result) in w.chunks_exact(k / VALUES * BYTES).zip(&y[(m - 1) * n..]) {
        let values = (0..k).map(|i| x[i] * weight(&row[i / VALUES * BYTES..], i % VALUES));
        let exact: f64 = values.sum();
        off += (f64::from(bf16_to_f32(*result)) - exact).powi(2);
        size += exact.powi(2);
    }
    (off / size).sqrt()
}

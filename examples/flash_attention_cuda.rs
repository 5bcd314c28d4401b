//! Attention on the tensor cores of any GPU since Ampere: how far from `f64` it is, and how fast.
//!
//! `cargo run --release --no-default-features --features cuda --example flash_attention_cuda`

use relampago::cuda::{AttentionShape, CudaDevice, Error};
use relampago::ptx::half::{bf16_to_f32, f32_to_bf16};
use relampago::ptx::{PtxType, Target};
use std::time::Instant;

const SHAPE: AttentionShape = AttentionShape::new(2, 16, 4096, 128);
const ROUNDS: u32 = 20;

fn main() -> Result<(), Error> {
    let device = match CudaDevice::open(0) {
        Err(error @ (Error::NoDriver { .. } | Error::NoDevice { .. })) => {
            println!("{error}");
            return Ok(());
        }
        device => device?,
    };
    if device.target() < Target::Sm80 {
        println!("{} is older than Ampere", device.name());
        return Ok(());
    }
    let count = SHAPE.batch * SHAPE.heads * SHAPE.seq_q * SHAPE.dim;
    let number = |i: usize, by: usize| ((i * by) % 1009) as f32 / 504.5 - 1.0;
    let values = |by| -> Vec<u16> { (0..count).map(|i| f32_to_bf16(number(i, by))).collect() };
    let host = [7919, 6007, 4001].map(values);
    let [q, k, v] = [0, 1, 2].map(|i| device.upload(&host[i]));
    let (q, k, v, mut o) = (q?, k?, v?, device.zeros(count)?);
    device.attention_half(PtxType::BF16, [&q, &k, &v], &mut o, SHAPE)?;
    let result = o.download()?;
    println!("{}: error {:.1e}", device.name(), error(&host, &result));
    let began = Instant::now();
    for _ in 0..ROUNDS {
        device.attention_half(PtxType::BF16, [&q, &k, &v], &mut o, SHAPE)?;
    }
    device.synchronize()?;
    let seconds = began.elapsed().as_secs_f64() / f64::from(ROUNDS);
    let operations = 4.0 * count as f64 * SHAPE.seq_k as f64;
    println!("{:.0} TFLOP/s", operations / seconds / 1e12);
    Ok(())
}

/// The last query's error relative to its result, both by their norms.
fn error([q, k, v]: &[Vec<u16>; 3], o: &[u16]) -> f64 {
    let (dim, keys) = (SHAPE.dim, SHAPE.seq_k * SHAPE.dim);
    let read = |of: &[u16]| -> Vec<f64> { of.iter().map(|x| bf16_to_f32(*x).into()).collect() };
    let last = q.len() - dim;
    let (query, result) = (read(&q[last..]), read(&o[last..]));
    let (k, v) = (read(&k[k.len() - keys..]), read(&v[v.len() - keys..]));
    let score = |key: &[f64]| -> f64 {
        let products = query.iter().zip(key).map(|(q, k)| q * k);
        products.sum::<f64>() / (dim as f64).sqrt()
    };
    let weights: Vec<f64> = k.chunks(dim).map(|key| score(key).exp()).collect();
    let total: f64 = weights.iter().sum();
    let (mut off, mut size) = (0.0, 0.0);
    for (i, result) in result.iter().enumerate() {
        let terms = weights.iter().zip(v.chunks(dim));
        let exact = terms.map(|(weight, v)| weight * v[i]).sum::<f64>() / total;
        off += (result - exact).powi(2);
        size += exact.powi(2);
    }
    (off / size).sqrt()
}

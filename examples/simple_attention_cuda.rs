//! Attention in f32 on any NVIDIA GPU since Volta, as a model calls it: upload, one call, download.
//!
//! `cargo run --release --no-default-features --features cuda --example simple_attention_cuda`

use relampago::cuda::{AttentionShape, CudaDevice, Error};

/// Four heads of queries share two heads of keys and values; each query sees the keys before it.
const SHAPE: AttentionShape = AttentionShape::new(1, 4, 6, 32).with_kv_heads(2).causal();

fn main() -> Result<(), Error> {
    let device = match CudaDevice::open(0) {
        Err(error @ (Error::NoDriver { .. } | Error::NoDevice { .. })) => {
            println!("{error}");
            return Ok(());
        }
        device => device?,
    };
    let queries = SHAPE.batch * SHAPE.heads * SHAPE.seq_q * SHAPE.dim;
    let keys = SHAPE.batch * SHAPE.kv_heads * SHAPE.seq_k * SHAPE.dim;
    // Key `j` is 1 at place `j` alone and so is its value: what comes out are the weights.
    let unit = |i: usize| f32::from(u8::from(i % SHAPE.dim == i / SHAPE.dim % SHAPE.seq_k));
    let q = device.upload(&vec![1.0f32; queries])?;
    let k = device.upload(&(0..keys).map(unit).collect::<Vec<f32>>())?;
    let mut o = device.zeros(queries)?;
    device.attention([&q, &k, &k], &mut o, SHAPE)?;
    println!(
        "{}: how much each query of the first head takes of each key",
        device.name()
    );
    let o = o.download()?;
    for row in o.chunks(SHAPE.dim).take(SHAPE.seq_q) {
        println!("{:.3?}", &row[..SHAPE.seq_k]);
    }
    Ok(())
}

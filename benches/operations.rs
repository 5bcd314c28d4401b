//! Operations from and to host memory: every one on both back-ends, and beside a plain wgpu loop.
//!
//! `cargo xtask bench gpu` prints tables of medians in microseconds. The contestants of a row take
//! turns in one process, so that whatever else the machine does falls on all of them alike.

mod plain;

use std::hint::black_box;
use std::time::Instant;

use plain::PlainRelu;
use relampago::{Backend, Conv2d, GpuDevice, Op, Result};

const ROUNDS: usize = 31;

fn main() -> Result<()> {
    let simd = GpuDevice::builder().backend(Backend::Simd).build()?;
    println!("SIMD: {}", simd.info());
    match GpuDevice::builder().backend(Backend::Gpu).build() {
        Ok(gpu) => {
            println!("\nGPU: {}", gpu.info());
            round_trip_beside_a_peer(&gpu)?;
            where_the_gpu_gains(&simd, &gpu)?;
            everything(&simd, Some(&gpu))
        }
        Err(error) => {
            println!("\n{error}");
            everything(&simd, None)
        }
    }
}

/// Medians of contestants that take turns, in microseconds.
fn race<const N: usize>(mut contestants: [&mut dyn FnMut() -> Result<()>; N]) -> Result<[f64; N]> {
    let mut times = [const { Vec::new() }; N];
    for round in 0..=ROUNDS {
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            let start = Instant::now();
            contestant()?;
            if round > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}

fn values(len: usize) -> Vec<f32> {
    (0..len)
        .map(|i| (i * 37 % 101) as f32 / 25.0 - 2.0)
        .collect()
}

fn round_trip_beside_a_peer(gpu: &GpuDevice) -> Result<()> {
    println!("\n| relu, round trip | relampago | plain wgpu, cached | ratio |\n|---|---|---|---|");
    for len in [1_024, 100_000, 1_000_000] {
        let (x, mut y) = (values(len), vec![0.0; len]);
        let mut plain = PlainRelu::new(len);
        let ours = &mut || gpu.relu(black_box(&x), &mut y);
        let [ours, theirs] = race([ours, &mut || {
            black_box(plain.run(black_box(&x)));
            Ok(())
        }])?;
        println!("| {len} | {ours:.0} | {theirs:.0} | {:.2} |", ours / theirs);
    }
    Ok(())
}

/// What the thresholds of `Policy` should be on this machine.
fn where_the_gpu_gains(simd: &GpuDevice, gpu: &GpuDevice) -> Result<()> {
    println!("\n| work | multiply–adds | SIMD | GPU |\n|---|---|---|---|");
    for n in [64, 128, 192, 256, 384, 512, 1_024] {
        let op = Op::Matmul { m: n, k: n, n };
        compare(
            simd,
            gpu,
            &format!("matmul {n}"),
            n * n * n,
            &op,
            &[n * n, n * n],
        )?;
    }
    for (n, k) in [(256, 3), (512, 3), (512, 7), (1_024, 7), (1_024, 15)] {
        let options = Conv2d::same(n, n, k, k);
        let name = format!("convolve2d {n}², {k}×{k}");
        compare(
            simd,
            gpu,
            &name,
            n * n * k * k,
            &Op::Convolve2d { options },
            &[n * n, k * k],
        )?;
    }
    Ok(())
}

fn compare(
    simd: &GpuDevice,
    gpu: &GpuDevice,
    name: &str,
    work: usize,
    op: &Op,
    lens: &[usize],
) -> Result<()> {
    let inputs: Vec<Vec<f32>> = lens.iter().map(|&len| values(len)).collect();
    let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
    let run = |device: &GpuDevice| device.run(op, black_box(&inputs)).map(drop);
    let [on_simd, on_gpu] = race([&mut || run(simd), &mut || run(gpu)])?;
    println!("| {name} | {work} | {on_simd:.0} | {on_gpu:.0} |");
    Ok(())
}

/// Every operation that takes vectors of any length, at a million values.
fn everything(simd: &GpuDevice, gpu: Option<&GpuDevice>) -> Result<()> {
    const LEN: usize = 1_000_000;
    println!("\n| a million values | SIMD | GPU |\n|---|---|---|");
    let x = values(LEN);
    for op in vector_ops() {
        let inputs = vec![&x[..]; op.inputs().len()];
        let run = |device: &GpuDevice| device.run(&op, black_box(&inputs)).map(drop);
        let times = match gpu {
            Some(gpu) => race([&mut || run(simd), &mut || run(gpu)])?.to_vec(),
            None => race([&mut || run(simd)])?.to_vec(),
        };
        let cells: Vec<String> = times.iter().map(|time| format!("{time:.0}")).collect();
        println!("| {} | {} |", op.name(), cells.join(" | "));
    }
    Ok(())
}

fn vector_ops() -> Vec<Op> {
    let (negative_slope, alpha, factor) = (0.01, 1.0, 2.0);
    let (min, max) = (-1.0, 1.0);
    vec![
        Op::Relu {},
        Op::LeakyRelu { negative_slope },
        Op::Elu { alpha },
        Op::Sigmoid {},
        Op::Tanh {},
        Op::Swish {},
        Op::Gelu {},
        Op::GeluTanh {},
        Op::Clip { min, max },
        Op::Exp {},
        Op::Log {},
        Op::Sqrt {},
        Op::Abs {},
        Op::Neg {},
        Op::Scale { factor },
        Op::VecAdd {},
        Op::Sub {},
        Op::Mul {},
        Op::Div {},
        Op::Minimum {},
        Op::Maximum {},
        Op::Softmax {},
        Op::LogSoftmax {},
        Op::Dot {},
        Op::Sum {},
        Op::Max {},
        Op::Min {},
        Op::Mean {},
        Op::Argmax {},
    ]
}

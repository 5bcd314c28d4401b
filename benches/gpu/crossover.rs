//! The thresholds of `Policy` for this machine, measured: SIMD on one thread beside the GPU.

use crate::race::race;
use crate::{Trip, values};
use anyhow::Result;
use relampago::{Backend, Conv2d, GpuDevice, Op};
use std::hint::black_box;

pub(crate) fn rows(
    gpu: &GpuDevice,
    rounds: usize,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Trip>> {
    let builder = GpuDevice::builder().backend(Backend::Simd).threads(1);
    let simd = builder.build()?;
    let mut rows = Vec::new();
    for (name, op, lens) in tasks() {
        if !wanted(&name) {
            continue;
        }
        let inputs: Vec<Vec<f32>> = lens.iter().map(|&len| values(len)).collect();
        let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        let mut out = simd.run(&op, &inputs)?;
        let mut other = out.clone();
        let [on_gpu, on_simd] = race(
            [
                &mut || gpu.run_into(&op, black_box(&inputs), &mut out),
                &mut || simd.run_into(&op, black_box(&inputs), &mut other),
            ],
            rounds,
        )?;
        let times = vec![("GPU", on_gpu), ("SIMD", on_simd)];
        rows.push(Trip { name, times });
    }
    Ok(rows)
}

fn tasks() -> Vec<(String, Op, Vec<usize>)> {
    let mut tasks = Vec::new();
    for n in [64, 128, 192, 256, 384, 512, 1_024] {
        let op = Op::Matmul { m: n, k: n, n };
        tasks.push((format!("matmul {n}"), op, vec![n * n; 2]));
    }
    for (n, k) in [
        (128, 3),
        (256, 3),
        (512, 3),
        (512, 7),
        (1_024, 7),
        (1_024, 15),
    ] {
        let options = Conv2d::same(n, n, k, k);
        let op = Op::Convolve2d { options };
        tasks.push((format!("convolve2d {n}², {k}×{k}"), op, vec![n * n, k * k]));
    }
    for op in [Op::Relu, Op::Gelu, Op::Sum, Op::Softmax] {
        for len in [100_000, 1_000_000, 10_000_000] {
            tasks.push((format!("{} {len}", op.name()), op.clone(), vec![len]));
        }
    }
    tasks
}

//! Matrix products beside `gemm` and `matrixmultiply`.

use crate::race::{Contestant, race};
use crate::vectors::values;
use crate::{Row, Team};
use anyhow::Result;
use gemm::Parallelism;
use std::hint::black_box;

/// `m × k` times `k × n`.
const SHAPES: [[usize; 3]; 12] = [
    [8, 8, 8],
    [16, 16, 16],
    [32, 32, 32],
    [64, 64, 64],
    [256, 256, 256],
    [512, 512, 512],
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [1, 4096, 4096],
    [4096, 4096, 1],
    [128, 512, 2048],
    [37, 53, 91],
];

pub(crate) fn rows(team: &Team, rounds: usize, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for [m, k, n] in SHAPES {
        let name = format!("matmul {m}×{k}×{n}");
        if wanted(&name) {
            rows.push(row(team, name, [m, k, n], rounds)?);
        }
    }
    Ok(rows)
}

fn row(team: &Team, name: String, [m, k, n]: [usize; 3], rounds: usize) -> Result<Row> {
    let (a, b) = (values(m * k), values(k * n));
    let mut c = [const { Vec::new() }; 3].map(|_: Vec<f32>| vec![0.0; m * n]);
    team.device.matmul(&a, &b, &mut c[0], m, k, n)?;
    let shape = [m, k, n];
    let parallelism = match team.threads {
        1 => Parallelism::None,
        threads => Parallelism::Rayon(threads),
    };
    by_gemm(shape, &a, &b, &mut c[1], parallelism);
    by_matrixmultiply(shape, &a, &b, &mut c[2]);
    check(&c)?;
    let mut alone = vec![0.0; m * n];
    let [ours, gemm, matrixmultiply] = &mut c;
    let mut contestants = vec![
        Contestant::new("relampago", || {
            let _ = team.device.matmul(black_box(&a), &b, ours, m, k, n);
        }),
        Contestant::new("gemm", || {
            by_gemm(shape, black_box(&a), &b, gemm, parallelism);
        }),
    ];
    // It has no threads unless its feature for them is on.
    if team.threads == 1 {
        contestants.push(Contestant::new("matrixmultiply", || {
            by_matrixmultiply(shape, black_box(&a), &b, matrixmultiply);
        }));
    } else {
        contestants.push(Contestant::new("relampago, 1 thread", || {
            let _ = team.alone.matmul(black_box(&a), &b, &mut alone, m, k, n);
        }));
    }
    Ok(Row {
        name,
        work: 2e-9 * (m * k * n) as f64,
        unit: "GFLOP/s",
        contestants: race(contestants, rounds),
    })
}

/// Contestants that do not agree have not done the same work.
fn check(results: &[Vec<f32>; 3]) -> Result<()> {
    let [ours, others @ ..] = results;
    for other in others {
        let largest = ours.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let differs = |(a, b): (&f32, &f32)| (a - b).abs() > 1e-4 * largest;
        anyhow::ensure!(
            !ours.iter().zip(other).any(differs),
            "products differ from the peers'"
        );
    }
    Ok(())
}

pub(crate) fn by_gemm(
    [m, k, n]: [usize; 3],
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    threads: Parallelism,
) {
    let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    let (ak, bn) = (k as isize, n as isize);
    // SAFETY: the matrices lie row by row in slices of m·k, k·n and m·n values; `c` is borrowed
    // exclusively.
    unsafe {
        gemm::gemm(
            m, n, k, c, 1, bn, false, a, 1, ak, b, 1, bn, 0.0, 1.0, false, false, false, threads,
        );
    }
}

pub(crate) fn by_matrixmultiply([m, k, n]: [usize; 3], a: &[f32], b: &[f32], c: &mut [f32]) {
    let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    let (ak, bn) = (k as isize, n as isize);
    // SAFETY: as for `by_gemm`.
    unsafe {
        matrixmultiply::sgemm(m, k, n, 1.0, a, ak, 1, b, bn, 1, 0.0, c, bn, 1);
    }
}

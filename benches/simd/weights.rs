//! Products with cached weights, beside products that are given them each time.

use crate::products::{by_gemm, by_matrixmultiply};
use crate::race::{Contestant, race};
use crate::vectors::values;
use crate::{Row, Team};
use anyhow::Result;
use gemm::Parallelism;
use relampago::{GpuMatmulCache, TensorView, WeightFormat};
use std::hint::black_box;

/// `m × k` times `k × n`.
const SHAPES: [[usize; 3]; 6] = [
    [1, 4096, 4096],
    [4, 2048, 2048],
    [16, 1024, 4096],
    [128, 512, 2048],
    [512, 512, 512],
    [37, 53, 91],
];

const FORMATS: [WeightFormat; 4] = [
    WeightFormat::F32,
    WeightFormat::F16,
    WeightFormat::Q8_0,
    WeightFormat::Q4_0,
];

pub(crate) fn rows(team: &Team, rounds: usize, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for [m, k, n] in SHAPES {
        for format in FORMATS {
            let name = format!("weights {format:?} {m}×{k}×{n}");
            if wanted(&name) {
                rows.push(row(team, name, format, [m, k, n], rounds)?);
            }
        }
    }
    Ok(rows)
}

fn row(
    team: &Team,
    name: String,
    format: WeightFormat,
    shape: [usize; 3],
    rounds: usize,
) -> Result<Row> {
    let [m, k, n] = shape;
    let (a, b) = (values(m * k), values(k * n));
    let mut cache = GpuMatmulCache::new(team.device.clone());
    cache.insert_view("b", &TensorView::new_2d(k, n)?.bind(&b)?, format)?;
    let mut c = [const { Vec::new() }; 4].map(|_: Vec<f32>| vec![0.0; m * n]);
    let [ours, each_time, gemm, matrixmultiply] = &mut c;
    cache.matmul_cached("b", &a, ours, m)?;
    let parallelism = match team.threads {
        1 => Parallelism::None,
        threads => Parallelism::Rayon(threads),
    };
    let mut contestants = vec![
        Contestant::new("relampago", || {
            let _ = cache.matmul_cached("b", black_box(&a), ours, m);
        }),
        Contestant::new("relampago, not cached", || {
            let _ = team.device.matmul(black_box(&a), &b, each_time, m, k, n);
        }),
        Contestant::new("gemm", || {
            by_gemm(shape, black_box(&a), &b, gemm, parallelism);
        }),
    ];
    if team.threads == 1 {
        contestants.push(Contestant::new("matrixmultiply", || {
            by_matrixmultiply(shape, black_box(&a), &b, matrixmultiply);
        }));
    }
    Ok(Row {
        name,
        work: 2e-9 * (m * k * n) as f64,
        unit: "GFLOP/s",
        contestants: race(contestants, rounds),
    })
}

//! Fourier transforms beside rustfft, and sorting beside the standard library.

use std::hint::black_box;

use anyhow::Result;
use relampago::Op;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use crate::race::{Contestant, race};
use crate::vectors::values;
use crate::{Row, Team};

/// Rows of complex numbers, and their length.
const TRANSFORMS: [[usize; 2]; 3] = [[1, 1 << 20], [1024, 1024], [1024, 128]];

const SORTED: usize = 1_000_000;

pub(crate) fn rows(team: &Team, rounds: usize, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for [count, len] in TRANSFORMS {
        let name = format!("fft_rows {count}×{len}");
        if wanted(&name) {
            rows.push(transform(team, name, [count, len], rounds)?);
        }
    }
    let name = format!("sort_rows {SORTED}");
    if wanted(&name) {
        rows.push(sort(team, name, rounds)?);
    }
    Ok(rows)
}

fn transform(team: &Team, name: String, [rows, len]: [usize; 2], rounds: usize) -> Result<Row> {
    let x = values(2 * rows * len);
    let op = Op::FftRows { rows, len };
    let mut ours = team.device.run(&op, &[&x])?;
    let plan = FftPlanner::new().plan_fft_forward(len);
    let pairs = x.chunks_exact(2).map(|pair| Complex::new(pair[0], pair[1]));
    let mut input: Vec<Complex<f32>> = pairs.collect();
    let mut theirs = input.clone();
    let mut scratch = vec![Complex::default(); plan.get_outofplace_scratch_len()];
    plan.process_outofplace_with_scratch(&mut input.clone(), &mut theirs, &mut scratch);
    let largest = theirs.iter().fold(0.0_f32, |most, x| most.max(x.norm()));
    let mut both = ours.chunks_exact(2).zip(&theirs);
    let near = |(pair, x): (&[f32], &Complex<f32>)| {
        (Complex::new(pair[0], pair[1]) - x).norm() <= 1e-5 * largest
    };
    anyhow::ensure!(both.all(near), "{name} differs from the peer's");
    let contestants = vec![
        Contestant::new("relampago", || {
            let _ = team.device.run_into(&op, black_box(&[&x[..]]), &mut ours);
        }),
        Contestant::new("rustfft", || {
            plan.process_outofplace_with_scratch(black_box(&mut input), &mut theirs, &mut scratch);
        }),
    ];
    Ok(Row {
        name,
        work: 5e-9 * (rows * len) as f64 * f64::from(len.ilog2()),
        unit: "GFLOP/s",
        contestants: race(contestants, rounds),
    })
}

fn sort(team: &Team, name: String, rounds: usize) -> Result<Row> {
    let x = values(SORTED);
    let op = Op::SortRows {
        rows: 1,
        cols: SORTED,
    };
    let mut ours = team.device.run(&op, &[&x])?;
    let mut theirs = x.clone();
    theirs.sort_unstable_by(f32::total_cmp);
    let contestants = vec![
        Contestant::new("relampago", || {
            let _ = team.device.run_into(&op, black_box(&[&x[..]]), &mut ours);
        }),
        Contestant::new("sort_unstable", || {
            theirs.copy_from_slice(black_box(&x));
            theirs.sort_unstable_by(f32::total_cmp);
        }),
    ];
    let row = Row {
        name,
        work: 4e-9 * SORTED as f64,
        unit: "GB/s",
        contestants: race(contestants, rounds),
    };
    anyhow::ensure!(ours == theirs, "{} differs from the peer's", row.name);
    Ok(row)
}

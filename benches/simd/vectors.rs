//! Vector kernels, compared with plain loops: the code that a compiler makes, and the bandwidth of
//! memory.

use crate::race::{Contestant, race};
use crate::{Row, Team};
use anyhow::Result;
use relampago::Op;
use std::hint::black_box;

const LENS: [usize; 2] = [16_384, 1_000_000];

/// A plain loop over one or two inputs.
type Plain = fn(&[f32], &[f32], &mut [f32]);

/// Operations with a plain loop that does the same, or as much work on memory.
const OPS: [(Op, &str, Plain); 12] = [
    (Op::Relu, "memcpy", |a, _, y| y.copy_from_slice(a)),
    (Op::VecAdd, "plain loop", add),
    (Op::Dot, "plain loop", dot),
    (Op::Sum, "plain loop", sum),
    (Op::Max, "plain loop", max),
    (Op::Exp, "f32::exp", |a, _, y| map(a, y, f32::exp)),
    (Op::Sigmoid, "f32::exp", |a, _, y| {
        map(a, y, |x| 1.0 / (1.0 + (-x).exp()));
    }),
    (Op::Tanh, "f32::tanh", |a, _, y| map(a, y, f32::tanh)),
    (Op::Gelu, "f32::exp", |a, _, y| {
        map(a, y, |x| x / (1.0 + (-1.702 * x).exp()));
    }),
    (Op::Swish, "f32::exp", |a, _, y| {
        map(a, y, |x| x / (1.0 + (-x).exp()));
    }),
    (Op::Softmax, "f32::exp", softmax),
    (Op::Argmax, "plain loop", argmax),
];

pub(crate) fn values(len: usize) -> Vec<f32> {
    (0..len)
        .map(|i| (i * 37 % 101) as f32 / 25.0 - 2.0)
        .collect()
}

pub(crate) fn rows(team: &Team, rounds: usize, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for len in LENS {
        for (op, peer, plain) in OPS {
            let name = format!("{} {len}", op.name());
            if wanted(&name) {
                rows.push(row(team, name, &op, (peer, plain), len, rounds)?);
            }
        }
    }
    Ok(rows)
}

fn row(
    team: &Team,
    name: String,
    op: &Op,
    (peer, plain): (&str, Plain),
    len: usize,
    rounds: usize,
) -> Result<Row> {
    let (a, b) = (values(len), values(len));
    let inputs = [&a[..], &b[..]];
    let inputs = &inputs[..op.inputs().len()];
    let mut y = team.device.run(op, inputs)?;
    let mut z = vec![0.0; y.len()];
    let bytes = 4 * (len * inputs.len() + y.len());
    let mut alone = y.clone();
    let mut contestants = vec![
        Contestant::new("relampago", || {
            let _ = team.device.run_into(op, black_box(inputs), &mut y);
        }),
        Contestant::new(peer, || plain(black_box(&a), &b, &mut z)),
    ];
    if team.threads > 1 {
        contestants.push(Contestant::new("relampago, 1 thread", || {
            let _ = team.alone.run_into(op, black_box(inputs), &mut alone);
        }));
    }
    Ok(Row {
        name,
        work: 1e-9 * bytes as f64,
        unit: "GB/s",
        contestants: race(contestants, rounds),
    })
}

fn map(x: &[f32], y: &mut [f32], f: impl Fn(f32) -> f32) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = f(x);
    }
}

fn add(a: &[f32], b: &[f32], y: &mut [f32]) {
    for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
        *y = a + b;
    }
}

/// Lanes that the plain reductions keep, or a compiler may not vectorise them.
const LANES: usize = 64;

fn fold(a: &[f32], b: &[f32], f: impl Fn(f32, f32, f32) -> f32) -> [f32; LANES] {
    let mut lanes = [0.0; LANES];
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for i in 0..LANES {
            lanes[i] = f(lanes[i], a[i], b[i]);
        }
    }
    lanes
}

fn dot(a: &[f32], b: &[f32], y: &mut [f32]) {
    y[0] = fold(a, b, |sum, a, b| sum + a * b).iter().sum();
}

fn sum(a: &[f32], _: &[f32], y: &mut [f32]) {
    y[0] = fold(a, a, |sum, a, _| sum + a).iter().sum();
}

fn max(a: &[f32], _: &[f32], y: &mut [f32]) {
    let lanes = fold(a, a, |max, a, _| if a > max { a } else { max });
    y[0] = lanes.into_iter().fold(f32::NEG_INFINITY, f32::max);
}

fn argmax(a: &[f32], _: &[f32], y: &mut [f32]) {
    let best = a.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    y[0] = best.map_or(0, |(i, _)| i) as f32;
}

fn softmax(x: &[f32], _: &[f32], y: &mut [f32]) {
    let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    map(x, y, |x| (x - max).exp());
    let sum: f32 = y.iter().sum();
    for y in y {
        *y /= sum;
    }
}

//! Programs: fused, as recorded, and beside one operation or a loop that does all of it.

use crate::race::{Contestant, race};
use crate::vectors::values;
use crate::{Row, Team};
use anyhow::Result;
use relampago::{BufferId, GpuCommandBatch, Program};

const LEN: usize = 1_000_000;
/// A length that no cache holds.
const LONG: usize = 1 << 26;
/// A layer of 128 × 512 by 512 × 2048, and one back.
const LAYERS: [usize; 3] = [128, 512, 2048];

pub(crate) fn rows(team: &Team, rounds: usize, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let makers: [(&str, Maker); 4] = [
        ("program, 20 unary operations 1000000", twenty::<LEN>),
        ("program, 20 unary operations 67108864", twenty::<LONG>),
        ("program, relu, scale, add 1000000", three),
        ("program, perceptron 128x512x2048", perceptron),
    ];
    let mut rows = Vec::new();
    for (name, maker) in makers {
        if wanted(name) {
            rows.push(maker(team, name, rounds)?);
        }
    }
    Ok(rows)
}

type Maker = fn(&Team, &str, usize) -> Result<Row>;

fn program(
    team: &Team,
    optimised: bool,
    record: &dyn Fn(&mut GpuCommandBatch) -> BufferId,
) -> Result<Program> {
    let mut batch = GpuCommandBatch::new(team.device.clone());
    batch.set_optimised(optimised);
    let y = record(&mut batch);
    Ok(batch.compile(&[y])?)
}

/// Programs beside each other on the same values, and a loop.
fn row(
    name: &str,
    rounds: usize,
    (work, unit): (f64, &'static str),
    programs: &[(&'static str, Program)],
    arguments: &[Vec<f32>],
    plain: Option<(&'static str, &mut dyn FnMut())>,
) -> Row {
    let mut contestants = Vec::new();
    for (name, program) in programs {
        let arguments: Vec<_> = arguments.iter().map(Into::into).collect();
        contestants.push(Contestant::new(name, move || {
            let _ = program.run(&arguments);
        }));
    }
    if let Some((name, run)) = plain {
        contestants.push(Contestant::new(name, run));
    }
    Row {
        name: name.to_owned(),
        work,
        unit,
        contestants: race(contestants, rounds),
    }
}

/// Records operations of which none undoes or repeats another.
fn twenty<const LEN: usize>(team: &Team, name: &str, rounds: usize) -> Result<Row> {
    let all = |batch: &mut GpuCommandBatch| {
        let mut x = batch.placeholder(LEN);
        for i in 0..5 {
            x = batch.scale(x, 1.5 + i as f32);
            x = batch.leaky_relu(x, 0.1);
            x = batch.clip(x, -3.0, 2.0 + i as f32);
            x = batch.neg(x);
        }
        x
    };
    let one = |batch: &mut GpuCommandBatch| {
        let x = batch.placeholder(LEN);
        batch.scale(x, 1.5)
    };
    let programs = [
        ("relampago", program(team, true, &all)?),
        ("one operation", program(team, true, &one)?),
        ("relampago, as recorded", program(team, false, &all)?),
    ];
    let work = (8e-9 * LEN as f64, "GB/s");
    Ok(row(name, rounds, work, &programs, &[values(LEN)], None))
}

fn three(team: &Team, name: &str, rounds: usize) -> Result<Row> {
    let record = |batch: &mut GpuCommandBatch| {
        let (x, y) = (batch.placeholder(LEN), batch.placeholder(LEN));
        let relu = batch.relu(x);
        let scaled = batch.scale(relu, 2.0);
        batch.vec_add(scaled, y)
    };
    let programs = [
        ("relampago", program(team, true, &record)?),
        ("relampago, as recorded", program(team, false, &record)?),
    ];
    let (x, y, mut z) = (values(LEN), values(LEN), vec![0.0; LEN]);
    let mut plain = || {
        for ((z, x), y) in z.iter_mut().zip(std::hint::black_box(&x)).zip(&y) {
            *z = x.max(0.0) * 2.0 + y;
        }
    };
    let arguments = [x.clone(), y.clone()];
    let work = (12e-9 * LEN as f64, "GB/s");
    let plain = Some(("plain loop", &mut plain as &mut dyn FnMut()));
    Ok(row(name, rounds, work, &programs, &arguments, plain))
}

/// Weights of a layer, as large as they are after training: by larger ones the GELU's results are
/// denormal, by which processors take a hundred times as long to multiply.
fn weights(inner: usize, outer: usize) -> Vec<f32> {
    let scale = (inner as f32).sqrt().recip();
    let weights = values(inner * outer).into_iter();
    weights.map(|value| value * scale).collect()
}

fn perceptron(team: &Team, name: &str, rounds: usize) -> Result<Row> {
    let [rows, inner, outer] = LAYERS;
    let record = |batch: &mut GpuCommandBatch| {
        let x = batch.placeholder(rows * inner);
        let (w, v) = (
            batch.upload(&weights(inner, outer)),
            batch.upload(&weights(outer, inner)),
        );
        let b = batch.upload(&values(outer));
        let hidden = batch.matmul(x, w, rows, inner, outer);
        let hidden = batch.bias_add(hidden, b, rows, outer);
        let hidden = batch.gelu(hidden);
        batch.matmul(hidden, v, rows, outer, inner)
    };
    let programs = [
        ("relampago", program(team, true, &record)?),
        ("relampago, as recorded", program(team, false, &record)?),
    ];
    let work = (4e-9 * (rows * inner * outer) as f64, "GFLOP/s");
    Ok(row(
        name,
        rounds,
        work,
        &programs,
        &[values(rows * inner)],
        None,
    ))
}

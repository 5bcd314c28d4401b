//! Convolution layers, compared with programs without a layer operation: all windows as a matrix
//! (im2col), multiplied by the peer.

use crate::products::by_gemm;
use crate::race::{Contestant, race};
use crate::vectors::values;
use crate::{Row, Team, resnet};
use anyhow::Result;
use gemm::Parallelism;
use relampago::{ConvLayer, Op};
use std::hint::black_box;

pub(crate) fn rows(team: &Team, rounds: usize, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let wanted = resnet::layers(1).filter(|(name, _)| wanted(name));
    wanted
        .map(|(name, layer)| row(team, name, layer, rounds))
        .collect()
}

fn row(team: &Team, name: String, layer: ConvLayer, rounds: usize) -> Result<Row> {
    let (rows, cols) = layer.output_shape();
    let depth = resnet::depth(&layer);
    let shape = [layer.filters, depth, rows * cols];
    let [input, weights] = resnet::lens(&layer).map(values);
    let mut windows = vec![0.0; depth * rows * cols];
    let mut theirs = vec![0.0; layer.filters * rows * cols];
    let mut by_peer = |theirs: &mut [f32]| {
        gather(&layer, &input, &mut windows);
        let threads = match team.threads {
            1 => Parallelism::None,
            threads => Parallelism::Rayon(threads),
        };
        by_gemm(shape, &weights, &windows, theirs, threads);
    };
    let (op, operands) = (Op::ConvolveLayer { options: layer }, [&input[..], &weights]);
    let mut ours = team.device.run(&op, &operands)?;
    by_peer(&mut theirs);
    let largest = theirs.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let mut both = ours.iter().zip(&theirs);
    let agree = both.all(|(a, b)| (a - b).abs() <= 1e-4 * largest);
    anyhow::ensure!(agree, "{name} differs from the peer's");
    let contestants = vec![
        Contestant::new("relampago", || {
            let _ = team.device.run_into(&op, black_box(&operands), &mut ours);
        }),
        Contestant::new("windows, gemm", || by_peer(black_box(&mut theirs))),
    ];
    Ok(Row {
        name,
        work: 2e-9 * shape.iter().product::<usize>() as f64,
        unit: "GFLOP/s",
        contestants: race(contestants, rounds),
    })
}

/// The matrix of all windows, of stride 1 or more, a row for each weight of a filter.
fn gather(layer: &ConvLayer, input: &[f32], windows: &mut [f32]) {
    let image = layer.image;
    let (rows, cols) = layer.output_shape();
    let (top, left) = layer.padding_before();
    let plane = image.input_rows * image.input_cols;
    let taps = image.kernel_rows * image.kernel_cols;
    for (weight, windows) in windows.chunks_exact_mut(rows * cols).enumerate() {
        let (channel, tap) = (&input[weight / taps * plane..][..plane], weight % taps);
        for (row, windows) in windows.chunks_exact_mut(cols).enumerate() {
            let row = row * image.stride_rows + tap / image.kernel_cols;
            let row = row.wrapping_sub(top);
            if row >= image.input_rows {
                windows.fill(0.0);
                continue;
            }
            let row = &channel[row * image.input_cols..][..image.input_cols];
            for (col, window) in windows.iter_mut().enumerate() {
                let col = col * image.stride_cols + tap % image.kernel_cols;
                *window = row.get(col.wrapping_sub(left)).copied().unwrap_or(0.0);
            }
        }
    }
}

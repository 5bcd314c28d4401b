//! Tiled reductions beside plain loops over the same tiles.

use crate::race::{Contestant, race};
use crate::vectors::values;
use crate::{Row, Team};
use anyhow::Result;
use relampago::{MaxOp, ReduceOp, SumOp, TILE_SIZE};
use std::hint::black_box;

const SIDES: [usize; 2] = [256, 1024];

pub(crate) fn rows(team: &Team, rounds: usize, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for side in SIDES {
        let sum = format!("tiled sum {side}×{side}");
        if wanted(&sum) {
            rows.push(row::<SumOp>(team, sum, side, rounds)?);
        }
        let max = format!("tiled max {side}×{side}");
        if wanted(&max) {
            rows.push(row::<MaxOp>(team, max, side, rounds)?);
        }
    }
    Ok(rows)
}

fn row<O: ReduceOp>(team: &Team, name: String, side: usize, rounds: usize) -> Result<Row> {
    let x = values(side * side);
    let ours = team
        .device
        .tiled_reduce_partial::<O>(&x, side, side)?
        .values;
    anyhow::ensure!(
        ours.len() == plain::<O>(&x, side).len(),
        "not as many tiles"
    );
    let contestants = vec![
        Contestant::new("relampago", || {
            let _ = black_box(
                team.device
                    .tiled_reduce_partial::<O>(black_box(&x), side, side),
            );
        }),
        Contestant::new("plain Rust", || {
            black_box(plain::<O>(black_box(&x), side));
        }),
    ];
    Ok(Row {
        name,
        work: 4e-9 * (side * side) as f64,
        unit: "GB/s",
        contestants: race(contestants, rounds),
    })
}

/// Row after row of tiles, a value after the other added to its tile's.
fn plain<O: ReduceOp>(x: &[f32], side: usize) -> Vec<f32> {
    let band = |rows: &[f32]| {
        let mut tiles = vec![O::identity(); side.div_ceil(TILE_SIZE)];
        for row in rows.chunks(side) {
            for (tile, values) in tiles.iter_mut().zip(row.chunks(TILE_SIZE)) {
                *tile = values.iter().copied().fold(*tile, O::combine);
            }
        }
        tiles
    };
    x.chunks(TILE_SIZE * side).flat_map(band).collect()
}

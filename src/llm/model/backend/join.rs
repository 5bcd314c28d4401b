//! Matrices that become one.

use super::super::steps::{Slot, Step, Steps, WeightId};
use super::super::weights::{Weight, Weights};
use super::slots::BESIDE;
use crate::graph::steps::StepBackend;

/// Joins successive products of the same rows whose weights have one type and whose results lie beside
/// each other, where the back-end is a GPU. Returns the steps of each layer, and the numbers of the matrices that become one.
pub(super) fn join<B: StepBackend>(
    steps: &Steps,
    weights: &Weights,
) -> (Vec<Vec<Step>>, Vec<Vec<usize>>) {
    let mut joined = Vec::new();
    if !B::IS_GPU {
        return (steps.layers.clone(), joined);
    }
    let layers = steps.layers.iter();
    let layers = layers.map(|steps| join_layer(&weights.matrices, steps, &mut joined));
    (layers.collect(), joined)
}

/// Returns for each matrix the numbers of those whose rows it has on a back-end: none where another one has its rows, and
/// none for a matrix whose rows only the host reads, from the file.
pub(super) fn groups(weights: &Weights, joined: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let rows_of = |index| {
        if weights.is_on_host(index) {
            return Vec::new();
        }
        match joined.iter().find(|rows| rows.contains(&index)) {
            Some(rows) if rows[0] == index => rows.clone(),
            Some(_) => Vec::new(),
            None => vec![index],
        }
    };
    (0..weights.matrices.len()).map(rows_of).collect()
}

fn join_layer(matrices: &[Weight], all: &[Step], joined: &mut Vec<Vec<usize>>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut slots: Vec<Slot> = Vec::new();
    for &step in all {
        let Step::Multiply {
            weight: WeightId(weight),
            to,
            adds: false,
            ..
        } = step
        else {
            slots.clear();
            steps.push(step);
            continue;
        };
        let mut beside = slots.clone();
        beside.push(to);
        let is_beside = BESIDE
            .iter()
            .any(|all| all.windows(beside.len()).any(|part| part == beside));
        let same = |rows: &&mut Vec<usize>| matrices[rows[0]].kind == matrices[weight].kind;
        match joined.last_mut().filter(same) {
            Some(rows) if !slots.is_empty() && is_beside => rows.push(weight),
            _ => {
                joined.push(vec![weight]);
                beside = vec![to];
                steps.push(step);
            }
        }
        slots = beside;
    }
    steps
}

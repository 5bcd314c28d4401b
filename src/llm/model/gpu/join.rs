//! Matrices that become one.

use super::super::Model;
use super::super::steps::{Slot, Step, WeightId};
use super::slots::BESIDE;

/// Joins successive products of the same rows whose weights have one type and whose results lie beside
/// each other. Returns the steps of each layer, and the numbers of the matrices that become one.
pub(super) fn join(model: &Model) -> (Vec<Vec<Step>>, Vec<Vec<usize>>) {
    let mut joined = Vec::new();
    let layers = model.steps.layers.iter();
    let layers = layers.map(|steps| join_layer(model, steps, &mut joined));
    (layers.collect(), joined)
}

fn join_layer(model: &Model, all: &[Step], joined: &mut Vec<Vec<usize>>) -> Vec<Step> {
    let matrices = &model.weights.matrices;
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

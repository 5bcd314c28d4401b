//! Mixtures of experts: the choice of a row's experts, and products by their matrices.

use super::{CpuWeights, Elements, read};
use crate::alloc::try_resize;
use crate::error::Result;
use crate::graph::steps::{ALONE_BELOW, ExpertProduct, Routing};
use crate::simd::Cpu;

/// Writes the numbers of the largest logits of each row, the first of equal ones first, and then their weights by softmax.
pub(super) fn route(
    logits: &[f32],
    routes: &mut [f32],
    routing: Routing,
    [left, odds]: [&mut Vec<f32>; 2],
) -> Result<()> {
    try_resize(left, routing.experts)?;
    try_resize(odds, routing.experts)?;
    let rows = logits.chunks_exact(routing.experts);
    for (logits, route) in rows.zip(routes.chunks_exact_mut(2 * routing.used)) {
        left.copy_from_slice(logits);
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for (odds, logit) in odds.iter_mut().zip(logits) {
            *odds = libm::expf(logit - largest);
        }
        let (numbers, weights) = route.split_at_mut(routing.used);
        for (number, weight) in numbers.iter_mut().zip(&mut *weights) {
            let mut best = 0;
            for (i, &logit) in left.iter().enumerate() {
                if logit > left[best] {
                    best = i;
                }
            }
            (*number, *weight) = (best as f32, odds[best]);
            left[best] = f32::NEG_INFINITY;
        }
        let counted = if routing.normalises {
            &*weights
        } else {
            &*odds
        };
        let total: f32 = counted.iter().sum();
        for weight in weights {
            *weight /= total;
        }
    }
    Ok(())
}

/// A product by the matrices of experts.
pub(super) struct ExpertMatmul {
    pub(super) weights: CpuWeights,
    pub(super) routes: Elements,
    pub(super) product: ExpertProduct,
}

impl ExpertMatmul {
    /// Multiplies the rows that chose an expert by its matrix, expert after expert.
    pub(super) fn run(
        &self,
        cpu: Cpu,
        [gathered, products]: [&mut Vec<f32>; 2],
        x: &[f32],
        y: &mut [f32],
    ) -> Result<()> {
        let ExpertProduct { used, rows, .. } = self.product;
        let routes = read(&self.routes)?;
        let cols = self.weights.cols;
        for expert in 0..self.weights.rows / rows {
            // A place is a token and one of its experts.
            let chosen = |place: &usize| {
                let (token, i) = (place / used, place % used);
                routes[2 * token * used + i] as usize == expert
            };
            let places = 0..self.product.tokens * used;
            let places: Vec<usize> = places.filter(chosen).collect();
            if places.is_empty() {
                continue;
            }
            try_resize(gathered, places.len() * cols)?;
            for (place, to) in places.iter().zip(gathered.chunks_exact_mut(cols)) {
                let row = if self.product.mixes {
                    *place
                } else {
                    place / used
                };
                to.copy_from_slice(&x[row * cols..][..cols]);
            }
            try_resize(products, places.len() * rows)?;
            let own = self.weights.rows_from(expert * rows, rows);
            let alone = self.product.alone || places.len() < ALONE_BELOW;
            own.multiply(cpu, gathered, products, alone)?;
            for (place, from) in places.iter().zip(products.chunks_exact(rows)) {
                if self.product.mixes {
                    let (token, i) = (place / used, place % used);
                    let weight = self.product.scale * routes[(2 * token + 1) * used + i];
                    let to = y[token * rows..].iter_mut();
                    to.zip(from).for_each(|(y, x)| *y += weight * x);
                } else {
                    y[place * rows..][..rows].copy_from_slice(from);
                }
            }
        }
        Ok(())
    }
}

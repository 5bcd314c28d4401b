//! A check of products in f16 by a model's own weights.

use std::sync::Arc;

use super::BlockWeights;
use super::block_weights::F16_TILE;
use crate::error::{Error, Result};
use crate::gpu::context::Gpu;
use crate::gpu::f16_matmul;
use crate::graph::steps::{Product, StepBackend, StepPass};
use crate::ops::KernelGroup;
use crate::random::Philox;

/// The number of rows that each matrix multiplies: enough for tiles of f16.
const ROWS: usize = 16;
/// The largest difference of products in f16 and in `f32`, as a part of these (root mean squares). Rounding of both factors
/// to 11 binary digits makes about 2⁻¹¹ of it.
const BOUND: f64 = 1.0 / 256.0;

/// Compares products in f16 with products in `f32`, and turns f16 off if they differ by more than their rounding or the
/// driver refuses the kernel.
///
/// # Errors
/// `OutOfMemory`, `LimitExceeded`, `DeviceLost`.
pub(super) async fn check(gpu: &Arc<Gpu>, matrices: &[&BlockWeights]) -> Result<()> {
    for weights in matrices {
        if !f16_matmul::is_used(gpu) {
            return Ok(());
        }
        let mut x = vec![0.0; ROWS * weights.cols];
        Philox::new(2).normal(0, &mut x);
        let in_f16 = product(gpu, weights, &x);
        gpu.switch(KernelGroup::F16, false);
        let in_f32 = product(gpu, weights, &x);
        gpu.switch(KernelGroup::F16, true);
        let in_f16 = match in_f16 {
            Ok(product) => product.await,
            Err(error) => Err(error),
        };
        let in_f32 = in_f32?.await?;
        let is_right = match in_f16 {
            Ok(in_f16) => difference(&in_f16, &in_f32) <= BOUND,
            Err(Error::Gpu { .. }) => false,
            Err(error) => return Err(error),
        };
        if !is_right {
            log::warn!(
                "products in f16 are wrong on this GPU, which multiplies in f32 from now on"
            );
            gpu.switch(KernelGroup::F16, false);
        }
    }
    Ok(())
}

/// Starts the product of rows by a matrix; the future returns it.
fn product<'g>(
    gpu: &'g Arc<Gpu>,
    weights: &BlockWeights,
    x: &[f32],
) -> Result<impl Future<Output = Result<Vec<f32>>> + use<'g>> {
    let rows = weights.rows;
    let mut pass = StepBackend::pass(gpu)?;
    // Tiles write whole ones. Memory of an earlier check may have the right values.
    let y = pass.upload(&vec![f32::NAN; F16_TILE * rows])?;
    let x = pass.upload(x)?;
    pass.multiply(&x, weights, (&y, 0, rows), Product::of(ROWS), None)?;
    pass.submit(Some((&y, ROWS * rows)))
}

/// Returns the root mean square of the difference as a part of that of the second argument; NaN counts as a difference.
fn difference(a: &[f32], b: &[f32]) -> f64 {
    let squares = a.iter().zip(b).map(|(&a, &b)| f64::from(a - b).powi(2));
    let size: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
    let part = squares.sum::<f64>() / size;
    if size == 0.0 && a.iter().all(|&a| a == 0.0) {
        0.0
    } else if part.is_nan() {
        f64::INFINITY
    } else {
        part.sqrt()
    }
}

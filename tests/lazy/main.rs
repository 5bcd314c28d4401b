//! Tensors: random expressions beside oracles, mistakes, and what runs when.

#![cfg(not(target_arch = "wasm32"))]

mod behaviour;
mod cases;
mod custom;
#[cfg(feature = "gpu")]
#[path = "../support/device.rs"]
#[allow(unreachable_pub)]
mod device;
mod gradients;
mod indices;
mod mistakes;
mod numeric;
mod numpy;
mod operations;
mod operators;
mod optimizers;
mod oracle;
#[path = "../support/random.rs"]
#[allow(dead_code, unreachable_pub)]
mod random;
mod training;

use cases::{Cases, Pair};
use random::Random;
use relampago::{Backend, GpuDevice, Tensors};

fn tensors(backend: Backend) -> Tensors {
    let device = GpuDevice::builder().backend(backend).build();
    Tensors::new(&device.expect("an adapter, if in software"))
}

/// Returns the back-ends of this build.
fn backends() -> Vec<Backend> {
    let gpu = cfg!(feature = "gpu").then_some(Backend::Gpu);
    [Backend::Simd].into_iter().chain(gpu).collect()
}

/// Compares the elements with the oracle's. Operations have at most ten steps of rounding here.
fn check(result: &Pair, values: &[f32], trail: &[String]) {
    assert_eq!(values.len(), result.array.values.len(), "{trail:?}");
    for (at, (&value, &want)) in values.iter().zip(&result.array.values).enumerate() {
        let rounded = want as f32;
        let is_same = value == rounded || value.is_nan() && rounded.is_nan();
        let error = (f64::from(value) - want).abs();
        let is_near = error <= 1e-5 * (1.0 + want.abs());
        assert!(is_same || is_near, "{value} at {at}, but {want}: {trail:?}");
    }
}

fn check_expressions(backend: Backend, count: usize, seed: u64) {
    let tensors = tensors(backend);
    let mut cases = Cases {
        tensors: &tensors,
        random: Random(seed),
        trail: Vec::new(),
    };
    let mut empty = 0;
    for _ in 0..count {
        let results = cases.expression();
        let list: Vec<_> = results.iter().map(|result| &result.tensor).collect();
        let values = tensors.read(&list);
        let values = values.unwrap_or_else(|error| panic!("{error}: {:?}", cases.trail));
        for (result, values) in results.iter().zip(&values) {
            check(result, values, &cases.trail);
            empty += usize::from(values.is_empty());
        }
    }
    assert!(
        empty * 5 < count,
        "{empty} of {count} cases have no elements"
    );
    println!("{count} random cases of tensors on {backend}");
}

#[test]
fn random_expressions_are_right_on_simd() {
    check_expressions(Backend::Simd, 12_000, 1);
}

#[cfg(feature = "gpu")]
#[test]
fn random_expressions_are_right_on_the_gpu() {
    check_expressions(Backend::Gpu, 250, 2);
}

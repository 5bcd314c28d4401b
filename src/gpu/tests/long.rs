//! Long rows and sums: what loses places there, and where llvmpipe's loops would end early.

use std::sync::Arc;

use super::super::Gpu;
use super::super::tune::Key;
use super::{judge, noise, pretend};
use crate::ops::Op;
use crate::runtime;

/// A product that loses half a place whenever it is added to between half of so many and all of them.
fn losing(terms: f32) -> f32 {
    1.0 + terms / 4.0 * f32::EPSILON - f32::EPSILON
}

#[test]
fn an_index_is_right_of_as_many_values_as_there_are_indices() {
    let gpu = pretend(true);
    let len = 1 << 24;
    for place in [len / 32 - 5, len - 5] {
        let mut x = noise(len, 1);
        x[place] = 5.0;
        judge(&gpu, &Op::Argmax {}, &[&x]);
    }
}

#[test]
fn sums_of_many_like_terms_keep_their_places() {
    for (software, len) in [(true, 1 << 24), (false, 1 << 22)] {
        let gpu = pretend(software);
        let ones = vec![1.0; len];
        for term in [losing(64.0), losing(256.0), 0.3, 0.7] {
            let x = vec![term; len];
            judge(&gpu, &Op::Sum {}, &[&x]);
            judge(&gpu, &Op::Dot {}, &[&x, &ones]);
        }
    }
}

/// Zeros and one larger value.
fn judge_peak(gpu: &Arc<Gpu>, len: usize) {
    let mut x = vec![0.0; len];
    x[len - 7] = 9.0;
    let mut y = vec![f32::NAN; len];
    runtime::block_on(gpu.run_into(&Op::Softmax {}, &[&x], &mut y)).unwrap();
    let total = 9f64.exp() + (len - 1) as f64;
    for (place, share) in [(0, 1.0), (len - 8, 1.0), (len - 7, 9f64.exp())] {
        let error = (f64::from(y[place]) * total / share - 1.0).abs();
        assert!(error < 1e-4, "value {place} of {len} is off by {error}");
    }
}

#[test]
fn softmaxes_of_the_longest_rows_are_right() {
    let gpu = pretend(true);
    judge_peak(&gpu, gpu.max_len().min(1 << 25));
}

#[test]
fn rows_that_a_kernel_does_not_reach_the_end_of_are_not_left_to_it() {
    let gpu = pretend(true);
    let len = 1 << 20;
    gpu.tuned.remember(Key::softmax([1, len]), "softmax_row");
    judge_peak(&gpu, len);
    runtime::block_on(gpu.tune(&Op::Softmax {}, &[len], len)).unwrap();
    judge_peak(&gpu, len);
}

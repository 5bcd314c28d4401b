//! Tests of long rows and sums, where accuracy is lost and llvmpipe's loops would end early.

use std::sync::Arc;

use super::super::Gpu;
use super::super::tune::Key;
use super::{judge, noise, pretend};
use crate::ops::{Conv2d, Op};
use crate::runtime;

/// Returns a product that loses half a unit in the last place whenever it is added to a sum of between `terms / 2` and
/// `terms` of them.
fn losing(terms: f32) -> f32 {
    1.0 + terms / 4.0 * f32::EPSILON - f32::EPSILON
}

#[test]
fn argmax_is_correct_up_to_the_largest_index() {
    let gpu = pretend(true);
    let len = 1 << 24;
    for place in [len / 32 - 5, len - 5] {
        let mut x = noise(len, 1);
        x[place] = 5.0;
        judge(&gpu, &Op::Argmax, &[&x]);
    }
}

#[test]
fn sums_of_many_equal_terms_do_not_drift() {
    for (software, len) in [(true, 1 << 24), (false, 1 << 22)] {
        let gpu = pretend(software);
        let ones = vec![1.0; len];
        for term in [losing(64.0), losing(256.0), 0.3, 0.7] {
            let x = vec![term; len];
            judge(&gpu, &Op::Sum, &[&x]);
            judge(&gpu, &Op::Dot, &[&x, &ones]);
        }
    }
}

/// Zeros and one larger value.
fn judge_peak(gpu: &Arc<Gpu>, len: usize) {
    let mut x = vec![0.0; len];
    x[len - 7] = 9.0;
    let mut y = vec![f32::NAN; len];
    runtime::block_on(gpu.run_into(&Op::Softmax, &[&x], &mut y)).unwrap();
    let total = 9f64.exp() + (len - 1) as f64;
    for (place, share) in [(0, 1.0), (len - 8, 1.0), (len - 7, 9f64.exp())] {
        let error = (f64::from(y[place]) * total / share - 1.0).abs();
        assert!(error < 1e-4, "value {place} of {len} is off by {error}");
    }
}

#[test]
fn softmax_of_the_longest_rows_is_correct() {
    let gpu = pretend(true);
    judge_peak(&gpu, gpu.max_len().min(1 << 25));
}

#[test]
fn rows_too_long_for_a_kernel_use_another() {
    let gpu = pretend(true);
    let len = 1 << 20;
    gpu.tuned.remember(Key::softmax([1, len]), "softmax_row");
    judge_peak(&gpu, len);
    runtime::block_on(gpu.tune(&Op::Softmax, &[len], len)).unwrap();
    judge_peak(&gpu, len);
}

#[test]
fn convolutions_with_long_kernels_do_not_drift() {
    for software in [true, false] {
        let gpu = pretend(software);
        for (rows, cols, strides) in [
            (1, 4096, (1, 1)),
            (1, 2000, (1, 2000)),
            (1, 2000, (1, 3)),
            (4096, 1, (1, 1)),
            (70, 66, (2, 5)),
        ] {
            let (height, width) = (rows + strides.0 + 2, cols + strides.1 + 2);
            let options =
                Conv2d::valid(height, width, rows, cols).with_stride(strides.0, strides.1);
            let op = Op::Convolve2d { options };
            let ones = vec![1.0; height * width];
            for term in [losing(256.0), 0.7] {
                judge(&gpu, &op, &[&ones, &vec![term; rows * cols]]);
            }
            judge(
                &gpu,
                &op,
                &[&noise(height * width, 1), &noise(rows * cols, 2)],
            );
        }
    }
}

#[test]
fn vector_products_of_equal_terms_do_not_drift() {
    let gpu = pretend(false);
    for [m, k, n] in [
        [2, 131_072, 1],
        [2, 130_001, 1],
        [1, 1_000, 1_024],
        [1, 65_536, 4],
    ] {
        let op = Op::Matmul { m, k, n };
        for term in [losing(256.0), 0.7] {
            judge(&gpu, &op, &[&vec![1.0; m * k], &vec![term; k * n]]);
        }
    }
}

#[test]
fn products_of_many_equal_terms_do_not_drift() {
    for software in [true, false] {
        let gpu = pretend(software);
        for (m, k, n) in [(4, 256, 4), (20, 256, 70), (4, 65_536, 4)] {
            for term in [losing(256.0), 0.1, 0.7] {
                let (a, b) = (vec![1.0; m * k], vec![term; k * n]);
                judge(&gpu, &Op::Matmul { m, k, n }, &[&a, &b]);
            }
        }
    }
}

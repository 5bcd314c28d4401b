//! Long rows and sums: what loses places there, and where llvmpipe's loops would end early.

use super::{judge, noise, pretend};
use crate::ops::Op;

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

//! Dot products of rows that are read side by side.

use crate::simd::isa::Isa;
use crate::simd::reduce::{Products, Terms, add_block, sum_lanes};

/// The number of rows that are read side by side: memory feeds several streams faster than one, and each vector of `b`
/// is loaded once for all of them.
const ROWS: usize = 4;

/// The number of vectors that gather the products of a row.
const SUMS: usize = 2;

/// The number of products that one lane adds up before its sum is added in `f64`, which bounds the rounding error.
const CHAIN: usize = 64;

/// The products of all rows of `a` with `b`.
#[inline(always)]
pub(super) fn dot_each<I: Isa>(isa: I, a: &[f32], b: &[f32], c: &mut [f32]) {
    let (groups, rest) = c.as_chunks_mut::<ROWS>();
    let (fours, ones) = a.split_at(groups.as_flattened().len() * b.len());
    for (a, c) in fours.chunks_exact(ROWS * b.len()).zip(groups) {
        *c = dot_rows(isa, a, b);
    }
    for (a, c) in ones.chunks_exact(b.len()).zip(rest) {
        [*c] = dot_rows(isa, a, b);
    }
}

/// The products of `R` rows with `b`, each the same however many others there are.
#[inline(always)]
fn dot_rows<I: Isa, const R: usize>(isa: I, a: &[f32], b: &[f32]) -> [f32; R] {
    let (k, block) = (b.len(), CHAIN * SUMS * I::LANES);
    let mut totals = [0.0_f64; R];
    for start in (0..k).step_by(block) {
        let range = start..k.min(start + block);
        let mut rows = [Products(&[], &[]); R];
        for (i, row) in rows.iter_mut().enumerate() {
            *row = Products(&a[i * k..][range.clone()], &b[range.clone()]);
        }
        for ((total, sum), row) in totals.iter_mut().zip(sum_rows(isa, rows)).zip(rows) {
            add_block(total, sum, row);
        }
    }
    totals.map(|total| total as f32)
}

/// Returns the sum of each row's terms. All rows have the same number of terms.
#[inline(always)]
fn sum_rows<I: Isa, const R: usize>(isa: I, rows: [Products; R]) -> [f32; R] {
    let len = rows[0].len();
    let mut sums = [[isa.splat(0.0); R]; SUMS];
    let whole = len / (SUMS * I::LANES) * (SUMS * I::LANES);
    for at in (0..whole).step_by(SUMS * I::LANES) {
        for (j, sums) in sums.iter_mut().enumerate() {
            let at = at + j * I::LANES;
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = row.slice(at..at + I::LANES).add(isa, *sum);
            }
        }
    }
    for at in (whole..len).step_by(I::LANES) {
        for (sum, row) in sums[0].iter_mut().zip(rows) {
            *sum = row.slice(at..len.min(at + I::LANES)).add_first(isa, *sum);
        }
    }
    let [even, odd] = sums;
    let mut totals = [0.0; R];
    for (total, (even, odd)) in totals.iter_mut().zip(even.into_iter().zip(odd)) {
        *total = sum_lanes(isa, isa.add(even, odd));
    }
    totals
}

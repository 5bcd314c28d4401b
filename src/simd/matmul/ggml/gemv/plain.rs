//! Rows of weights that are numbers, and of types without a kernel.

use super::{AHEAD, Dequantized, Prepared};
use crate::simd::half::widen;
use crate::simd::isa::{Isa, constant_bits};
use crate::simd::reduce::sum_lanes;
use crate::tensor::ggml::WeightType;

#[inline(always)]
pub(super) fn f32_row<I: Isa>(isa: I, kind: WeightType, row: &[u8], prepared: Prepared<'_>) -> f32 {
    let x = prepared.x;
    let step = 4 * I::LANES;
    let mut sums = [isa.splat(0.0); 4];
    let (rows, xs) = (row.chunks_exact(4 * step), x.chunks_exact(step));
    let mut total = tail(isa, kind, rows.remainder(), xs.remainder());
    for (row, x) in rows.zip(xs) {
        isa.prefetch(row.as_ptr().wrapping_add(AHEAD).cast());
        for (i, sum) in sums.iter_mut().enumerate() {
            let at = i * I::LANES;
            // SAFETY: the chunk has four vectors.
            let w = unsafe { isa.load_ptr(row.as_ptr().add(4 * at).cast()) };
            *sum = isa.mul_add(w, isa.load(&x[at..]), *sum);
        }
    }
    let [a, b, c, d] = sums;
    total += sum_lanes(isa, isa.add(isa.add(a, b), isa.add(c, d)));
    total
}

/// The product of a row of elements of 16 bits.
#[inline(always)]
fn pairs<I: Isa>(
    isa: I,
    kind: WeightType,
    row: &[u8],
    prepared: Prepared<'_>,
    widen: impl Fn(I, I::Bits) -> I::F32,
) -> f32 {
    let step = 2 * I::LANES;
    let mut sums = [isa.splat(0.0); 2];
    let (rows, xs) = (row.chunks_exact(2 * step), prepared.x.chunks_exact(step));
    let rest = tail(isa, kind, rows.remainder(), xs.remainder());
    for (row, x) in rows.zip(prepared.mixed.chunks_exact(step)) {
        isa.prefetch(row.as_ptr().wrapping_add(AHEAD).cast());
        // SAFETY: the chunk is as long as a vector.
        let both = isa.to_bits(unsafe { isa.load_ptr(row.as_ptr().cast()) });
        let halves = [isa.shl_bits(both, 16), both];
        for (i, (half, sum)) in halves.into_iter().zip(&mut sums).enumerate() {
            let w = widen(isa, half);
            *sum = isa.mul_add(w, isa.load(&x[i * I::LANES..]), *sum);
        }
    }
    rest + sum_lanes(isa, isa.add(sums[0], sums[1]))
}

#[inline(always)]
pub(super) fn f16_row<I: Isa>(isa: I, kind: WeightType, row: &[u8], x: Prepared<'_>) -> f32 {
    pairs(isa, kind, row, x, widen)
}

#[inline(always)]
fn bf16<I: Isa>(isa: I, bits: I::Bits) -> I::F32 {
    isa.reinterpret(isa.and_bits(bits, constant_bits!(isa, 0xffff_0000_u32 as i32)))
}

#[inline(always)]
pub(super) fn bf16_row<I: Isa>(isa: I, kind: WeightType, row: &[u8], x: Prepared<'_>) -> f32 {
    pairs(isa, kind, row, x, bf16)
}

/// The product of a row of a type that has no kernel.
#[inline(always)]
pub(super) fn any_row<I: Isa>(isa: I, kind: WeightType, row: &[u8], prepared: Prepared<'_>) -> f32 {
    let x = prepared.x;
    isa.call(Dequantized { kind, row, x })
}

/// The product of the elements at the end of a row that fill no vectors.
#[inline(always)]
fn tail<I: Isa>(isa: I, kind: WeightType, row: &[u8], x: &[f32]) -> f32 {
    if x.is_empty() {
        return 0.0;
    }
    isa.call(Dequantized { kind, row, x })
}

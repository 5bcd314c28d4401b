//! Rounds a vector to integers, once for all rows of a product.

use crate::simd::isa::{Isa, Kernel, ROUNDING};
use crate::tensor::ggml::WeightType;

/// The least scale: its product with the least f16 is a normal number.
const LEAST_SCALE: f32 = f32::from_bits((127 - 102) << 23);

/// Values derived from `x`, computed once for all rows of a product.
#[derive(Clone, Copy)]
pub(in super::super) struct Prepared<'a> {
    pub(super) x: &'a [f32],
    /// For blocks of integers: `x` over the scales of its groups, rounded to pairs of 16 bits. For
    /// types of 16 bits: of each two vectors of `x` the even elements, then the odd ones.
    pub(super) mixed: &'a [f32],
    /// The scale of each group; NaN where 16 bits do not represent it, so that its products are.
    pub(super) scales: &'a [f32],
    /// The sum of each group's rounded elements, times its scale and the bias of the weights.
    pub(super) sums: &'a [f32],
}

/// `2 · LANES` rounded elements from `at` on, as pairs.
#[inline(always)]
pub(super) fn elements_at<I: Isa>(isa: I, pairs: &[f32], at: usize) -> I::Bits {
    isa.to_bits(isa.load(&pairs[at / 2..]))
}

/// Computes [`Prepared`].
pub(in super::super) struct Prepare<'a> {
    pub(in super::super) kind: WeightType,
    pub(in super::super) x: &'a [f32],
    /// Memory as long as `x`, for its elements in another order, or for pairs and two numbers for each 16.
    pub(in super::super) room: &'a mut [f32],
}

impl<'a> Kernel for Prepare<'a> {
    type Output = Prepared<'a>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Prepared<'a> {
        let Self { kind, x, room } = self;
        let Some((group, bias)) = groups(kind) else {
            if matches!(kind, WeightType::F16 | WeightType::BF16) {
                split_pairs::<I>(x, room);
            }
            return Prepared {
                x,
                mixed: room,
                scales: &[],
                sums: &[],
            };
        };
        let (mixed, rest) = room.split_at_mut(x.len() / 2);
        let (scales, sums) = rest.split_at_mut(x.len() / group);
        let numbers = scales.iter_mut().zip(&mut *sums);
        let groups = x.chunks_exact(group).zip(mixed.chunks_exact_mut(group / 2));
        for ((x, pairs), (scale, sum)) in groups.zip(numbers) {
            *scale = group_scale(isa, x);
            *sum = round(x, *scale, pairs) * *scale * bias;
        }
        Prepared {
            x,
            mixed,
            scales,
            sums,
        }
    }
}

/// Returns the number of elements that share a scale, and the number that is added to the integers of these weights.
#[inline(always)]
fn groups(kind: WeightType) -> Option<(usize, f32)> {
    match kind {
        WeightType::Q8_0 => Some((32, 0.0)),
        WeightType::Q4_0 => Some((32, -8.0)),
        WeightType::Q5_0 => Some((32, -16.0)),
        // The weight of the sum is the minimum.
        WeightType::Q4_1 | WeightType::Q5_1 | WeightType::Q4_K | WeightType::Q5_K => {
            Some((32, 1.0))
        }
        WeightType::Q6_K => Some((16, -32.0)),
        _ => None,
    }
}

/// The scale of a group's integers, a power of two: whole numbers below 2¹⁵ are not rounded.
#[inline(always)]
fn group_scale<I: Isa>(isa: I, x: &[f32]) -> f32 {
    /// 2¹⁵ / (2¹⁵ − ½): the largest numbers below 2¹⁵ would round to it.
    const GROWTH: f32 = 1.0 + 1.0 / 65_536.0;
    const EXPONENT: u32 = 0xff << 23;
    let mut most = isa.splat(0.0);
    for x in x.chunks_exact(I::LANES) {
        most = isa.max(most, isa.abs(isa.load(x)));
    }
    let lanes = isa.to_array(most);
    let larger = |most: f32, lane: f32| {
        if most >= lane || most.is_nan() {
            most
        } else {
            lane
        }
    };
    let most = GROWTH * lanes.into_iter().fold(0.0, larger);
    let scale = f32::from_bits(most.to_bits() & EXPONENT) / 16_384.0;
    if most == 0.0 {
        LEAST_SCALE
    } else if most < f32::INFINITY && scale >= LEAST_SCALE {
        scale
    } else {
        f32::NAN
    }
}

/// Rounds a group to pairs of integers. Returns their sum.
#[inline(always)]
fn round(x: &[f32], scale: f32, pairs: &mut [f32]) -> f32 {
    let inverse = 1.0 / scale;
    // The integer stands in the low bits.
    let round = |x: f32| (x * inverse + ROUNDING).to_bits() as i16;
    let mut sum = 0;
    for (x, pair) in x.chunks_exact(2).zip(pairs) {
        let (low, high) = (round(x[0]), round(x[1]));
        sum += i32::from(low) + i32::from(high);
        *pair = f32::from_bits(u32::from(low as u16) | u32::from(high as u16) << 16);
    }
    sum as f32
}

/// Writes the even elements of each two vectors, then the odd ones.
#[inline(always)]
fn split_pairs<I: Isa>(x: &[f32], to: &mut [f32]) {
    let vectors = to.chunks_exact_mut(2 * I::LANES);
    for (x, to) in x.chunks_exact(2 * I::LANES).zip(vectors) {
        for (i, pair) in x.chunks_exact(2).enumerate() {
            (to[i], to[I::LANES + i]) = (pair[0], pair[1]);
        }
    }
}

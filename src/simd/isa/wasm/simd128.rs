//! Instructions of simd128 for which relaxed SIMD has others.

#![allow(clippy::wildcard_imports)]

use std::arch::wasm32::*;

#[inline(always)]
pub(super) fn mul_add(a: v128, b: v128, c: v128) -> v128 {
    f32x4_add(f32x4_mul(a, b), c)
}

#[inline(always)]
pub(super) fn neg_mul_add(a: v128, b: v128, c: v128) -> v128 {
    f32x4_sub(c, f32x4_mul(a, b))
}

// One instruction on x86, where f32x4_max is eight.
#[inline(always)]
pub(super) fn at_least(x: v128, bound: v128) -> v128 {
    f32x4_pmax(x, bound)
}

#[inline(always)]
pub(super) fn at_most(x: v128, bound: v128) -> v128 {
    f32x4_pmin(x, bound)
}

#[inline(always)]
pub(super) fn select(mask: v128, a: v128, b: v128) -> v128 {
    v128_bitselect(a, b, mask)
}

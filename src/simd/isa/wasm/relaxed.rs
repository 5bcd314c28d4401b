//! Instructions of relaxed SIMD.

#![allow(clippy::wildcard_imports)]

use std::arch::wasm32::*;

#[inline(always)]
pub(super) fn mul_add(a: v128, b: v128, c: v128) -> v128 {
    f32x4_relaxed_madd(a, b, c)
}

#[inline(always)]
pub(super) fn neg_mul_add(a: v128, b: v128, c: v128) -> v128 {
    f32x4_relaxed_nmadd(a, b, c)
}

// Where relaxed SIMD is enabled, LLVM takes f32x4_pmax for f32x4_relaxed_max, whose operands are the other way
// round.
#[inline(always)]
pub(super) fn at_least(x: v128, bound: v128) -> v128 {
    f32x4_relaxed_max(bound, x)
}

#[inline(always)]
pub(super) fn at_most(x: v128, bound: v128) -> v128 {
    f32x4_relaxed_min(bound, x)
}

#[inline(always)]
pub(super) fn select(mask: v128, a: v128, b: v128) -> v128 {
    i32x4_relaxed_laneselect(a, b, mask)
}

//! WebAssembly's simd128: 4 numbers. A module that was validated has the instructions, so a
//! build is for either simd128 or relaxed SIMD and holds one copy of each kernel. Kernels enable
//! them by attribute: a program that depends on this crate needs no compiler flags for them.

use super::{Isa, Kernel};
use std::arch::wasm32::*;

/// The instructions that differ between simd128 and relaxed SIMD.
#[cfg_attr(relampago_relaxed, path = "wasm/relaxed.rs")]
#[cfg_attr(not(relampago_relaxed), path = "wasm/simd128.rs")]
mod variant;

#[derive(Clone, Copy)]
pub(super) struct Simd128 {
    /// Zero, which the compiler does not know.
    zero: usize,
}

// One function a kernel: engines give up on allocating registers well in large functions.
#[inline(never)]
#[cfg_attr(not(target_feature = "simd128"), target_feature(enable = "simd128"))]
#[cfg_attr(relampago_relaxed, target_feature(enable = "relaxed-simd"))]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    static ZERO: usize = 0;
    // SAFETY: it is there; what is read once more by itself the compiler does not know.
    let zero = unsafe { (&raw const ZERO).read_volatile() };
    kernel.run(Simd128 { zero })
}

/// Implements methods that are one expression of intrinsics each, which are safe here.
macro_rules! intrinsics {
    ($($(#[$attribute:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $body:expr;)*) => {$(
        $(#[$attribute])*
        #[inline(always)]
        fn $name(self, $($arg: $ty),*) -> $out {
            $body
        }
    )*};
}

impl Isa for Simd128 {
    type F32 = v128;
    type Bits = v128;
    type Mask = v128;
    // 12 sums, 2 of b, 1 of a: engines have 15 registers on x86-64, and one of their own. Without
    // multiply-adds as instructions more than 8 sums gain nothing; and where the compiler loads
    // all of a before it multiplies, they are what fits.
    const TILE_ROWS: usize = if cfg!(all(relampago_package, relampago_relaxed)) {
        6
    } else {
        4
    };
    // Half of the tiles are half of the bytes.
    const TILE_STEP: usize = 2;
    const BROADCASTS_ROWS: bool = false;
    // Relaxed SIMD leaves it to the engine; the package runs it only where they are.
    const FUSED: bool = cfg!(relampago_relaxed);
    const LANES: usize = 4;

    intrinsics! {
        fn splat(value: f32) -> v128 = f32x4_splat(value);
        fn splat_bits(value: i32) -> v128 = i32x4_splat(value);
        fn add(a: v128, b: v128) -> v128 = f32x4_add(a, b);
        fn sub(a: v128, b: v128) -> v128 = f32x4_sub(a, b);
        fn mul(a: v128, b: v128) -> v128 = f32x4_mul(a, b);
        fn div(a: v128, b: v128) -> v128 = f32x4_div(a, b);
        fn sqrt(x: v128) -> v128 = f32x4_sqrt(x);
        fn mul_add(a: v128, b: v128, c: v128) -> v128 = variant::mul_add(a, b, c);
        fn neg_mul_add(a: v128, b: v128, c: v128) -> v128 = variant::neg_mul_add(a, b, c);
        fn max(a: v128, b: v128) -> v128 = f32x4_max(a, b);
        fn min(a: v128, b: v128) -> v128 = f32x4_min(a, b);
        fn at_least(x: v128, bound: v128) -> v128 = variant::at_least(x, bound);
        fn at_most(x: v128, bound: v128) -> v128 = variant::at_most(x, bound);
        fn lt(a: v128, b: v128) -> v128 = f32x4_lt(a, b);
        fn ge(a: v128, b: v128) -> v128 = f32x4_ge(a, b);
        fn eq(a: v128, b: v128) -> v128 = f32x4_eq(a, b);
        fn select(mask: v128, a: v128, b: v128) -> v128 = variant::select(mask, a, b);
        fn to_bits(x: v128) -> v128 = x;
        fn reinterpret(x: v128) -> v128 = x;
        fn add_bits(a: v128, b: v128) -> v128 = i32x4_add(a, b);
        fn sub_bits(a: v128, b: v128) -> v128 = i32x4_sub(a, b);
        fn and_bits(a: v128, b: v128) -> v128 = v128_and(a, b);
        fn xor_bits(a: v128, b: v128) -> v128 = v128_xor(a, b);
        fn shl_bits(x: v128, count: u32) -> v128 = i32x4_shl(x, count);
        fn shr_bits(x: v128, count: u32) -> v128 = u32x4_shr(x, count);
        fn shl_exponent(x: v128) -> v128 = i32x4_shl(x, 23);
        fn shr_exponent(x: v128) -> v128 = i32x4_shr(x, 23);
        fn half_bits(x: v128) -> v128 = i32x4_shr(x, 1);
        fn shr_pairs(x: v128, count: u32) -> v128 = u16x8_shr(x, count);
        fn eq_pairs(a: v128, b: v128) -> v128 = i16x8_eq(a, b);
        fn dot_pairs(a: v128, b: v128, sum: v128) -> v128 = i32x4_add(i32x4_dot_i16x8(a, b), sum);
        fn bits_to_float(x: v128) -> v128 = f32x4_convert_i32x4(x);
    }

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        run(kernel)
    }

    // Engines make a constant of two moves through a general register and a shuffle, every time
    // that it is used. A load that repeats one number is a single instruction, so the compiler
    // must not see through it.
    #[inline(always)]
    fn constant(self, value: &'static f32) -> v128 {
        // As a number: LLVM knows a pseudo-minimum with one by its comparison, but not where the
        // constant is also there as an integer.
        // SAFETY: the offset is zero.
        f32x4_splat(unsafe { *(&raw const *value).add(self.zero) })
    }

    #[inline(always)]
    fn constant_bits(self, value: &'static i32) -> v128 {
        // SAFETY: the offset is zero.
        unsafe { v128_load32_splat((&raw const *value).add(self.zero).cast()) }
    }

    // There is no prefetch. For a load that nothing needs nothing waits, but what follows is not done with before it
    // comes: it should not come from far away.
    #[inline(always)]
    unsafe fn touch(self, from: *const f32) {
        // SAFETY: the caller says that a value is readable.
        unsafe { from.read_volatile() };
    }

    #[inline(always)]
    unsafe fn load_ptr(self, from: *const f32) -> v128 {
        // SAFETY: the caller says that 4 values are readable; any alignment will do.
        unsafe { v128_load(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_bytes(self, from: *const u8) -> v128 {
        // SAFETY: the caller says that the bytes are readable.
        unsafe {
            let bytes = v128_load32_zero(from.cast());
            u32x4_extend_low_u16x8(u16x8_extend_low_u8x16(bytes))
        }
    }

    #[inline(always)]
    unsafe fn load_signed_bytes(self, from: *const u8) -> v128 {
        // SAFETY: the caller says that the bytes are readable.
        unsafe {
            let bytes = v128_load32_zero(from.cast());
            i32x4_extend_low_i16x8(i16x8_extend_low_i8x16(bytes))
        }
    }

    #[inline(always)]
    unsafe fn load_pairs(self, from: *const u8) -> v128 {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { i16x8_load_extend_u8x8(from) }
    }

    #[inline(always)]
    unsafe fn load_signed_pairs(self, from: *const u8) -> v128 {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { i16x8_load_extend_i8x8(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_ptr(self, values: v128, to: *mut f32) {
        // SAFETY: the caller says that 4 values are writable; any alignment will do.
        unsafe { v128_store(to.cast(), values) }
    }

    #[inline(always)]
    unsafe fn transpose4(
        self,
        from: *const f32,
        from_stride: usize,
        to: *mut f32,
        to_stride: usize,
    ) {
        // SAFETY: the caller says that the four rows of four are readable and writable.
        unsafe {
            let [a, b, c, d] =
                [0, 1, 2, 3].map(|row| v128_load(from.add(row * from_stride).cast()));
            let ab_low = i32x4_shuffle::<0, 4, 1, 5>(a, b);
            let ab_high = i32x4_shuffle::<2, 6, 3, 7>(a, b);
            let cd_low = i32x4_shuffle::<0, 4, 1, 5>(c, d);
            let cd_high = i32x4_shuffle::<2, 6, 3, 7>(c, d);
            let rows = [
                i64x2_shuffle::<0, 2>(ab_low, cd_low),
                i64x2_shuffle::<1, 3>(ab_low, cd_low),
                i64x2_shuffle::<0, 2>(ab_high, cd_high),
                i64x2_shuffle::<1, 3>(ab_high, cd_high),
            ];
            for (row, values) in rows.into_iter().enumerate() {
                v128_store(to.add(row * to_stride).cast(), values);
            }
        }
    }
}

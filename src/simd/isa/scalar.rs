//! One number at a time: for CPUs without vectors, and to compare with.

use super::{Isa, Kernel};

#[derive(Clone, Copy)]
pub(super) struct Scalar(());

pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Scalar(()))
}

/// Implements methods that are one expression each.
macro_rules! expressions {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($arg: $ty),*) -> $out {
            $body
        }
    )*};
}

impl Isa for Scalar {
    type F32 = f32;
    type Bits = i32;
    type Mask = bool;
    const TILE_ROWS: usize = 4;
    const BROADCASTS_ROWS: bool = true;
    const FUSED: bool = false;
    const LANES: usize = 1;

    expressions! {
        fn splat(value: f32) -> f32 = value;
        fn splat_bits(value: i32) -> i32 = value;
        fn add(a: f32, b: f32) -> f32 = a + b;
        fn sub(a: f32, b: f32) -> f32 = a - b;
        fn mul(a: f32, b: f32) -> f32 = a * b;
        fn div(a: f32, b: f32) -> f32 = a / b;
        fn sqrt(x: f32) -> f32 = x.sqrt();
        fn mul_add(a: f32, b: f32, c: f32) -> f32 = a * b + c;
        fn neg_mul_add(a: f32, b: f32, c: f32) -> f32 = c - a * b;
        fn max(a: f32, b: f32) -> f32 = if a > b || a.is_nan() { a } else { b };
        fn min(a: f32, b: f32) -> f32 = if a < b || a.is_nan() { a } else { b };
        fn at_least(x: f32, bound: f32) -> f32 = if x < bound { bound } else { x };
        fn at_most(x: f32, bound: f32) -> f32 = if x > bound { bound } else { x };
        fn lt(a: f32, b: f32) -> bool = a < b;
        fn ge(a: f32, b: f32) -> bool = a >= b;
        fn eq(a: f32, b: f32) -> bool = a == b;
        fn select(mask: bool, a: f32, b: f32) -> f32 = if mask { a } else { b };
        fn to_bits(x: f32) -> i32 = x.to_bits() as i32;
        fn reinterpret(x: i32) -> f32 = f32::from_bits(x as u32);
        fn add_bits(a: i32, b: i32) -> i32 = a.wrapping_add(b);
        fn sub_bits(a: i32, b: i32) -> i32 = a.wrapping_sub(b);
        fn and_bits(a: i32, b: i32) -> i32 = a & b;
        fn xor_bits(a: i32, b: i32) -> i32 = a ^ b;
        fn shl_bits(x: i32, count: u32) -> i32 = x << count;
        fn shr_bits(x: i32, count: u32) -> i32 = (x as u32 >> count) as i32;
        fn shl_exponent(x: i32) -> i32 = x << 23;
        fn shr_exponent(x: i32) -> i32 = x >> 23;
        fn half_bits(x: i32) -> i32 = x >> 1;
        fn bits_to_float(x: i32) -> f32 = x as f32;
    }

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        run(kernel)
    }

    #[inline(always)]
    unsafe fn load_ptr(self, from: *const f32) -> f32 {
        // SAFETY: the caller says that one value is readable.
        unsafe { from.read() }
    }

    #[inline(always)]
    unsafe fn store_ptr(self, values: f32, to: *mut f32) {
        // SAFETY: the caller says that one value is writable.
        unsafe { to.write(values) }
    }
}

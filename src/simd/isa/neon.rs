//! NEON, part of 64-bit ARM: 4 numbers.

use super::{Isa, Kernel, intrinsics};
use std::arch::aarch64::*;

#[derive(Clone, Copy)]
pub(super) struct Neon(());

pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Neon(()))
}

impl Isa for Neon {
    type F32 = float32x4_t;
    type Bits = int32x4_t;
    type Mask = uint32x4_t;
    const TILE_ROWS: usize = 8;
    const BROADCASTS_ROWS: bool = true;
    const MANY_REGISTERS: bool = true;
    const LANES: usize = 4;

    intrinsics! {
        fn splat(value: f32) -> float32x4_t = vdupq_n_f32(value);
        fn splat_bits(value: i32) -> int32x4_t = vdupq_n_s32(value);
        fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t = vaddq_f32(a, b);
        fn sub(a: float32x4_t, b: float32x4_t) -> float32x4_t = vsubq_f32(a, b);
        fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t = vmulq_f32(a, b);
        fn div(a: float32x4_t, b: float32x4_t) -> float32x4_t = vdivq_f32(a, b);
        fn sqrt(x: float32x4_t) -> float32x4_t = vsqrtq_f32(x);
        fn mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t = vfmaq_f32(c, a, b);
        fn neg_mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t = vfmsq_f32(c, a, b);
        // FMAX and FMIN give NaN where either operand is NaN.
        fn max(a: float32x4_t, b: float32x4_t) -> float32x4_t = vmaxq_f32(a, b);
        fn min(a: float32x4_t, b: float32x4_t) -> float32x4_t = vminq_f32(a, b);
        fn at_least(x: float32x4_t, bound: float32x4_t) -> float32x4_t = vmaxq_f32(x, bound);
        fn at_most(x: float32x4_t, bound: float32x4_t) -> float32x4_t = vminq_f32(x, bound);
        fn lt(a: float32x4_t, b: float32x4_t) -> uint32x4_t = vcltq_f32(a, b);
        fn ge(a: float32x4_t, b: float32x4_t) -> uint32x4_t = vcgeq_f32(a, b);
        fn eq(a: float32x4_t, b: float32x4_t) -> uint32x4_t = vceqq_f32(a, b);
        fn select(mask: uint32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t = vbslq_f32(mask, a, b);
        fn to_bits(x: float32x4_t) -> int32x4_t = vreinterpretq_s32_f32(x);
        fn reinterpret(x: int32x4_t) -> float32x4_t = vreinterpretq_f32_s32(x);
        fn add_bits(a: int32x4_t, b: int32x4_t) -> int32x4_t = vaddq_s32(a, b);
        fn sub_bits(a: int32x4_t, b: int32x4_t) -> int32x4_t = vsubq_s32(a, b);
        fn and_bits(a: int32x4_t, b: int32x4_t) -> int32x4_t = vandq_s32(a, b);
        fn xor_bits(a: int32x4_t, b: int32x4_t) -> int32x4_t = veorq_s32(a, b);
        fn shl_bits(x: int32x4_t, count: u32) -> int32x4_t = vshlq_s32(x, vdupq_n_s32(count as i32));
        fn shr_bits(x: int32x4_t, count: u32) -> int32x4_t = vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(x), vdupq_n_s32(-(count as i32))));
        fn shl_exponent(x: int32x4_t) -> int32x4_t = vshlq_n_s32::<23>(x);
        fn shr_exponent(x: int32x4_t) -> int32x4_t = vshrq_n_s32::<23>(x);
        fn half_bits(x: int32x4_t) -> int32x4_t = vshrq_n_s32::<1>(x);
        fn shr_pairs(x: int32x4_t, count: u32) -> int32x4_t =
            vreinterpretq_s32_u16(vshlq_u16(vreinterpretq_u16_s32(x), vdupq_n_s16(-(count as i16))));
        fn eq_pairs(a: int32x4_t, b: int32x4_t) -> int32x4_t =
            vreinterpretq_s32_u16(vceqq_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)));
        fn bits_to_float(x: int32x4_t) -> float32x4_t = vcvtq_f32_s32(x);
    }

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        run(kernel)
    }

    #[inline(always)]
    unsafe fn load_ptr(self, from: *const f32) -> float32x4_t {
        // SAFETY: NEON is a target feature here; the caller says that 4 values are readable.
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn load_bytes(self, from: *const u8) -> int32x4_t {
        // SAFETY: the caller says that the bytes are readable.
        unsafe {
            let word = vcreate_u8(u64::from(from.cast::<u32>().read_unaligned()));
            vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(word))))
        }
    }

    #[inline(always)]
    unsafe fn load_signed_bytes(self, from: *const u8) -> int32x4_t {
        // SAFETY: the caller says that the bytes are readable.
        unsafe {
            let word = vcreate_s8(u64::from(from.cast::<u32>().read_unaligned()));
            vmovl_s16(vget_low_s16(vmovl_s8(word)))
        }
    }

    #[inline(always)]
    #[allow(unused_unsafe)] // Where the build's own target features include these.
    fn dot_pairs(self, a: int32x4_t, b: int32x4_t, sum: int32x4_t) -> int32x4_t {
        // SAFETY: NEON is a target feature here.
        unsafe {
            let (a, b) = (vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
            let low = vmlal_s16(sum, vget_low_s16(a), vget_low_s16(b));
            vmlal_high_s16(low, a, b)
        }
    }

    #[inline(always)]
    unsafe fn load_pairs(self, from: *const u8) -> int32x4_t {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { vreinterpretq_s32_u16(vmovl_u8(vld1_u8(from))) }
    }

    #[inline(always)]
    unsafe fn load_signed_pairs(self, from: *const u8) -> int32x4_t {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { vreinterpretq_s32_s16(vmovl_s8(vld1_s8(from.cast()))) }
    }

    #[inline(always)]
    unsafe fn store_ptr(self, values: float32x4_t, to: *mut f32) {
        // SAFETY: NEON is a target feature here; the caller says that 4 values are writable.
        unsafe { vst1q_f32(to, values) }
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
            let ab = vtrnq_f32(vld1q_f32(from), vld1q_f32(from.add(from_stride)));
            let cd = vtrnq_f32(
                vld1q_f32(from.add(2 * from_stride)),
                vld1q_f32(from.add(3 * from_stride)),
            );
            let low = |x, y| vcombine_f32(vget_low_f32(x), vget_low_f32(y));
            let high = |x, y| vcombine_f32(vget_high_f32(x), vget_high_f32(y));
            vst1q_f32(to, low(ab.0, cd.0));
            vst1q_f32(to.add(to_stride), low(ab.1, cd.1));
            vst1q_f32(to.add(2 * to_stride), high(ab.0, cd.0));
            vst1q_f32(to.add(3 * to_stride), high(ab.1, cd.1));
        }
    }
}

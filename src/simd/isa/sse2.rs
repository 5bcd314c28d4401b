//! SSE2, which every x86-64 CPU has: 4 numbers.

use super::{Isa, Kernel, intrinsics};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(super) struct Sse2(());

pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Sse2(()))
}

impl Isa for Sse2 {
    type F32 = __m128;
    type Bits = __m128i;
    type Mask = __m128;
    const TILE_ROWS: usize = 4;
    const BROADCASTS_ROWS: bool = true;
    const FUSED: bool = false;
    const LANES: usize = 4;

    intrinsics! {
        fn splat(value: f32) -> __m128 = _mm_set1_ps(value);
        fn splat_bits(value: i32) -> __m128i = _mm_set1_epi32(value);
        fn add(a: __m128, b: __m128) -> __m128 = _mm_add_ps(a, b);
        fn sub(a: __m128, b: __m128) -> __m128 = _mm_sub_ps(a, b);
        fn mul(a: __m128, b: __m128) -> __m128 = _mm_mul_ps(a, b);
        fn div(a: __m128, b: __m128) -> __m128 = _mm_div_ps(a, b);
        fn sqrt(x: __m128) -> __m128 = _mm_sqrt_ps(x);
        fn mul_add(a: __m128, b: __m128, c: __m128) -> __m128 = _mm_add_ps(_mm_mul_ps(a, b), c);
        fn neg_mul_add(a: __m128, b: __m128, c: __m128) -> __m128 = _mm_sub_ps(c, _mm_mul_ps(a, b));
        // The instruction gives its second operand where either is NaN; the comparison's
        // mask of ones is a NaN too.
        fn max(a: __m128, b: __m128) -> __m128 = _mm_or_ps(_mm_max_ps(a, b), _mm_cmpunord_ps(a, a));
        fn min(a: __m128, b: __m128) -> __m128 = _mm_or_ps(_mm_min_ps(a, b), _mm_cmpunord_ps(a, a));
        fn at_least(x: __m128, bound: __m128) -> __m128 = _mm_max_ps(bound, x);
        fn at_most(x: __m128, bound: __m128) -> __m128 = _mm_min_ps(bound, x);
        fn lt(a: __m128, b: __m128) -> __m128 = _mm_cmplt_ps(a, b);
        fn ge(a: __m128, b: __m128) -> __m128 = _mm_cmpge_ps(a, b);
        fn eq(a: __m128, b: __m128) -> __m128 = _mm_cmpeq_ps(a, b);
        fn select(mask: __m128, a: __m128, b: __m128) -> __m128 =
            _mm_or_ps(_mm_and_ps(mask, a), _mm_andnot_ps(mask, b));
        fn to_bits(x: __m128) -> __m128i = _mm_castps_si128(x);
        fn reinterpret(x: __m128i) -> __m128 = _mm_castsi128_ps(x);
        fn add_bits(a: __m128i, b: __m128i) -> __m128i = _mm_add_epi32(a, b);
        fn sub_bits(a: __m128i, b: __m128i) -> __m128i = _mm_sub_epi32(a, b);
        fn and_bits(a: __m128i, b: __m128i) -> __m128i = _mm_and_si128(a, b);
        fn xor_bits(a: __m128i, b: __m128i) -> __m128i = _mm_xor_si128(a, b);
        fn shl_bits(x: __m128i, count: u32) -> __m128i = _mm_sll_epi32(x, _mm_cvtsi32_si128(count as i32));
        fn shr_bits(x: __m128i, count: u32) -> __m128i = _mm_srl_epi32(x, _mm_cvtsi32_si128(count as i32));
        fn shl_exponent(x: __m128i) -> __m128i = _mm_slli_epi32::<23>(x);
        fn shr_exponent(x: __m128i) -> __m128i = _mm_srai_epi32::<23>(x);
        fn half_bits(x: __m128i) -> __m128i = _mm_srai_epi32::<1>(x);
        fn shr_pairs(x: __m128i, count: u32) -> __m128i = _mm_srl_epi16(x, _mm_cvtsi32_si128(count as i32));
        fn eq_pairs(a: __m128i, b: __m128i) -> __m128i = _mm_cmpeq_epi16(a, b);
        fn dot_pairs(a: __m128i, b: __m128i, sum: __m128i) -> __m128i = _mm_add_epi32(_mm_madd_epi16(a, b), sum);
        fn bits_to_float(x: __m128i) -> __m128 = _mm_cvtepi32_ps(x);
    }

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        run(kernel)
    }

    #[inline(always)]
    unsafe fn load_ptr(self, from: *const f32) -> __m128 {
        // SAFETY: SSE is everywhere; the caller says that 4 values are readable.
        unsafe { _mm_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn load_bytes(self, from: *const u8) -> __m128i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe {
            let zero = _mm_setzero_si128();
            let bytes = _mm_cvtsi32_si128(from.cast::<i32>().read_unaligned());
            _mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero)
        }
    }

    #[inline(always)]
    unsafe fn load_signed_bytes(self, from: *const u8) -> __m128i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe {
            let bytes = _mm_cvtsi32_si128(from.cast::<i32>().read_unaligned());
            let pairs = _mm_unpacklo_epi8(bytes, bytes);
            _mm_srai_epi32::<24>(_mm_unpacklo_epi16(pairs, pairs))
        }
    }

    #[inline(always)]
    unsafe fn load_pairs(self, from: *const u8) -> __m128i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { _mm_unpacklo_epi8(_mm_loadl_epi64(from.cast()), _mm_setzero_si128()) }
    }

    #[inline(always)]
    unsafe fn load_signed_pairs(self, from: *const u8) -> __m128i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe {
            let bytes = _mm_loadl_epi64(from.cast());
            _mm_srai_epi16::<8>(_mm_unpacklo_epi8(bytes, bytes))
        }
    }

    #[inline(always)]
    unsafe fn store_ptr(self, values: __m128, to: *mut f32) {
        // SAFETY: SSE is everywhere; the caller says that 4 values are writable.
        unsafe { _mm_storeu_ps(to, values) }
    }

    #[inline(always)]
    unsafe fn transpose4(
        self,
        from: *const f32,
        from_stride: usize,
        to: *mut f32,
        to_stride: usize,
    ) {
        // SAFETY: the caller's promise is that of the function called.
        unsafe { transpose4(from, from_stride, to, to_stride) }
    }
}

/// [`Isa::transpose4`] for all x86-64.
///
/// # Safety
/// As for [`Isa::transpose4`].
#[inline(always)]
pub(super) unsafe fn transpose4(
    from: *const f32,
    from_stride: usize,
    to: *mut f32,
    to_stride: usize,
) {
    // SAFETY: the caller says that the four rows of four are readable and writable.
    unsafe {
        let mut a = _mm_loadu_ps(from);
        let mut b = _mm_loadu_ps(from.add(from_stride));
        let mut c = _mm_loadu_ps(from.add(2 * from_stride));
        let mut d = _mm_loadu_ps(from.add(3 * from_stride));
        _MM_TRANSPOSE4_PS(&mut a, &mut b, &mut c, &mut d);
        _mm_storeu_ps(to, a);
        _mm_storeu_ps(to.add(to_stride), b);
        _mm_storeu_ps(to.add(2 * to_stride), c);
        _mm_storeu_ps(to.add(3 * to_stride), d);
    }
}

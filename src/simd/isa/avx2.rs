//! AVX2 with fused multiply-add: 8 numbers.

use super::{Isa, Kernel, intrinsics};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(super) struct Avx2(());

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

impl Isa for Avx2 {
    type F32 = __m256;
    type Bits = __m256i;
    type Mask = __m256;
    const TILE_ROWS: usize = 6;
    const BROADCASTS_ROWS: bool = true;
    const LANES: usize = 8;

    intrinsics! {
        fn splat(value: f32) -> __m256 = _mm256_set1_ps(value);
        fn splat_bits(value: i32) -> __m256i = _mm256_set1_epi32(value);
        fn add(a: __m256, b: __m256) -> __m256 = _mm256_add_ps(a, b);
        fn sub(a: __m256, b: __m256) -> __m256 = _mm256_sub_ps(a, b);
        fn mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        fn div(a: __m256, b: __m256) -> __m256 = _mm256_div_ps(a, b);
        fn sqrt(x: __m256) -> __m256 = _mm256_sqrt_ps(x);
        fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        fn neg_mul_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fnmadd_ps(a, b, c);
        // The instruction gives its second operand where either is NaN.
        fn max(a: __m256, b: __m256) -> __m256 = _mm256_blendv_ps(
            _mm256_max_ps(a, b), a, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a));
        fn min(a: __m256, b: __m256) -> __m256 = _mm256_blendv_ps(
            _mm256_min_ps(a, b), a, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a));
        fn at_least(x: __m256, bound: __m256) -> __m256 = _mm256_max_ps(bound, x);
        fn at_most(x: __m256, bound: __m256) -> __m256 = _mm256_min_ps(bound, x);
        fn lt(a: __m256, b: __m256) -> __m256 = _mm256_cmp_ps::<_CMP_LT_OQ>(a, b);
        fn ge(a: __m256, b: __m256) -> __m256 = _mm256_cmp_ps::<_CMP_GE_OQ>(a, b);
        fn eq(a: __m256, b: __m256) -> __m256 = _mm256_cmp_ps::<_CMP_EQ_OQ>(a, b);
        fn select(mask: __m256, a: __m256, b: __m256) -> __m256 = _mm256_blendv_ps(b, a, mask);
        fn to_bits(x: __m256) -> __m256i = _mm256_castps_si256(x);
        fn reinterpret(x: __m256i) -> __m256 = _mm256_castsi256_ps(x);
        fn add_bits(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi32(a, b);
        fn sub_bits(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi32(a, b);
        fn and_bits(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        fn xor_bits(a: __m256i, b: __m256i) -> __m256i = _mm256_xor_si256(a, b);
        fn shl_bits(x: __m256i, count: u32) -> __m256i = _mm256_sll_epi32(x, _mm_cvtsi32_si128(count as i32));
        fn shr_bits(x: __m256i, count: u32) -> __m256i = _mm256_srl_epi32(x, _mm_cvtsi32_si128(count as i32));
        fn shl_exponent(x: __m256i) -> __m256i = _mm256_slli_epi32::<23>(x);
        fn shr_exponent(x: __m256i) -> __m256i = _mm256_srai_epi32::<23>(x);
        fn half_bits(x: __m256i) -> __m256i = _mm256_srai_epi32::<1>(x);
        fn bits_to_float(x: __m256i) -> __m256 = _mm256_cvtepi32_ps(x);
        fn shr_pairs(x: __m256i, count: u32) -> __m256i = _mm256_srl_epi16(x, _mm_cvtsi32_si128(count as i32));
        fn eq_pairs(a: __m256i, b: __m256i) -> __m256i = _mm256_cmpeq_epi16(a, b);
        fn dot_pairs(a: __m256i, b: __m256i, sum: __m256i) -> __m256i = _mm256_add_epi32(_mm256_madd_epi16(a, b), sum);
    }

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: a value of `Self` is made only where the CPU has the features.
        unsafe { run(kernel) }
    }

    #[inline(always)]
    fn prefetch(self, from: *const f32) {
        // SAFETY: a hint, which touches no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) };
    }

    #[inline(always)]
    unsafe fn load_ptr(self, from: *const f32) -> __m256 {
        // SAFETY: as in `intrinsics!`; the caller says that 8 values are readable.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn load_bytes(self, from: *const u8) -> __m256i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_signed_bytes(self, from: *const u8) -> __m256i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { _mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_pairs(self, from: *const u8) -> __m256i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { _mm256_cvtepu8_epi16(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_signed_pairs(self, from: *const u8) -> __m256i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store_ptr(self, values: __m256, to: *mut f32) {
        // SAFETY: as in `intrinsics!`; the caller says that 8 values are writable.
        unsafe { _mm256_storeu_ps(to, values) }
    }

    #[inline(always)]
    unsafe fn transpose4(
        self,
        from: *const f32,
        from_stride: usize,
        to: *mut f32,
        to_stride: usize,
    ) {
        // SAFETY: the caller's promise is that of the function called; SSE is everywhere.
        unsafe { super::sse2::transpose4(from, from_stride, to, to_stride) }
    }

    #[inline(always)]
    fn load_first(self, from: &[f32], fill: f32) -> __m256 {
        // SAFETY: as in `intrinsics!`; lanes beyond the slice are masked and not read.
        unsafe {
            let mask = mask(from.len());
            let values = _mm256_maskload_ps(from.as_ptr(), mask);
            _mm256_blendv_ps(_mm256_set1_ps(fill), values, _mm256_castsi256_ps(mask))
        }
    }

    #[inline(always)]
    fn store_first(self, values: __m256, to: &mut [f32]) {
        // SAFETY: as in `intrinsics!`; lanes beyond the slice are masked and not written.
        unsafe { _mm256_maskstore_ps(to.as_mut_ptr(), mask(to.len()), values) }
    }
}

/// Ones in the first `count` lanes, or in all of them.
///
/// # Safety
/// The CPU must have AVX.
#[inline(always)]
#[allow(unused_unsafe)] // Where the build's own target features include it.
unsafe fn mask(count: usize) -> __m256i {
    const ONES_THEN_ZEROS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    let from = &ONES_THEN_ZEROS[8 - count.min(8)..][..8];
    // SAFETY: the slice has the 8 values that are read; the caller says that there is AVX.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

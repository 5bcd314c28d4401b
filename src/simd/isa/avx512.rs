//! AVX-512 (F, BW, DQ, VL): 16 numbers, mask registers, scaling by powers of two in one step.

use super::{Isa, Kernel, intrinsics};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(super) struct Avx512(());

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512(()))
}

impl Isa for Avx512 {
    type F32 = __m512;
    type Bits = __m512i;
    type Mask = __mmask16;
    const TILE_ROWS: usize = 12;
    const BROADCASTS_ROWS: bool = true;
    const MANY_REGISTERS: bool = true;
    const LANES: usize = 16;

    intrinsics! {
        fn splat(value: f32) -> __m512 = _mm512_set1_ps(value);
        fn splat_bits(value: i32) -> __m512i = _mm512_set1_epi32(value);
        fn add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        fn sub(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps(a, b);
        fn mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        fn div(a: __m512, b: __m512) -> __m512 = _mm512_div_ps(a, b);
        fn sqrt(x: __m512) -> __m512 = _mm512_sqrt_ps(x);
        fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        fn neg_mul_add(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fnmadd_ps(a, b, c);
        // The instruction gives its second operand where either is NaN.
        fn max(a: __m512, b: __m512) -> __m512 = _mm512_mask_blend_ps(
            _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), _mm512_max_ps(a, b), a);
        fn min(a: __m512, b: __m512) -> __m512 = _mm512_mask_blend_ps(
            _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), _mm512_min_ps(a, b), a);
        fn at_least(x: __m512, bound: __m512) -> __m512 = _mm512_max_ps(bound, x);
        fn at_most(x: __m512, bound: __m512) -> __m512 = _mm512_min_ps(bound, x);
        fn lt(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b);
        fn ge(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(a, b);
        fn eq(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b);
        fn select(mask: __mmask16, a: __m512, b: __m512) -> __m512 = _mm512_mask_blend_ps(mask, b, a);
        fn to_bits(x: __m512) -> __m512i = _mm512_castps_si512(x);
        fn reinterpret(x: __m512i) -> __m512 = _mm512_castsi512_ps(x);
        fn add_bits(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(a, b);
        fn sub_bits(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi32(a, b);
        fn and_bits(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
        fn xor_bits(a: __m512i, b: __m512i) -> __m512i = _mm512_xor_si512(a, b);
        fn shl_bits(x: __m512i, count: u32) -> __m512i = _mm512_sll_epi32(x, _mm_cvtsi32_si128(count as i32));
        fn shr_bits(x: __m512i, count: u32) -> __m512i = _mm512_srl_epi32(x, _mm_cvtsi32_si128(count as i32));
        fn shl_exponent(x: __m512i) -> __m512i = _mm512_slli_epi32::<23>(x);
        fn shr_exponent(x: __m512i) -> __m512i = _mm512_srai_epi32::<23>(x);
        fn half_bits(x: __m512i) -> __m512i = _mm512_srai_epi32::<1>(x);
        fn bits_to_float(x: __m512i) -> __m512 = _mm512_cvtepi32_ps(x);
        fn shr_pairs(x: __m512i, count: u32) -> __m512i = _mm512_srl_epi16(x, _mm_cvtsi32_si128(count as i32));
        fn eq_pairs(a: __m512i, b: __m512i) -> __m512i = _mm512_movm_epi16(_mm512_cmpeq_epi16_mask(a, b));
        fn dot_pairs(a: __m512i, b: __m512i, sum: __m512i) -> __m512i = _mm512_add_epi32(_mm512_madd_epi16(a, b), sum);
    }

    #[inline(always)]
    fn scale_exp2(self, p: __m512, shifted: __m512) -> __m512 {
        // SAFETY: as in `intrinsics!`.
        unsafe { _mm512_scalef_ps(p, self.rounded(shifted)) }
    }

    #[inline(always)]
    fn scale_exp2_down(self, p: __m512, shifted: __m512) -> __m512 {
        self.scale_exp2(p, shifted)
    }

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: a value of `Self` is made only where the CPU has the features.
        unsafe { run(kernel) }
    }

    #[inline(always)]
    fn call_narrow<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: AVX-512 is available only where AVX2 with its features is.
        unsafe { super::avx2::run(kernel) }
    }

    #[inline(always)]
    fn prefetch(self, from: *const f32) {
        // SAFETY: a hint, which touches no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) };
    }

    #[inline(always)]
    unsafe fn load_ptr(self, from: *const f32) -> __m512 {
        // SAFETY: as in `intrinsics!`; the caller says that 16 values are readable.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn load_bytes(self, from: *const u8) -> __m512i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_signed_bytes(self, from: *const u8) -> __m512i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { _mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_pairs(self, from: *const u8) -> __m512i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { _mm512_cvtepu8_epi16(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_signed_pairs(self, from: *const u8) -> __m512i {
        // SAFETY: the caller says that the bytes are readable.
        unsafe { _mm512_cvtepi8_epi16(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store_ptr(self, values: __m512, to: *mut f32) {
        // SAFETY: as in `intrinsics!`; the caller says that 16 values are writable.
        unsafe { _mm512_storeu_ps(to, values) }
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
    fn load_first(self, from: &[f32], fill: f32) -> __m512 {
        // SAFETY: as in `intrinsics!`; lanes beyond the slice are masked and not read.
        unsafe { _mm512_mask_loadu_ps(_mm512_set1_ps(fill), mask(from.len()), from.as_ptr()) }
    }

    #[inline(always)]
    fn store_first(self, values: __m512, to: &mut [f32]) {
        // SAFETY: as in `intrinsics!`; lanes beyond the slice are masked and not written.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), mask(to.len()), values) }
    }
}

/// Returns the mask of the first `count` lanes, or of all lanes if `count` is larger.
#[inline(always)]
fn mask(count: usize) -> __mmask16 {
    ((1_u32 << count.min(16)) - 1) as __mmask16
}

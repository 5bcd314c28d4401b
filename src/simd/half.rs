//! f16 numbers become f32, exactly.

use super::isa::{Isa, constant, constant_bits};

/// The numbers of the f16 in the upper halves of integers.
#[inline(always)]
pub(super) fn widen<I: Isa>(isa: I, bits: I::Bits) -> I::F32 {
    /// The exclusive or of the exponents of 2¹⁶ and of infinity.
    const TO_INFINITY: i32 = (0xff ^ (127 + 16)) << 23;
    let finite = widen_finite_magnitude(isa, bits);
    let special = isa.xor_bits(isa.to_bits(finite), constant_bits!(isa, TO_INFINITY));
    let beyond = isa.ge(finite, constant!(isa, 65_536.0));
    let magnitude = isa.select(beyond, isa.reinterpret(special), finite);
    isa.with_sign(magnitude, isa.reinterpret(bits))
}

/// The numbers of the finite f16 in the upper halves of integers, in fewer instructions than [`widen`].
#[inline(always)]
pub(super) fn widen_finite<I: Isa>(isa: I, bits: I::Bits) -> I::F32 {
    isa.with_sign(widen_finite_magnitude(isa, bits), isa.reinterpret(bits))
}

/// The digits and the exponent where f32 has them, times the difference of the exponents' biases;
/// this makes subnormal numbers right, too.
#[inline(always)]
fn widen_finite_magnitude<I: Isa>(isa: I, bits: I::Bits) -> I::F32 {
    /// 2¹¹².
    const REBIAS: f32 = f32::from_bits((127 + 112) << 23);
    let digits = isa.and_bits(isa.shr_bits(bits, 3), constant_bits!(isa, 0x0fff_e000));
    isa.mul(isa.reinterpret(digits), constant!(isa, REBIAS))
}

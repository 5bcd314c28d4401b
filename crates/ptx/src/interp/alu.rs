//! Instructions of one thread that turn registers into a register.

use crate::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::types::PtxType;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Alu {
    Add,
    Sub,
    MulLo,
    MulHi,
    MulWide,
    Mad,
    MadWide,
    Div,
    Rem,
    Min,
    Max,
    And,
    Or,
    Xor,
    Not,
    Shl,
    Shr,
    Bfe,
    Prmt,
    Dp4a,
    Neg,
    Abs,
    Sqrt,
    Rcp,
    Rsqrt,
    Ex2,
    Lg2,
    Set(Compare),
    Selp,
    Mov,
    /// A conversion from this type to the instruction's type.
    Cvt(PtxType),
    /// A conversion of two numbers into the halves of a word, the first into the upper one.
    CvtPair,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    fn holds<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self {
            Compare::Eq => a == b,
            Compare::Ne => a != b,
            Compare::Lt => a < b,
            Compare::Le => a <= b,
            Compare::Gt => a > b,
            Compare::Ge => a >= b,
        }
    }
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits_of(value: f32) -> u64 {
    value.to_bits().into()
}

/// Computes `op` on operands of type `ty`, and returns the bits of the result register.
pub(super) fn evaluate(op: Alu, ty: PtxType, [a, b, c]: [u64; 3]) -> Result<u64, String> {
    match (op, ty) {
        (Alu::Mov, _) => Ok(truncate(ty, a)),
        (Alu::Selp, _) => Ok(truncate(ty, if c & 1 == 1 { a } else { b })),
        (Alu::Cvt(from), _) => convert(ty, from, a),
        (Alu::CvtPair, PtxType::F16x2) => Ok(pair(f32_to_f16(f32_of(a)), f32_to_f16(f32_of(b)))),
        (Alu::CvtPair, _) => Ok(pair(f32_to_bf16(f32_of(a)), f32_to_bf16(f32_of(b)))),
        (Alu::Set(compare), PtxType::F32) => Ok(compare.holds(&f32_of(a), &f32_of(b)).into()),
        (Alu::Set(compare), PtxType::F64) => {
            Ok(compare.holds(&f64::from_bits(a), &f64::from_bits(b)).into())
        }
        (_, PtxType::F32) => real32(op, f32_of(a), f32_of(b), f32_of(c)).map(bits_of),
        (_, PtxType::F64) => {
            let (a, b, c) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
            real64(op, a, b, c).map(f64::to_bits)
        }
        (Alu::Prmt, _) => Ok(permute(a, b, c)),
        (Alu::Dp4a, _) => Ok(dot_bytes(a, b, c)),
        (Alu::MulWide | Alu::MadWide, _) => {
            let product = integer(ty, a).wrapping_mul(integer(ty, b));
            let sum = if op == Alu::MadWide { c } else { 0 };
            let wide = ty.doubled().unwrap_or(PtxType::U64);
            Ok(truncate(wide, (product as u64).wrapping_add(sum)))
        }
        _ => whole(op, ty, a, b, c),
    }
}

fn pair(high: u16, low: u16) -> u64 {
    u64::from(high) << 16 | u64::from(low)
}

/// Truncates bits to the size of a register of type `ty`.
pub(super) fn truncate(ty: PtxType, bits: u64) -> u64 {
    match ty.bytes() {
        0 => bits & 1,
        1 => bits & 0xff,
        2 => bits & 0xffff,
        4 => bits & 0xffff_ffff,
        _ => bits,
    }
}

/// Interprets bits as an integer of type `ty`.
fn integer(ty: PtxType, bits: u64) -> i128 {
    match ty {
        PtxType::S8 => i128::from(bits as i8),
        PtxType::S16 => i128::from(bits as i16),
        PtxType::S32 => i128::from(bits as i32),
        PtxType::S64 => i128::from(bits as i64),
        _ => i128::from(truncate(ty, bits)),
    }
}

fn whole(op: Alu, ty: PtxType, a: u64, b: u64, c: u64) -> Result<u64, String> {
    let (x, y, z) = (integer(ty, a), integer(ty, b), integer(ty, c));
    let bits = ty.bytes() * 8;
    let amount = (b & 0xffff_ffff).min(127) as u32;
    let value = match op {
        Alu::Add => x.wrapping_add(y),
        Alu::Sub => x.wrapping_sub(y),
        Alu::MulLo => x.wrapping_mul(y),
        Alu::MulHi => x.wrapping_mul(y) >> bits,
        Alu::Mad => x.wrapping_mul(y).wrapping_add(z),
        Alu::Div | Alu::Rem if y == 0 => return Err("division by zero".to_owned()),
        Alu::Div => x / y,
        Alu::Rem => x % y,
        Alu::Min => x.min(y),
        Alu::Max => x.max(y),
        Alu::And => x & y,
        Alu::Or => x | y,
        Alu::Xor => x ^ y,
        Alu::Not => !x,
        // Shifts by at least the width leave zero, or the sign.
        Alu::Shl => {
            if amount >= bits {
                0
            } else {
                x << amount
            }
        }
        Alu::Shr => x >> amount,
        // Signed types are not supported. Position and length are the low bytes of their registers.
        Alu::Bfe if matches!(ty, PtxType::U32 | PtxType::U64) => {
            (x >> (b & 0xff).min(127)) & ((1 << (c & 0xff).min(64)) - 1)
        }
        Alu::Neg => -x,
        Alu::Abs => x.abs(),
        Alu::Set(compare) => compare.holds(&x, &y).into(),
        _ => return Err(format!("the interpreter has no such instruction for {ty}")),
    };
    Ok(truncate(
        if matches!(op, Alu::Set(_)) {
            PtxType::Pred
        } else {
            ty
        },
        value as u64,
    ))
}

/// Implements operations on floating-point types.
macro_rules! real {
    ($op:expr, $a:expr, $b:expr, $c:expr) => {
        match $op {
            Alu::Add => Some($a + $b),
            Alu::Sub => Some($a - $b),
            Alu::MulLo => Some($a * $b),
            Alu::Mad => Some($a.mul_add($b, $c)),
            Alu::Div => Some($a / $b),
            Alu::Min => Some($a.min($b)),
            Alu::Max => Some($a.max($b)),
            Alu::Neg => Some(-$a),
            Alu::Abs => Some($a.abs()),
            Alu::Sqrt => Some($a.sqrt()),
            Alu::Rcp => Some(1.0 / $a),
            _ => None,
        }
    };
}

fn real32(op: Alu, a: f32, b: f32, c: f32) -> Result<f32, String> {
    let value = match op {
        Alu::Rsqrt => Some((1.0 / f64::from(a).sqrt()) as f32),
        // Denormal results are flushed to zero.
        Alu::Ex2 => Some(flush(f64::from(a).exp2() as f32)),
        Alu::Lg2 => Some(f64::from(a).log2() as f32),
        _ => real!(op, a, b, c),
    };
    value.ok_or_else(|| "the interpreter has no such instruction for f32".to_owned())
}

fn flush(value: f32) -> f32 {
    if value.is_subnormal() { 0.0 } else { value }
}

fn real64(op: Alu, a: f64, b: f64, c: f64) -> Result<f64, String> {
    real!(op, a, b, c).ok_or_else(|| "the interpreter has no such instruction for f64".to_owned())
}

fn convert(to: PtxType, from: PtxType, a: u64) -> Result<u64, String> {
    use PtxType::{BF16, F16, F32, S32, TF32};
    Ok(match (to, from) {
        (F32, F16) => bits_of(f16_to_f32(a as u16)),
        (F32, BF16) => bits_of(bf16_to_f32(a as u16)),
        (F16, F32) => f32_to_f16(f32_of(a)).into(),
        (BF16, F32) => f32_to_bf16(f32_of(a)).into(),
        // Round off 13 bits; ties away from zero.
        (TF32, F32) if !f32_of(a).is_finite() => a,
        (TF32, F32) => (a + 0x1000) & !0x1fff & 0xffff_ffff,
        (S32, F32) => truncate(S32, f32_of(a).round_ties_even() as i32 as u64),
        (F32, from) if from.is_integer() => bits_of(integer(from, a) as f32),
        (to, from) if to.is_integer() && from.is_integer() => truncate(to, integer(from, a) as u64),
        _ => return Err(format!("cvt.{to}.{from} is not known")),
    })
}

/// Computes `prmt`: each nibble of `selector` selects one of eight bytes, or its sign.
fn permute(a: u64, b: u64, selector: u64) -> u64 {
    let bytes = (a & 0xffff_ffff) | b << 32;
    (0..4).fold(0, |word, i| {
        let nibble = (selector >> (4 * i)) & 0xf;
        let byte = (bytes >> (8 * (nibble & 7))) & 0xff;
        let sign = if byte & 0x80 == 0 { 0 } else { 0xff };
        word | (if nibble & 8 == 0 { byte } else { sign }) << (8 * i)
    })
}

fn dot_bytes(a: u64, b: u64, c: u64) -> u64 {
    let sum = (0..4).fold(c as i32, |sum, i| {
        let byte = |word: u64| i32::from((word >> (8 * i)) as i8);
        sum.wrapping_add(byte(a) * byte(b))
    });
    u64::from(sum as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_fields_are_by_low_bytes() {
        for (position, length, expected) in [
            (4, 8, 0x67),
            (0x100 + 4, 8, 0x67),
            (4, 0x100 + 8, 0x67),
            (4, 0x100, 0),
            (28, 200, 1),
            (0, 255, 0x1234_5678),
            (40, 8, 0),
            (255, 255, 0),
        ] {
            let word = 0x1234_5678;
            let bits = evaluate(Alu::Bfe, PtxType::U32, [word, position, length]);
            assert_eq!(bits, Ok(expected), "{position}, {length}");
        }
        let signed = evaluate(Alu::Bfe, PtxType::S32, [u64::MAX, 0, 4]);
        assert!(signed.is_err(), "{signed:?}");
    }
}

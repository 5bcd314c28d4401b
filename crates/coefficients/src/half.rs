//! Conversions of 16-bit floating-point numbers, rounding to nearest, ties to even.

/// Converts IEEE binary16 bits to `f32`.
#[inline]
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let (exponent, fraction) = (u32::from(bits >> 10) & 0x1f, u32::from(bits & 0x3ff));
    match exponent {
        // Subnormal: fraction · 2⁻²⁴, exact in f32.
        0 => {
            let magnitude = fraction as f32 * f32::from_bits((127 - 24) << 23);
            f32::from_bits(magnitude.to_bits() | sign)
        }
        0x1f => f32::from_bits(sign | 0x7f80_0000 | (fraction << 13)),
        _ => f32::from_bits(sign | ((exponent + 127 - 15) << 23) | (fraction << 13)),
    }
}

/// Returns the bits of the IEEE binary16 number nearest to `value`.
#[inline]
pub fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7fff;
    }
    // Numbers of at least 65520 round to infinity.
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    // Numbers below 2⁻¹⁴ round to multiples of 2⁻²⁴: adding 0.5 leaves those in the low bits.
    if magnitude < 0x3880_0000 {
        let rounded = f32::from_bits(magnitude) + 0.5;
        return sign | (rounded.to_bits() - 0.5f32.to_bits()) as u16;
    }
    let rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    sign | ((rounded - ((127 - 15) << 23)) >> 13) as u16
}

/// Converts bfloat16 bits to `f32`.
#[inline]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Returns the bits of the bfloat16 number nearest to `value`.
#[inline]
pub fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return 0x7fff;
    }
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_to_f32_and_back() {
        for bits in 0..=u16::MAX {
            let nan = bits & 0x7fff > 0x7c00;
            let f16 = f16_to_f32(bits);
            assert!(
                if nan {
                    f16.is_nan()
                } else {
                    f32_to_f16(f16) == bits
                },
                "{bits:#x}"
            );
            let nan = bits & 0x7fff > 0x7f80;
            let bf16 = bf16_to_f32(bits);
            assert!(
                if nan {
                    bf16.is_nan()
                } else {
                    f32_to_bf16(bf16) == bits
                },
                "{bits:#x}"
            );
        }
    }

    #[test]
    fn ties_go_to_even() {
        assert_eq!(f32_to_f16(1.0 + 1.0 / 2048.0), 0x3c00);
        assert_eq!(f32_to_f16(1.0 + 3.0 / 2048.0), 0x3c02);
        assert_eq!(f32_to_f16(65519.0), 0x7bff);
        assert_eq!(f32_to_f16(65520.0), 0x7c00);
        assert_eq!(f32_to_f16(f32::from_bits(0x3300_0000)), 0); // 2⁻²⁵, between 0 and 2⁻²⁴
        assert_eq!(f32_to_bf16(f32::from_bits(0x3f80_8000)), 0x3f80);
        assert_eq!(f32_to_bf16(f32::from_bits(0x3f81_8000)), 0x3f82);
    }
}

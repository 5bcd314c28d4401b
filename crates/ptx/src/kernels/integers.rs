//! Runs of numbers as integers, whose bytes tensor cores multiply exactly.

use super::common::{Combine, over_lanes};
use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::types::PtxType::{B32, F32, U32};

/// The scale of a run of numbers, which some consecutive lanes share.
pub(super) struct RunScale {
    /// The power of two that makes the numbers integers.
    pub(super) factor: Reg,
    /// Its inverse; NaN if the sum of the run is not finite.
    pub(super) unit: Reg,
    /// The sum of the run.
    pub(super) total: Reg,
}

impl RunScale {
    /// The scale that brings a run's numbers, of which each of `lanes` lanes has some, below 2 to the power of `bits` + 1.
    pub(super) fn new(k: &mut Builder, values: &[Reg], lanes: u32, bits: u32) -> Self {
        // The largest magnitude; a little more, so that the upper digit does not overflow, and
        // not so little that the factor does.
        let largest = k.value(F32, 1e-30f32);
        for &value in values {
            let size = k.abs(value);
            Combine::Max.apply(k, largest, size);
        }
        let largest = over_lanes(k, Combine::Max, largest, lanes);
        let largest = k.mul(largest, 1.0 + 1.0 / 64.0);
        let total = k.value(F32, values[0]);
        for &value in &values[1..] {
            k.add_assign(total, value);
        }
        let total = over_lanes(k, Combine::Sum, total, lanes);
        let exponent = [largest.into(), 0x7f80_0000.into()];
        let exponent = k.op(Op::And, B32, U32, &exponent);
        let inverse = k.sub(exponent, bits << 23);
        let twice = k.value(U32, (127 + 127 + bits) << 23);
        let factor = k.sub(twice, exponent);
        let [factor, unit] = [factor, inverse].map(|bits| k.op(Op::Mov, B32, F32, &[bits.into()]));
        // A sum that is not finite shows in no digit, but in the unit.
        let unit = k.fma(total, 0.0f32, unit);
        Self {
            factor,
            unit,
            total,
        }
    }
}

/// Returns the bytes of this index, 0 to 3, of four words.
pub(super) fn four_bytes(k: &mut Builder, words: [Reg; 4], index: u32) -> Reg {
    let mut select =
        |a: Reg, b: Reg, which: u32| k.op(Op::Prmt, B32, B32, &[a.into(), b.into(), which.into()]);
    let both = index | (4 + index) << 4;
    let (low, high) = (
        select(words[0], words[1], both),
        select(words[2], words[3], both),
    );
    select(low, high, 0x5410)
}

//! Loads and stores of any floating-point type, converted to f32 in registers.

use super::gemm::{narrow, widen};
use crate::build::Builder;
use crate::error::{Error, Result};
use crate::inst::{Op, Reg};
use crate::types::PtxType::{self, BF16, F16, F32};
use crate::types::Target;

/// Checks that kernels support this type.
pub(super) fn check(ty: PtxType) -> Result<()> {
    if matches!(ty, F32 | F16 | BF16) {
        return Ok(());
    }
    Err(Error::invalid("type", ty.name(), "f32, f16 or bf16"))
}

/// Checks that this is a 16-bit type of Ampere's tensor cores.
pub(super) fn check_half(ty: PtxType) -> Result<()> {
    if matches!(ty, F16 | BF16) {
        return Ok(());
    }
    Err(Error::invalid("type", ty.name(), "f16 or bf16"))
}

/// Returns the oldest target that has conversions to this type.
pub(super) fn first_target(ty: PtxType) -> Target {
    if ty == BF16 {
        Target::Sm80
    } else {
        Target::Sm70
    }
}

/// Loads one, two or four elements from memory that the kernel may write later.
pub(super) fn load(k: &mut Builder, ty: PtxType, count: usize, from: Reg) -> Vec<Reg> {
    let values = match count {
        1 => vec![k.ld(Op::LdGlobal, ty, from, 0)],
        _ => k.ld_vector(Op::LdGlobal, ty, count, from, 0),
    };
    values.into_iter().map(|value| widen(k, value)).collect()
}

/// Rounds and stores one, two or four elements.
pub(super) fn store(k: &mut Builder, ty: PtxType, values: &[Reg], to: Reg) {
    let values: Vec<Reg> = values.iter().map(|&value| narrow(k, ty, value)).collect();
    match values.as_slice() {
        [one] => k.st_global(ty, to, 0, *one),
        many => k.st_global(ty, to, 0, many),
    }
}

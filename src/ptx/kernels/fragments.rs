//! Fragments of matrices as `mma.sync` takes them.

use crate::ptx::build::Builder;
use crate::ptx::inst::{Op, Operand, Reg};
use crate::ptx::types::PtxType::{self, B32, BF16, F32};

/// Four 8 × 8 matrices of 16-bit values, by `LdMatrix4` or `LdMatrix4Trans`, `offset` bytes after the
/// address.
pub(super) fn load_matrices(k: &mut Builder, op: Op, address: Reg, offset: u32) -> Vec<Reg> {
    let to = k.regs(B32, 4);
    let from = [Operand::At(address, offset as i32)];
    k.emit(op, B32, &[to.as_slice().into()], &from);
    to
}

/// `sums += a · b` of 16 × 8 sums; f32 as tf32.
pub(super) fn multiply(k: &mut Builder, ty: PtxType, sums: &[Reg], a: &[Reg], b: &[Reg]) {
    let op = match ty {
        BF16 => Op::MmaBf16,
        F32 => Op::MmaTf32,
        _ => Op::MmaF16,
    };
    k.emit(op, B32, &[sums.into()], &[a.into(), b.into(), sums.into()]);
}

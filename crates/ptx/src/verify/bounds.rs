//! Checks that accesses at an array's address plus a constant are within the array.

use super::super::code::{Code, Inst};
use super::super::error::{Error, Result};
use super::super::inst::{Op, Operand, Reg};
use super::super::kernel::PtxKernel;

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    let code = &kernel.code;
    // The registers that hold the address of an array.
    let mut arrays: Vec<(Reg, usize)> = Vec::new();
    for inst in code.insts() {
        match inst.op {
            Op::MovShared => {
                if let Some(Operand::Shared(array)) = code.from(inst).next() {
                    arrays.extend(code.regs_of(inst).0.iter().map(|reg| (*reg, array)));
                }
            }
            Op::LdShared | Op::StShared => access(kernel, inst, &arrays)?,
            _ => {}
        }
    }
    Ok(())
}

fn access(kernel: &PtxKernel, inst: &Inst, arrays: &[(Reg, usize)]) -> Result<()> {
    let code = &kernel.code;
    let Some(Operand::At(base, offset)) = code.from(inst).next() else {
        return Ok(());
    };
    let Some((_, array)) = arrays.iter().find(|(reg, _)| reg.id == base.id) else {
        return Ok(());
    };
    let array = &kernel.shared[*array];
    // All operands except the address are elements.
    let count = code.group(inst).unwrap_or(1);
    let from = i64::from(offset);
    let to = from + count as i64 * i64::from(inst.ty.bytes());
    let is_within = from >= 0 && to <= i64::from(array.bytes);
    if is_within || !is_written_once(code, base) {
        return Ok(());
    }
    Err(Error::SharedBounds {
        kernel: kernel.name.clone(),
        array: array.name.clone(),
        from,
        to,
        bytes: array.bytes,
    })
}

/// Whether only one instruction writes a register.
fn is_written_once(code: &Code, reg: Reg) -> bool {
    let written = code.insts().iter().flat_map(|inst| code.regs_of(inst).0);
    written.filter(|to| to.id == reg.id).count() == 1
}

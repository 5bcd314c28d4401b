//! Registers are written on every path before they are read.

use super::super::emit;
use super::super::error::{Error, Result};
use super::super::inst::{Inst, Kind, Operand, Reg};
use super::super::kernel::{Node, PtxKernel};

/// Which registers have a value, by number.
type Written = Vec<bool>;

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    walk(kernel, &kernel.body, &mut Written::new())
}

fn walk(kernel: &PtxKernel, nodes: &[Node], written: &mut Written) -> Result<()> {
    for node in nodes {
        match node {
            Node::Inst(inst) => step(kernel, inst, written)?,
            Node::Comment(_) => {}
            Node::If {
                cond,
                then,
                otherwise,
            } => {
                read(kernel, *cond, "a branch", written)?;
                let mut other = written.clone();
                walk(kernel, then, written)?;
                walk(kernel, otherwise, &mut other)?;
                // What both paths wrote.
                written.truncate(other.len());
                for (a, b) in written.iter_mut().zip(other) {
                    *a &= b;
                }
            }
            Node::Loop { body, again } => {
                walk(kernel, body, written)?;
                read(kernel, *again, "a loop", written)?;
            }
        }
    }
    Ok(())
}

fn step(kernel: &PtxKernel, inst: &Inst, written: &mut Written) -> Result<()> {
    if let Some((cond, _)) = inst.guard {
        read(kernel, cond, "a guard", written)?;
    }
    let updates = inst
        .op
        .row()
        .to
        .iter()
        .any(|kind| matches!(kind, Kind::Sums(_)));
    let reads = inst.from.iter().chain(inst.to.iter().filter(|_| updates));
    for reg in reads.flat_map(Operand::regs) {
        if !is_written(reg, written) {
            return Err(error(kernel, reg, emit::instruction_text(inst)));
        }
    }
    // Under a guard a register keeps what it had, so it must have had something.
    if inst.guard.is_none() {
        for reg in inst.to.iter().flat_map(Operand::regs) {
            let id = reg.id as usize;
            if written.len() <= id {
                written.resize(id + 1, false);
            }
            written[id] = true;
        }
    }
    Ok(())
}

fn is_written(reg: Reg, written: &Written) -> bool {
    written.get(reg.id as usize).copied().unwrap_or(false)
}

fn read(kernel: &PtxKernel, reg: Reg, what: &str, written: &Written) -> Result<()> {
    if is_written(reg, written) {
        return Ok(());
    }
    Err(error(kernel, reg, what.to_owned()))
}

fn error(kernel: &PtxKernel, reg: Reg, instruction: String) -> Error {
    Error::Unwritten {
        kernel: kernel.name.clone(),
        instruction,
        ty: reg.ty,
    }
}

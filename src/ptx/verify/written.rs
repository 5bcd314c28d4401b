//! Registers are written on every path before they are read.

use super::super::code::{Inst, Node};
use super::super::emit;
use super::super::error::{Error, Result};
use super::super::inst::{Kind, Reg};
use super::super::kernel::PtxKernel;

/// Which registers have a value, by number.
type Written = Vec<bool>;

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    walk(
        kernel,
        &kernel.code.nodes,
        &mut vec![false; kernel.registers],
    )
}

fn walk(kernel: &PtxKernel, nodes: &[Node], written: &mut Written) -> Result<()> {
    for node in nodes {
        match node {
            Node::Run(run) => {
                for inst in &kernel.code.insts()[run.clone()] {
                    step(kernel, inst, written)?;
                }
            }
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
    let updates = matches!(inst.op.row().to, [Kind::Sums(_)]);
    let (to, from) = kernel.code.regs_of(inst);
    let reads = if updates { to } else { &[] };
    for reg in from.iter().chain(reads) {
        if !written[reg.id as usize] {
            let text = emit::instruction_text(&kernel.code, inst);
            return Err(error(kernel, *reg, text));
        }
    }
    // Under a guard a register keeps what it had, so it must have had something.
    if inst.guard.is_none() {
        for reg in to {
            written[reg.id as usize] = true;
        }
    }
    Ok(())
}

fn read(kernel: &PtxKernel, reg: Reg, what: &str, written: &Written) -> Result<()> {
    if written.get(reg.id as usize) == Some(&true) {
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

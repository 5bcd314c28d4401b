//! Checks that registers are written on every path before they are read.

use super::super::code::{Inst, Node};
use super::super::emit;
use super::super::error::{Error, Result};
use super::super::inst::{Reg, Traits};
use super::super::kernel::PtxKernel;
use super::set::Set;

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    walk(kernel, &kernel.code.nodes, &mut Set::new(kernel.registers))
}

fn walk(kernel: &PtxKernel, nodes: &[Node], written: &mut Set) -> Result<()> {
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
                // Keep the registers that both paths wrote.
                written.intersect(&other);
            }
            Node::Loop { body, again } => {
                walk(kernel, body, written)?;
                read(kernel, *again, "a loop", written)?;
            }
        }
    }
    Ok(())
}

fn step(kernel: &PtxKernel, inst: &Inst, written: &mut Set) -> Result<()> {
    if let Some((cond, _)) = inst.guard {
        read(kernel, cond, "a guard", written)?;
    }
    let (to, from) = kernel.code.regs_of(inst);
    let missing = |regs: &[Reg]| regs.iter().copied().find(|reg| !written.contains(reg.id));
    let mut unwritten = missing(from);
    if inst.op.row().has(Traits::MULTIPLIES) {
        unwritten = unwritten.or_else(|| missing(to));
    }
    if let Some(reg) = unwritten {
        let text = emit::instruction_text(&kernel.code, inst);
        return Err(error(kernel, reg, text));
    }
    // A guarded instruction may not write, so it does not initialise its result.
    if inst.guard.is_none() {
        for reg in to {
            written.insert(reg.id);
        }
    }
    Ok(())
}

fn read(kernel: &PtxKernel, reg: Reg, what: &str, written: &Set) -> Result<()> {
    if written.contains(reg.id) {
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

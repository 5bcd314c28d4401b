//! Checks that the accumulators and input registers of `wgmma` are not used until a wait for it.

use super::super::code::{Inst, Node};
use super::super::emit;
use super::super::error::{Error, Result};
use super::super::inst::{Op, Operand, Traits};
use super::super::kernel::PtxKernel;
use std::collections::HashSet;

/// The registers that tensor cores may still use: committed groups, oldest first, and last the open
/// group.
#[derive(Clone)]
struct Flight(Vec<HashSet<u32>>);

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    if !kernel.code.has(Traits::MULTIPLIES) {
        return Ok(());
    }
    walk(
        kernel,
        &kernel.code.nodes,
        &mut Flight(vec![HashSet::new()]),
    )
}

fn walk(kernel: &PtxKernel, nodes: &[Node], flight: &mut Flight) -> Result<()> {
    for node in nodes {
        match node {
            Node::Run(run) => {
                for inst in &kernel.code.insts()[run.clone()] {
                    step(kernel, inst, flight)?;
                }
            }
            Node::Comment(_) => {}
            Node::If {
                then, otherwise, ..
            } => {
                let mut other = flight.clone();
                walk(kernel, then, flight)?;
                walk(kernel, otherwise, &mut other)?;
                flight.join(other);
            }
            // Walk the body twice: the second round starts with the groups that the first one left
            // in progress.
            Node::Loop { body, .. } => {
                walk(kernel, body, flight)?;
                walk(kernel, body, flight)?;
            }
        }
    }
    Ok(())
}

impl Flight {
    /// Merges the groups of two paths, matched from the newest on.
    fn join(&mut self, other: Flight) {
        let missing = other.0.len().saturating_sub(self.0.len());
        self.0.splice(0..0, (0..missing).map(|_| HashSet::new()));
        let newest = self.0.len() - other.0.len();
        for (group, other) in self.0[newest..].iter_mut().zip(other.0) {
            group.extend(other);
        }
    }

    fn contains(&self, id: u32) -> bool {
        self.0.iter().any(|group| group.contains(&id))
    }
}

fn step(kernel: &PtxKernel, inst: &Inst, flight: &mut Flight) -> Result<()> {
    match inst.op {
        // Consecutive matmuls may use the same accumulator.
        op if op.row().has(Traits::MULTIPLIES) => {
            if let Some(open) = flight.0.last_mut() {
                for operand in kernel.code.operands(inst) {
                    if let Operand::Group(regs) = operand {
                        open.extend(regs.iter().map(|reg| reg.id));
                    }
                }
            }
            return Ok(());
        }
        Op::WgmmaCommit => flight.0.push(HashSet::new()),
        Op::WgmmaWait => {
            if let Some(Operand::Int(left)) = kernel.code.from(inst).next() {
                let done = flight.0.len().saturating_sub(left as usize + 1);
                flight.0.drain(..done);
            }
        }
        _ => {}
    }
    let (to, from) = kernel.code.regs_of(inst);
    let mut regs = to.iter().chain(from);
    if flight.0.iter().any(|group| !group.is_empty()) && regs.any(|reg| flight.contains(reg.id)) {
        return Err(Error::InFlight {
            kernel: kernel.name.clone(),
            instruction: emit::instruction_text(&kernel.code, inst),
        });
    }
    Ok(())
}

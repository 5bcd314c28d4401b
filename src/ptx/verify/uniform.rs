//! Threads that have to execute an instruction together reach it together.
//!
//! A register is as uniform as what it is computed from: the same in the whole block, in each
//! warp, or in no group. A branch is as uniform as its condition, and what is written under it
//! is no more uniform than the branch.

use super::super::emit;
use super::super::error::{Error, Result};
use super::super::inst::{Inst, Op, Operand, Reg, Special, Together};
use super::super::kernel::{Node, PtxKernel};

/// Where a value is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Same {
    InBlock,
    InWarp,
    Nowhere,
}

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    let mut uniformity = Uniformity {
        kernel,
        of: Vec::new(),
        thread_numbers: thread_numbers(kernel),
        changed: true,
    };
    // A loop's registers may depend on what is written later in the loop.
    while uniformity.changed {
        uniformity.changed = false;
        uniformity.walk(&kernel.body, Same::InBlock, |uniformity, inst, path| {
            uniformity.infer(inst, path);
            Ok(())
        })?;
    }
    uniformity.walk(&kernel.body, Same::InBlock, Uniformity::judge)
}

struct Uniformity<'a> {
    kernel: &'a PtxKernel,
    of: Vec<Same>,
    /// Registers that hold `%tid.x`.
    thread_numbers: Vec<u32>,
    changed: bool,
}

fn thread_numbers(kernel: &PtxKernel) -> Vec<u32> {
    let mut found = Vec::new();
    super::each(&kernel.body, &mut |inst| {
        let from = inst.from.first();
        if from == Some(&Operand::Special(Special::TidX)) {
            found.extend(inst.to.iter().flat_map(Operand::regs).map(|reg| reg.id));
        }
    });
    found
}

impl Uniformity<'_> {
    fn get(&self, reg: Reg) -> Same {
        self.of
            .get(reg.id as usize)
            .copied()
            .unwrap_or(Same::InBlock)
    }

    /// Calls `visit` with each instruction and how uniform the way there is.
    fn walk(
        &mut self,
        nodes: &[Node],
        path: Same,
        visit: fn(&mut Self, &Inst, Same) -> Result<()>,
    ) -> Result<()> {
        for node in nodes {
            match node {
                Node::Inst(inst) => visit(self, inst, path)?,
                Node::Comment(_) => {}
                Node::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let path = path.max(self.get(*cond));
                    self.walk(then, path, visit)?;
                    self.walk(otherwise, path, visit)?;
                }
                Node::Loop { body, again } => {
                    let path = path.max(self.get(*again));
                    self.walk(body, path, visit)?;
                }
            }
        }
        Ok(())
    }

    fn infer(&mut self, inst: &Inst, path: Same) {
        let same = self.result(inst).max(path);
        for reg in inst.to.iter().flat_map(Operand::regs) {
            let id = reg.id as usize;
            if self.of.len() <= id {
                self.of.resize(id + 1, Same::InBlock);
            }
            if self.of[id] < same {
                self.of[id] = same;
                self.changed = true;
            }
        }
    }

    fn result(&self, inst: &Inst) -> Same {
        let guard = inst.guard.map_or(Same::InBlock, |(cond, _)| self.get(cond));
        let regs = inst.from.iter().flat_map(Operand::regs);
        let inputs = regs.map(|reg| self.get(reg)).max().unwrap_or(Same::InBlock);
        let own = match inst.op {
            Op::MovSpecial => match inst.from.first() {
                Some(Operand::Special(Special::TidX | Special::TidY | Special::LaneId)) => {
                    Same::Nowhere
                }
                _ => Same::InBlock,
            },
            // The number of a warp, where threads are numbered along x alone.
            Op::Shr if self.is_warp_number(inst) => Same::InWarp,
            Op::VoteAll | Op::VoteAny => Same::InWarp,
            Op::ShflIdx if matches!(inst.from[1], Operand::Int(_)) => Same::InWarp,
            // Threads leave the wait at different times.
            Op::MbarrierTryWait => Same::InBlock,
            // Fragments differ from lane to lane.
            op if op.row().together() == Together::Warp && !inst.to.is_empty() => Same::Nowhere,
            _ => inputs,
        };
        own.max(guard)
    }

    fn is_warp_number(&self, inst: &Inst) -> bool {
        let by_warp = matches!(inst.from[1], Operand::Int(by) if by >= 5);
        let [_, y, z] = self.kernel.launch.block;
        by_warp && y == 1 && z == 1 && self.is_thread_number(&inst.from[0])
    }

    fn is_thread_number(&self, operand: &Operand) -> bool {
        matches!(operand, Operand::Reg(reg) if self.thread_numbers.contains(&reg.id))
    }

    fn judge(&mut self, inst: &Inst, path: Same) -> Result<()> {
        let path = path.max(inst.guard.map_or(Same::InBlock, |(cond, _)| self.get(cond)));
        let (allowed, group) = match inst.op.row().together() {
            Together::Alone => return Ok(()),
            Together::Warp => (Same::InWarp, "warp"),
            Together::Block => (Same::InBlock, "block"),
        };
        if path <= allowed {
            return Ok(());
        }
        Err(Error::Divergent {
            kernel: self.kernel.name.clone(),
            instruction: emit::instruction_text(inst),
            group,
        })
    }
}

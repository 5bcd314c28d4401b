//! Threads that have to execute an instruction together reach it together.
//!
//! A register is as uniform as what it is computed from: the same in the whole block, in each
//! warp, or in no group. A branch is as uniform as its condition, and what is written under it
//! is no more uniform than the branch. What follows the end of some threads is no more uniform than
//! the way to that end.

use super::super::code::{Inst, Node};
use super::super::emit;
use super::super::error::{Error, Result};
use super::super::inst::{Op, Operand, Reg, Special, Together};
use super::super::kernel::PtxKernel;

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
        of: vec![Same::InBlock; kernel.registers],
        thread_numbers: thread_numbers(kernel),
        left: Same::InBlock,
        changed: true,
    };
    // A loop's registers may depend on what is written later in the loop.
    while uniformity.changed {
        uniformity.changed = false;
        uniformity.walk_all(|uniformity, inst, path| {
            uniformity.infer(inst, path);
            Ok(())
        })?;
    }
    uniformity.walk_all(Uniformity::judge)
}

struct Uniformity<'a> {
    kernel: &'a PtxKernel,
    of: Vec<Same>,
    /// Registers that hold `%tid.x`.
    thread_numbers: Vec<u32>,
    /// Which threads have not ended so far.
    left: Same,
    changed: bool,
}

fn thread_numbers(kernel: &PtxKernel) -> Vec<u32> {
    let code = &kernel.code;
    let specials = code.insts().iter().filter(|i| i.op == Op::MovSpecial);
    let threads =
        specials.filter(|inst| code.from(inst).next() == Some(Operand::Special(Special::TidX)));
    let regs = threads.flat_map(|inst| code.regs_of(inst).0);
    regs.map(|reg| reg.id).collect()
}

impl Uniformity<'_> {
    fn get(&self, reg: Reg) -> Same {
        self.of[reg.id as usize]
    }

    /// Calls `visit` with each instruction and how uniform the way there is.
    fn walk_all(&mut self, visit: fn(&mut Self, &Inst, Same) -> Result<()>) -> Result<()> {
        self.left = Same::InBlock;
        self.walk(&self.kernel.code.nodes, Same::InBlock, visit)
    }

    fn walk(
        &mut self,
        nodes: &[Node],
        path: Same,
        visit: fn(&mut Self, &Inst, Same) -> Result<()>,
    ) -> Result<()> {
        for node in nodes {
            match node {
                Node::Run(run) => {
                    for inst in &self.kernel.code.insts()[run.clone()] {
                        let path = path.max(self.left);
                        visit(self, inst, path)?;
                        if inst.op == Op::Ret {
                            self.left = path.max(self.guard(inst));
                        }
                    }
                }
                Node::Comment(_) => {}
                Node::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let path = path.max(self.get(*cond));
                    let before = self.left;
                    self.walk(then, path, visit)?;
                    // Threads that ended there would not have come here.
                    let ended = std::mem::replace(&mut self.left, before);
                    self.walk(otherwise, path, visit)?;
                    self.left = self.left.max(ended);
                }
                Node::Loop { body, again } => {
                    let path = path.max(self.get(*again));
                    let before = self.left;
                    self.walk(body, path, visit)?;
                    // Threads that end in the loop are missing where it begins anew.
                    if self.left != before {
                        self.walk(body, path, visit)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn guard(&self, inst: &Inst) -> Same {
        inst.guard.map_or(Same::InBlock, |(cond, _)| self.get(cond))
    }

    fn infer(&mut self, inst: &Inst, path: Same) {
        let same = self.result(inst).max(path);
        for reg in self.kernel.code.regs_of(inst).0 {
            let id = reg.id as usize;
            if self.of[id] < same {
                self.of[id] = same;
                self.changed = true;
            }
        }
    }

    fn result(&self, inst: &Inst) -> Same {
        let code = &self.kernel.code;
        let (to, from) = code.regs_of(inst);
        let inputs = from.iter().map(|reg| self.get(*reg));
        let inputs = inputs.max().unwrap_or(Same::InBlock);
        let own = match inst.op {
            Op::MovSpecial => match code.from(inst).next() {
                Some(Operand::Special(Special::TidX | Special::TidY | Special::LaneId)) => {
                    Same::Nowhere
                }
                _ => Same::InBlock,
            },
            // The number of a warp, where threads are numbered along x alone.
            Op::Shr if self.is_warp_number(inst) => Same::InWarp,
            Op::VoteAll | Op::VoteAny => Same::InWarp,
            Op::ShflIdx if matches!(code.from(inst).nth(1), Some(Operand::Int(_))) => Same::InWarp,
            // Threads leave the wait at different times.
            Op::MbarrierTryWait => Same::InBlock,
            // Fragments differ from lane to lane.
            op if op.row().together == Together::Warp && !to.is_empty() => Same::Nowhere,
            _ => inputs,
        };
        own.max(self.guard(inst))
    }

    fn is_warp_number(&self, inst: &Inst) -> bool {
        let mut from = self.kernel.code.from(inst);
        let (Some(Operand::Reg(of)), Some(Operand::Int(5..))) = (from.next(), from.next()) else {
            return false;
        };
        let [_, y, z] = self.kernel.launch.block;
        y == 1 && z == 1 && self.thread_numbers.contains(&of.id)
    }

    fn judge(&mut self, inst: &Inst, path: Same) -> Result<()> {
        let path = path.max(self.guard(inst));
        let (allowed, group) = match inst.op.row().together {
            Together::Alone => return Ok(()),
            Together::Warp => (Same::InWarp, "warp"),
            Together::Block => (Same::InBlock, "block"),
        };
        if path <= allowed {
            return Ok(());
        }
        Err(Error::Divergent {
            kernel: self.kernel.name.clone(),
            instruction: emit::instruction_text(&self.kernel.code, inst),
            group,
        })
    }
}

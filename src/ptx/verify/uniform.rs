//! Threads that have to execute an instruction together reach it together.
//!
//! A register is as uniform as what it is computed from: the same in the whole block, in each
//! warp, or in no group. A branch is as uniform as its condition, and what is written under it
//! is no more uniform than the branch. What follows the end of some threads is no more uniform than
//! the way to that end.

use super::super::code::{Inst, Node};
use super::super::emit;
use super::super::error::{Error, Result};
use super::super::inst::{Op, Operand, Reg, Special, Together, Traits};
use super::super::kernel::PtxKernel;

/// Where a value is the same: the more bits, the fewer threads have it, and what is computed from
/// several values has the bits of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Same(u8);

impl Same {
    const IN_BLOCK: Same = Same(0b00);
    const IN_WARP: Same = Same(0b01);
    const NOWHERE: Same = Same(0b11);
    /// Beside them: something was concluded from this.
    const READ: Same = Same(0b100);

    #[inline]
    fn and(self, other: Same) -> Same {
        Same(self.0 | other.0)
    }

    /// Whether every group in which `other` is the same has this, too.
    #[inline]
    fn within(self, other: Same) -> bool {
        self.0 & !other.0 == 0
    }

    #[inline]
    fn is_read(self) -> bool {
        self.0 & Same::READ.0 != 0
    }

    #[inline]
    fn without_read(self) -> Same {
        Same(self.0 & Same::NOWHERE.0)
    }
}

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    if !kernel.code.has(Traits::TOGETHER) {
        return Ok(());
    }
    let mut uniformity = Uniformity {
        kernel,
        of: vec![Same::IN_BLOCK; kernel.registers],
        thread_numbers: thread_numbers(kernel),
        left: Same::IN_BLOCK,
        outdated: true,
        apart: false,
        settled: false,
    };
    // A loop's registers may depend on what is written later in the loop.
    while uniformity.outdated {
        uniformity.outdated = false;
        uniformity.walk_all()?;
    }
    uniformity.settled = true;
    if uniformity.apart {
        return uniformity.walk_all();
    }
    Ok(())
}

struct Uniformity<'a> {
    kernel: &'a PtxKernel,
    of: Vec<Same>,
    /// Registers that hold `%tid.x`.
    thread_numbers: Vec<u32>,
    /// Which threads have not ended so far.
    left: Same,
    /// Whether something was concluded from what turned out to be less uniform.
    outdated: bool,
    /// Whether threads come alone to what they have to execute together. As nothing becomes more
    /// uniform, one walk may find out for all that follow.
    apart: bool,
    /// Whether all is known: the next walk says which instruction it is.
    settled: bool,
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
    /// What a condition is, from which something is concluded.
    #[inline]
    fn read(&mut self, reg: Reg) -> Same {
        let same = &mut self.of[reg.id as usize];
        *same = same.and(Same::READ);
        same.without_read()
    }

    fn walk_all(&mut self) -> Result<()> {
        self.left = Same::IN_BLOCK;
        self.walk(&self.kernel.code.nodes, Same::IN_BLOCK)
    }

    fn walk(&mut self, nodes: &[Node], path: Same) -> Result<()> {
        for node in nodes {
            match node {
                Node::Run(run) => {
                    for inst in &self.kernel.code.insts()[run.clone()] {
                        self.step(inst, path.and(self.left))?;
                    }
                }
                Node::Comment(_) => {}
                Node::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let path = path.and(self.read(*cond));
                    let before = self.left;
                    self.walk(then, path)?;
                    // Threads that ended there would not have come here.
                    let ended = std::mem::replace(&mut self.left, before);
                    self.walk(otherwise, path)?;
                    self.left = self.left.and(ended);
                }
                Node::Loop { body, again } => {
                    let path = path.and(self.read(*again));
                    let before = self.left;
                    self.walk(body, path)?;
                    // Threads that end in the loop are missing where it begins anew.
                    if self.left != before {
                        self.walk(body, path)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// An instruction, and how uniform the way there is.
    #[inline]
    fn step(&mut self, inst: &Inst, path: Same) -> Result<()> {
        let path = match inst.guard {
            Some((cond, _)) => path.and(self.read(cond)),
            None => path,
        };
        let row = inst.op.row();
        if row.has(Traits::TOGETHER) {
            self.judge(inst, path)?;
        }
        let kernel = self.kernel;
        let (to, from) = kernel.code.regs_of(inst);
        let same = self.result(inst, from).and(path);
        for reg in to {
            let of = &mut self.of[reg.id as usize];
            self.outdated |= of.is_read() && !same.within(*of);
            *of = of.and(same);
        }
        for reg in from {
            self.read(*reg);
        }
        if inst.op == Op::Ret {
            self.left = path;
        }
        Ok(())
    }

    #[inline]
    fn result(&self, inst: &Inst, from: &[Reg]) -> Same {
        let code = &self.kernel.code;
        match inst.op {
            Op::MovSpecial => match code.from(inst).next() {
                Some(Operand::Special(Special::TidX | Special::TidY | Special::LaneId)) => {
                    Same::NOWHERE
                }
                _ => Same::IN_BLOCK,
            },
            // The number of a warp, where threads are numbered along x alone.
            Op::Shr if self.is_warp_number(inst) => Same::IN_WARP,
            Op::VoteAll | Op::VoteAny => Same::IN_WARP,
            Op::ShflIdx if matches!(code.from(inst).nth(1), Some(Operand::Int(_))) => Same::IN_WARP,
            // Threads leave the wait at different times.
            Op::MbarrierTryWait => Same::IN_BLOCK,
            // Fragments differ from lane to lane.
            op if op.row().together == Together::Warp => Same::NOWHERE,
            _ => {
                let inputs = from.iter().map(|reg| self.of[reg.id as usize]);
                inputs.fold(Same::IN_BLOCK, Same::and).without_read()
            }
        }
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
        let (allowed, group) = match inst.op.row().together {
            Together::Alone => return Ok(()),
            Together::Warp => (Same::IN_WARP, "warp"),
            Together::Block => (Same::IN_BLOCK, "block"),
        };
        if path.within(allowed) {
            return Ok(());
        }
        self.apart = true;
        if !self.settled {
            return Ok(());
        }
        Err(Error::Divergent {
            kernel: self.kernel.name.clone(),
            instruction: emit::instruction_text(&self.kernel.code, inst),
            group,
        })
    }
}

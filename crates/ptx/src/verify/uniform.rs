//! Checks that threads which must execute an instruction together reach it together.
//!
//! A register is uniform in the block, in each warp, or not at all, depending on its inputs. A
//! branch is as uniform as its condition, and registers written in it are at most as uniform as the
//! branch. After some threads have ended, nothing is more uniform than the path to that end.

use super::super::code::{Inst, Node};
use super::super::emit;
use super::super::error::{Error, Result};
use super::super::inst::{Op, Operand, Reg, Special, Together, Traits};
use super::super::kernel::PtxKernel;

/// The group of threads in which a value is the same. More bits mean smaller groups; a value
/// computed from several values has the bits of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UniformIn(u8);

impl UniformIn {
    const IN_BLOCK: UniformIn = UniformIn(0b00);
    const IN_WARP: UniformIn = UniformIn(0b01);
    const NOWHERE: UniformIn = UniformIn(0b11);
    /// A flag beside the group: a conclusion depends on this value.
    const READ: UniformIn = UniformIn(0b100);

    #[inline]
    fn and(self, other: UniformIn) -> UniformIn {
        UniformIn(self.0 | other.0)
    }

    /// Whether the value is the same in every group in which `other` is.
    #[inline]
    fn within(self, other: UniformIn) -> bool {
        self.0 & !other.0 == 0
    }

    #[inline]
    fn is_read(self) -> bool {
        self.0 & UniformIn::READ.0 != 0
    }

    #[inline]
    fn without_read(self) -> UniformIn {
        UniformIn(self.0 & UniformIn::NOWHERE.0)
    }
}

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    if !kernel.code.has(Traits::TOGETHER) {
        return Ok(());
    }
    let mut uniformity = Uniformity {
        kernel,
        of: vec![UniformIn::IN_BLOCK; kernel.registers],
        thread_numbers: thread_numbers(kernel),
        left: UniformIn::IN_BLOCK,
        outdated: true,
        apart: false,
        settled: false,
    };
    // Registers may depend on later writes in a loop, so walk until nothing changes.
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
    of: Vec<UniformIn>,
    /// Registers that hold `%tid.x`.
    thread_numbers: Vec<u32>,
    /// The uniformity of the threads that have not ended.
    left: UniformIn,
    /// Whether a conclusion depends on a value that turned out to be less uniform.
    outdated: bool,
    /// Whether threads diverge at an instruction that they must execute together. Nothing becomes
    /// more uniform in later walks, so this stays true.
    apart: bool,
    /// Whether the state is final. The next walk then reports the instruction.
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
    /// Returns the uniformity of a register, and notes that a conclusion depends on it.
    #[inline]
    fn read(&mut self, reg: Reg) -> UniformIn {
        let same = &mut self.of[reg.id as usize];
        *same = same.and(UniformIn::READ);
        same.without_read()
    }

    fn walk_all(&mut self) -> Result<()> {
        self.left = UniformIn::IN_BLOCK;
        self.walk(&self.kernel.code.nodes, UniformIn::IN_BLOCK)
    }

    fn walk(&mut self, nodes: &[Node], path: UniformIn) -> Result<()> {
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
                    // Threads that ended in `then` do not reach `otherwise`.
                    let ended = std::mem::replace(&mut self.left, before);
                    self.walk(otherwise, path)?;
                    self.left = self.left.and(ended);
                }
                Node::Loop { body, again } => {
                    let path = path.and(self.read(*again));
                    let before = self.left;
                    self.walk(body, path)?;
                    // Threads that end in the loop are missing in the next round.
                    if self.left != before {
                        self.walk(body, path)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Processes an instruction that is reached on a path of this uniformity.
    #[inline]
    fn step(&mut self, inst: &Inst, path: UniformIn) -> Result<()> {
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
    fn result(&self, inst: &Inst, from: &[Reg]) -> UniformIn {
        let code = &self.kernel.code;
        match inst.op {
            Op::MovSpecial => match code.from(inst).next() {
                Some(Operand::Special(Special::TidX | Special::TidY | Special::LaneId)) => {
                    UniformIn::NOWHERE
                }
                _ => UniformIn::IN_BLOCK,
            },
            // The index of the warp, if blocks are one-dimensional.
            Op::Shr if self.is_warp_number(inst) => UniformIn::IN_WARP,
            Op::VoteAll | Op::VoteAny => UniformIn::IN_WARP,
            Op::ShflIdx if matches!(code.from(inst).nth(1), Some(Operand::Int(_))) => {
                UniformIn::IN_WARP
            }
            // Threads leave the wait at different times, but with the same result.
            Op::MbarrierTryWait => UniformIn::IN_BLOCK,
            // Fragments differ between lanes.
            op if op.row().together == Together::Warp => UniformIn::NOWHERE,
            _ => {
                let inputs = from.iter().map(|reg| self.of[reg.id as usize]);
                inputs
                    .fold(UniformIn::IN_BLOCK, UniformIn::and)
                    .without_read()
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

    fn judge(&mut self, inst: &Inst, path: UniformIn) -> Result<()> {
        let (allowed, group) = match inst.op.row().together {
            Together::Alone => return Ok(()),
            Together::Warp => (UniformIn::IN_WARP, "warp"),
            Together::Block => (UniformIn::IN_BLOCK, "block"),
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

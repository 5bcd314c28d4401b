//! Estimates the number of 32-bit registers of a thread, and checks it against the limit of the
//! launch.
//!
//! A value is live from its write to its last read. *Liveness* is computed by one backward walk
//! over branches and loops (Aho, Lam, Sethi, Ullman, *Compilers*, 9.2.5). The assembler reorders
//! instructions, so it may use more or fewer registers.

use super::super::code::{Code, Inst, Node};
use super::super::error::{Error, Result};
use super::super::inst::{Op, Operand, Reg, Traits};
use super::super::kernel::PtxKernel;
use super::super::types::Class;
use super::set::Set;

/// The number of registers of a multiprocessor.
const REGISTERS: u32 = 65_536;
const MOST: u32 = 255;
/// The granularity of register allocation.
const UNIT: u32 = 8;
/// An estimate is an error if it exceeds the limit by more than `limit / MARGIN`: for the kernels
/// here the assembler needed up to a fifth less than the estimate.
const MARGIN: u32 = 4;

/// Returns the number of registers that a thread may use so that `min_blocks` blocks fit on a
/// multiprocessor.
fn limit(kernel: &PtxKernel) -> u32 {
    let threads: u32 = kernel.launch.block.iter().product();
    let warps = threads.max(1).next_multiple_of(32);
    let together = warps.saturating_mul(kernel.launch.min_blocks.max(1));
    (REGISTERS / together / UNIT * UNIT).min(MOST)
}

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    let widths = widths(kernel);
    let all: u32 = widths.iter().map(|&width| u32::from(width)).sum();
    // A branch may have a lower limit of its own (`setmaxnreg`), which only the walk knows.
    if all <= limit(kernel) && !kernel.code.has(Traits::GRANTS) {
        return Ok(());
    }
    let pressure = Pressure::of(kernel, widths);
    pressure.over.map_or(Ok(()), |(value, limit)| {
        Err(Error::Limit {
            what: format!("{}: registers of a thread", kernel.name),
            value: value.into(),
            limit: limit.into(),
        })
    })
}

/// Returns the largest number of registers that are live at once.
pub(in super::super) fn estimate(kernel: &PtxKernel) -> u32 {
    Pressure::of(kernel, widths(kernel)).most
}

/// Returns a register's size in 32-bit words. Predicates have separate registers.
#[inline]
pub(super) fn words(reg: Reg) -> u32 {
    match reg.ty.class() {
        Class::Pred => 0,
        Class::B16 | Class::B32 | Class::F32 => 1,
        Class::B64 | Class::F64 => 2,
    }
}

/// Whether an instruction's result `i` takes a register. The assembler reads parameters, special
/// registers and addresses of arrays where they are needed. WMMA's input fragments contain every
/// element twice, and the assembler keeps one copy.
#[inline]
pub(super) fn is_kept(op: Op, i: usize) -> bool {
    match op {
        Op::LdParam | Op::MovShared | Op::MovSpecial => false,
        Op::WmmaLoadA | Op::WmmaLoadB => i.is_multiple_of(2),
        _ => true,
    }
}

/// Returns the size of each register in words, 0 for registers that take none.
fn widths(kernel: &PtxKernel) -> Vec<u8> {
    let mut widths = vec![0; kernel.registers];
    for inst in kernel.code.insts() {
        for (i, reg) in kernel.code.regs_of(inst).0.iter().enumerate() {
            if is_kept(inst.op, i) {
                widths[reg.id as usize] = words(*reg) as u8;
            }
        }
    }
    widths
}

/// The registers that are live.
#[derive(Clone)]
struct Live {
    set: Set,
    words: u32,
}

/// The state of the backward walk.
struct Pressure<'a> {
    code: &'a Code,
    widths: Vec<u8>,
    live: Live,
    /// Whether this is the first walk over a loop, which only finds the values that the next round
    /// reads.
    searching: bool,
    limit: u32,
    most: u32,
    /// The largest number of live registers above a limit, and that limit.
    over: Option<(u32, u32)>,
}

impl<'a> Pressure<'a> {
    fn of(kernel: &'a PtxKernel, widths: Vec<u8>) -> Self {
        let mut pressure = Pressure {
            code: &kernel.code,
            live: Live {
                set: Set::new(kernel.registers),
                words: 0,
            },
            widths,
            searching: false,
            limit: limit(kernel),
            most: 0,
            over: None,
        };
        pressure.walk(&kernel.code.nodes);
        pressure
    }

    fn walk(&mut self, nodes: &[Node]) {
        let outside = self.limit;
        self.limit = granted(self.code, nodes).unwrap_or(outside);
        for node in nodes.iter().rev() {
            match node {
                Node::Run(run) => {
                    for inst in self.code.insts()[run.clone()].iter().rev() {
                        self.step(inst);
                    }
                }
                Node::Comment(_) => {}
                Node::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let after = self.live.clone();
                    self.walk(then);
                    let then = std::mem::replace(&mut self.live, after);
                    self.walk(otherwise);
                    self.join(&then);
                    self.read(*cond);
                }
                Node::Loop { body, again } => self.repeat(body, *again),
            }
        }
        self.limit = outside;
    }

    /// Walks a loop. Values that a round reads from the previous one are live at the end of the
    /// body.
    fn repeat(&mut self, body: &[Node], again: Reg) {
        self.read(again);
        if !self.searching {
            let after = self.live.clone();
            self.searching = true;
            self.walk(body);
            self.searching = false;
            self.join(&after);
        }
        self.walk(body);
    }

    fn step(&mut self, inst: &Inst) {
        let (to, from) = self.code.regs_of(inst);
        // Results take registers even if nothing reads them. The values before the instruction are
        // measured after the preceding one.
        for reg in to {
            self.read(*reg);
        }
        self.measure();
        if inst.guard.is_none() && !inst.op.row().has(Traits::MULTIPLIES) {
            for reg in to {
                self.forget(*reg);
            }
        }
        for reg in from {
            self.read(*reg);
        }
        if let Some((cond, _)) = inst.guard {
            self.read(cond);
        }
    }

    fn measure(&mut self) {
        let words = self.live.words;
        if self.searching {
            return;
        }
        self.most = self.most.max(words);
        if words > self.limit + self.limit / MARGIN
            && self.over.is_none_or(|(most, _)| words > most)
        {
            self.over = Some((words, self.limit));
        }
    }

    fn read(&mut self, reg: Reg) {
        if !self.live.set.contains(reg.id) {
            self.live.set.insert(reg.id);
            self.live.words += u32::from(self.widths[reg.id as usize]);
        }
    }

    fn forget(&mut self, reg: Reg) {
        if self.live.set.contains(reg.id) {
            self.live.set.remove(reg.id);
            self.live.words -= u32::from(self.widths[reg.id as usize]);
        }
    }

    /// Adds the registers that are live on another path.
    fn join(&mut self, other: &Live) {
        let Live { set, words } = &mut self.live;
        let widths = &self.widths;
        set.unite(&other.set, |id| *words += u32::from(widths[id]));
    }
}

/// Returns the number of registers that a branch requests with `setmaxnreg`.
fn granted(code: &Code, nodes: &[Node]) -> Option<u32> {
    if !code.has(Traits::GRANTS) {
        return None;
    }
    let runs = nodes.iter().filter_map(|node| match node {
        Node::Run(run) => Some(&code.insts()[run.clone()]),
        _ => None,
    });
    let mut grants = runs
        .flatten()
        .filter(|inst| inst.op.row().has(Traits::GRANTS));
    match grants.next().map(|inst| code.from(inst).next()) {
        Some(Some(Operand::Int(registers))) => u32::try_from(registers).ok(),
        _ => None,
    }
}

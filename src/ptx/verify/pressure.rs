//! How many registers of 32 bits a thread needs at once, and whether it may have them.
//!
//! A value is alive from where it is written to where it is last read (*liveness*, by one walk
//! backwards over the branches and loops; Aho, Lam, Sethi, Ullman, *Compilers*, 9.2.5). The
//! assembler moves instructions, so what it uses in the end is more or less than this: values that
//! wait for a load may be loaded later, and addresses be kept that the text computes anew.

use super::super::code::{Code, Inst, Node};
use super::super::error::{Error, Result};
use super::super::inst::{Op, Operand, Reg, Traits};
use super::super::kernel::PtxKernel;
use super::super::types::Class;
use super::live_intervals;
use super::set::Set;

/// Registers of a multiprocessor, and the most of a thread.
const REGISTERS: u32 = 65_536;
const MOST: u32 = 255;
/// Registers are given out by the eight.
const UNIT: u32 = 8;
/// A finding is what is beyond the limit by more than one part in so many: among all kernels here the
/// assembler made do with up to a fifth less than is estimated.
const MARGIN: u32 = 4;

/// What a thread of this kernel may have, so that as many blocks as its launch asks for fit on a
/// multiprocessor.
fn limit(kernel: &PtxKernel) -> u32 {
    let threads: u32 = kernel.launch.block.iter().product();
    let warps = threads.max(1).next_multiple_of(32);
    let together = warps.saturating_mul(kernel.launch.min_blocks.max(1));
    (REGISTERS / together / UNIT * UNIT).min(MOST)
}

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    let (code, limit) = (&kernel.code, limit(kernel));
    // Where branches have limits of their own, it matters where values are alive.
    let one_limit = !code.has(Traits::GRANTS);
    if one_limit && live_intervals::bound(code, kernel.registers) <= limit + limit / MARGIN {
        return Ok(());
    }
    let widths = widths(kernel);
    let all: u32 = widths.iter().map(|&width| u32::from(width)).sum();
    // Others do not even name as many.
    if all <= limit {
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

/// The most registers that are alive at once.
pub(in super::super) fn estimate(kernel: &PtxKernel) -> u32 {
    Pressure::of(kernel, widths(kernel)).most
}

/// A register's size in words. Predicates have registers of their own.
#[inline]
pub(super) fn words(reg: Reg) -> u32 {
    match reg.ty.class() {
        Class::Pred => 0,
        Class::B16 | Class::B32 | Class::F32 => 1,
        Class::B64 | Class::F64 => 2,
    }
}

/// Whether an instruction's result `i` takes a register. Parameters, special registers and
/// addresses of arrays, where nothing else is written to them, are read where they are needed.
/// Fragments of WMMA's factors name every value twice, of which the assembler keeps one.
#[inline]
pub(super) fn is_kept(op: Op, i: usize) -> bool {
    match op {
        Op::LdParam | Op::MovShared | Op::MovSpecial => false,
        Op::WmmaLoadA | Op::WmmaLoadB => i.is_multiple_of(2),
        _ => true,
    }
}

/// Each register's size in words, 0 of those that take none.
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

/// Registers whose values will be read.
#[derive(Clone)]
struct Live {
    set: Set,
    words: u32,
}

/// The walk, backwards.
struct Pressure<'a> {
    code: &'a Code,
    widths: Vec<u8>,
    live: Live,
    /// Whether this is a loop's first walk, which only finds what its next round reads.
    searching: bool,
    limit: u32,
    most: u32,
    /// The most that is alive beyond a limit, and that limit.
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

    /// What a round reads of the last one is alive at that one's end.
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
        // Results need a place, even if nobody reads them. What is alive before the instruction is
        // alive after another one, and measured there.
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

    /// What is alive here or there.
    fn join(&mut self, other: &Live) {
        let Live { set, words } = &mut self.live;
        let widths = &self.widths;
        set.unite(&other.set, |id| *words += u32::from(widths[id]));
    }
}

/// The registers that a branch takes or leaves itself (`setmaxnreg`).
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

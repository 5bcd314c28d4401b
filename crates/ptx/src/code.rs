//! The storage for a kernel's instructions: flat arrays, so that an instruction needs no
//! allocation, and a tree of branches and loops over ranges of instructions.

#![allow(clippy::inline_always)] // What is inside is known where it is called.

use super::inst::{Op, Operand, Reg, Special, Traits};
use super::types::PtxType;
use std::ops::Range;

/// One instruction. Its operands and registers are in the arrays of its [`Code`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    /// The type that replaces `{}` in the row's text.
    pub(crate) ty: PtxType,
    /// The guard: the instruction runs only in threads in which this predicate has this value.
    pub(crate) guard: Option<(Reg, bool)>,
    /// The number of registers that the instruction writes.
    written: u8,
    regs: u8,
    /// The index of the first operand.
    first: u32,
    first_reg: u32,
}

/// A node of the tree of branches and loops.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A range of consecutive instructions.
    Run(Range<usize>),
    Comment(String),
    If {
        cond: Reg,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    /// A loop whose body runs once, and again as long as `again` is true after it.
    Loop {
        body: Vec<Node>,
        again: Reg,
    },
}

/// An operand without its registers.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Reg,
    Int(i64),
    Float(f32),
    Special(Special),
    Shared(usize),
    Param(usize),
    At(i32),
    /// A box with this number of coordinates.
    Box(u8),
    Group(u8),
}

/// The instructions of a kernel in the order of the text.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) nodes: Vec<Node>,
    insts: Vec<Inst>,
    shapes: Vec<Shape>,
    regs: Vec<Reg>,
    /// The union of the traits of all instructions.
    traits: Traits,
}

impl Code {
    /// Allocates arrays for a kernel of typical size.
    pub(crate) fn new() -> Self {
        Code {
            nodes: Vec::new(),
            insts: Vec::with_capacity(512),
            shapes: Vec::with_capacity(2048),
            regs: Vec::with_capacity(2048),
            traits: Traits::default(),
        }
    }

    /// Appends a checked instruction, and returns its registers.
    #[inline]
    pub(crate) fn push(
        &mut self,
        op: Op,
        ty: PtxType,
        guard: Option<(Reg, bool)>,
        to: &[Operand],
        from: &[Operand],
    ) -> &[Reg] {
        let (first, first_reg) = (self.shapes.len() as u32, self.regs.len() as u32);
        for operand in to {
            self.store(operand);
        }
        let written = self.regs.len() as u32 - first_reg;
        for operand in from {
            self.store(operand);
        }
        self.insts.push(Inst {
            op,
            ty,
            guard,
            written: written as u8,
            regs: (self.regs.len() as u32 - first_reg) as u8,
            first,
            first_reg,
        });
        self.traits = self.traits.with(op.row().traits);
        &self.regs[first_reg as usize..]
    }

    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn store(&mut self, operand: &Operand) {
        let shape = match *operand {
            Operand::Reg(reg) => {
                self.regs.push(reg);
                Shape::Reg
            }
            Operand::Int(value) => Shape::Int(value),
            Operand::Float(value) => Shape::Float(value),
            Operand::Special(special) => Shape::Special(special),
            Operand::Shared(index) => Shape::Shared(index),
            Operand::Param(index) => Shape::Param(index),
            Operand::At(base, offset) => {
                self.regs.push(base);
                Shape::At(offset)
            }
            Operand::Box(map, at) => {
                self.regs.push(map);
                self.regs.extend_from_slice(at);
                Shape::Box(at.len() as u8)
            }
            Operand::Group(regs) => {
                self.regs.extend_from_slice(regs);
                Shape::Group(regs.len() as u8)
            }
        };
        self.shapes.push(shape);
    }

    /// Returns all instructions.
    pub(crate) fn insts(&self) -> &[Inst] {
        &self.insts
    }

    /// Whether any instruction has one of these traits.
    pub(crate) fn has(&self, traits: Traits) -> bool {
        self.traits.has(traits)
    }

    /// Returns the registers of all instructions, in the order of the text.
    pub(crate) fn regs(&self) -> &[Reg] {
        &self.regs
    }

    /// Returns the registers that an instruction writes, and those that it reads.
    #[inline]
    pub(crate) fn regs_of(&self, inst: &Inst) -> (&[Reg], &[Reg]) {
        let first = inst.first_reg as usize;
        let regs = &self.regs[first..first + usize::from(inst.regs)];
        regs.split_at(usize::from(inst.written))
    }

    /// Returns an instruction's operands, results first.
    #[inline]
    pub(crate) fn operands(&self, inst: &Inst) -> Operands<'_> {
        let first = inst.first as usize;
        Operands {
            shapes: self.shapes[first..first + inst.count()].iter(),
            regs: &self.regs[inst.first_reg as usize..],
        }
    }

    /// Returns an instruction's operands without the results.
    pub(crate) fn from(&self, inst: &Inst) -> impl Iterator<Item = Operand<'_>> {
        self.operands(inst).skip(inst.op.row().to.len())
    }

    /// Returns the number of registers of the instruction's vector, fragment or accumulator.
    pub(crate) fn group(&self, inst: &Inst) -> Option<usize> {
        let first = inst.first as usize;
        let shapes = &self.shapes[first..first + inst.count()];
        shapes.iter().find_map(|shape| match shape {
            Shape::Group(count) => Some((*count).into()),
            _ => None,
        })
    }
}

/// An iterator over an instruction's operands.
pub(crate) struct Operands<'a> {
    shapes: std::slice::Iter<'a, Shape>,
    /// The registers from the next operand on.
    regs: &'a [Reg],
}

impl<'a> Operands<'a> {
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn take(&mut self, count: usize) -> &'a [Reg] {
        let (taken, others) = self.regs.split_at(count);
        self.regs = others;
        taken
    }
}

impl<'a> Iterator for Operands<'a> {
    type Item = Operand<'a>;

    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn next(&mut self) -> Option<Operand<'a>> {
        Some(match *self.shapes.next()? {
            Shape::Reg => Operand::Reg(self.take(1)[0]),
            Shape::Int(value) => Operand::Int(value),
            Shape::Float(value) => Operand::Float(value),
            Shape::Special(special) => Operand::Special(special),
            Shape::Shared(index) => Operand::Shared(index),
            Shape::Param(index) => Operand::Param(index),
            Shape::At(offset) => Operand::At(self.take(1)[0], offset),
            Shape::Box(count) => Operand::Box(self.take(1)[0], self.take(count.into())),
            Shape::Group(count) => Operand::Group(self.take(count.into())),
        })
    }
}

impl Inst {
    /// Returns the number of operands.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        let row = self.op.row();
        row.to.len() + row.from.len()
    }
}

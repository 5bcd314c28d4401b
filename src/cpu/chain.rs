//! Elementwise operations on SIMD, one block after the other, so that intermediate results stay in
//! the first-level cache and are not stored.

#[cfg_attr(not(target_arch = "wasm32"), path = "chain/compiled/absent.rs")]
mod compiled;
mod sweeps;

use std::mem::MaybeUninit;

use crate::alloc::scratch::{LINE, to_line};
use crate::alloc::{as_places, try_zeros};
use crate::error::Result;
use crate::graph::fuse::{Chain, Operand, Step};
use crate::ops::OpClass;
use crate::simd::{self, InstructionSet};
use compiled::Compiled;
use sweeps::Sweeps;

/// The number of values in a block: a few blocks fit into a first-level cache.
pub(crate) const BLOCK: usize = 2048;

/// The largest number of operands of an elementwise operation.
const MAX_OPERANDS: usize = crate::ops::custom::MAX_INPUTS;

/// A chain with the values that it reads.
#[derive(Clone, Copy)]
pub(crate) struct Runner<'a> {
    pub(crate) isa: InstructionSet,
    pub(crate) chain: &'a Chain,
    /// The kernel's inputs.
    pub(crate) inputs: &'a [&'a [f32]],
}

/// Memory for intermediate results.
pub(crate) struct Scratch {
    blocks: Vec<Block>,
    /// The elements of each repeated input.
    repeated: Vec<Block>,
    sweeps: Sweeps,
    /// Does most of it.
    compiled: Option<Compiled>,
}

/// Values of a block, from a cache line's start on.
#[derive(Default)]
struct Block {
    memory: Vec<f32>,
    start: usize,
}

impl Block {
    /// Allocates a block of `len` elements, at an offset that depends on `number`: processors
    /// confuse two addresses that differ by a multiple of 4 KB.
    fn new(len: usize, number: usize) -> Result<Self> {
        let apart = LINE * (5 * number % 32);
        let memory = try_zeros(len + apart + LINE)?;
        let start = to_line(&memory) + apart;
        Ok(Self { memory, start })
    }

    fn get(&self, len: usize) -> &[f32] {
        &self.memory[self.start..][..len]
    }

    fn get_mut(&mut self, len: usize) -> &mut [f32] {
        &mut self.memory[self.start..][..len]
    }
}

/// A range of the result, and the head's result in this range.
#[derive(Clone, Copy)]
struct BlockRange<'a> {
    at: usize,
    len: usize,
    head: &'a [f32],
}

impl<'a> Runner<'a> {
    /// The values that are the result already, where there is nothing to compute.
    pub(crate) fn plain(&self) -> Option<&'a [f32]> {
        match self.chain.result {
            Operand::Input(input) => Some(self.inputs[input]),
            _ => None,
        }
    }

    /// Returns the class of the most expensive step.
    pub(crate) fn class(&self) -> OpClass {
        let costly = |step: &Step| step.op.class() == OpClass::Transcendental;
        if self.chain.steps.iter().any(costly) {
            return OpClass::Transcendental;
        }
        OpClass::Elementwise
    }

    /// Allocates scratch memory for at most `len` elements.
    pub(crate) fn scratch(&self, len: usize) -> Result<Scratch> {
        let block = len.min(BLOCK);
        let mut blocks = Vec::new();
        for number in 0..self.chain.blocks {
            blocks.push(Block::new(block, number + 1)?);
        }
        let mut repeated = Vec::new();
        for (number, repeat) in self.chain.repeats.iter().enumerate() {
            let mut of = Block::new(block, self.chain.blocks + 2 + number)?;
            // One element is the same in every block.
            if let (1, &[value]) = (repeat.cycle.len, self.inputs[repeat.input]) {
                of.get_mut(block).fill(value);
            }
            repeated.push(of);
        }
        let sweeps = Sweeps::new(self, block)?;
        Ok(Scratch {
            blocks,
            repeated,
            sweeps,
            compiled: Compiled::of(self, len),
        })
    }

    /// Computes elements from `at` on with the compiled loop, if there is one, and returns their
    /// number.
    pub(crate) fn run_compiled(
        &self,
        scratch: &Scratch,
        at: usize,
        out: &mut [MaybeUninit<f32>],
    ) -> usize {
        let compiled = scratch.compiled.as_ref();
        compiled.map_or(0, |compiled| compiled.run(self.inputs, at, out))
    }

    /// Computes the values from `at` on, block by block where there is no loop for them. `head` gives
    /// the kernel's head's.
    pub(crate) fn run(&self, scratch: &mut Scratch, at: usize, head: &[f32], out: &mut [f32]) {
        // SAFETY: nothing but values is written there.
        let places = unsafe { as_places(out) };
        let done = self.run_compiled(scratch, at, places);
        let block = scratch.sweeps.block(self.chain);
        let mut start = done;
        for out in out[done..].chunks_mut(block) {
            let len = out.len();
            let head = head.get(start..start + len).unwrap_or_default();
            let at = at + start;
            self.block(scratch, BlockRange { at, len, head }, out);
            start += len;
        }
    }

    /// Runs like [`Runner::run`], in place on the head's result.
    pub(crate) fn run_in_place(&self, scratch: &mut Scratch, at: usize, values: &mut [f32]) {
        if self.chain.steps.is_empty() {
            return;
        }
        let mut head = [0.0; BLOCK];
        for (block, out) in values.chunks_mut(BLOCK).enumerate() {
            let head = &mut head[..out.len()];
            head.copy_from_slice(out);
            let (at, len) = (at + block * BLOCK, out.len());
            self.block(scratch, BlockRange { at, len, head }, out);
        }
    }

    fn step(
        &self,
        step: &Step,
        blocks: &[Block],
        repeated: &[Block],
        here: BlockRange<'_>,
        out: &mut [f32],
    ) {
        let mut operands: [&[f32]; MAX_OPERANDS] = [&[]; MAX_OPERANDS];
        for (values, &operand) in operands.iter_mut().zip(&step.operands) {
            *values = self.operand(operand, blocks, repeated, here);
        }
        simd::elementwise(self.isa, &step.op, &operands[..step.operands.len()], out);
    }

    /// Lays out the elements that the chain repeats here.
    fn repeat(&self, to: &mut [Block], here: BlockRange<'_>) {
        for (repeat, to) in self.chain.repeats.iter().zip(to) {
            if repeat.cycle.len > 1 {
                let to = to.get_mut(here.len);
                simd::repeat(self.inputs[repeat.input], repeat.cycle.inner, here.at, to);
            }
        }
    }

    fn operand<'b>(
        &'b self,
        operand: Operand,
        blocks: &'b [Block],
        repeated: &'b [Block],
        here: BlockRange<'b>,
    ) -> &'b [f32] {
        match operand {
            Operand::Step(earlier) => blocks[self.chain.steps[earlier].block].get(here.len),
            Operand::Input(input) => &self.inputs[input][here.at..here.at + here.len],
            Operand::Repeated(repeat) => repeated[repeat].get(here.len),
            Operand::Head => here.head,
        }
    }
}

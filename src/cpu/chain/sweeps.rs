//! Steps grouped into runs: cheap steps that follow a step are applied in one fused loop, so that
//! elements stay in registers between operations.

use std::ops::Range;

use crate::cpu::chain::{BLOCK, Block, BlockRange, Operand, Runner, Scratch};
use crate::error::Result;
use crate::graph::fuse::{Chain, MAX_STEPS, Step};
use crate::runtime::NATIVE;
use crate::simd::{self, InstructionSet, Other, Swept};

/// The runs of a chain, and their scratch memory.
pub(super) struct Sweeps {
    /// Steps in order. All but the first are swept, and the first too if it can be.
    runs: Vec<Range<usize>>,
    /// A spare block that no step uses. A run needs it if its first step reads the block that its last step writes.
    spare: Block,
}

impl Sweeps {
    pub(super) fn new(runner: &Runner<'_>, len: usize) -> Result<Self> {
        Ok(Self {
            runs: runs(runner),
            spare: Block::new(len, runner.chain.blocks + 1)?,
        })
    }

    /// Returns the block size: the whole range if one fused loop computes the chain, which then
    /// needs no blocks.
    pub(super) fn block(&self, chain: &Chain) -> usize {
        let straight = |run: &Range<usize>| run.len() > 1 && goes_straight(&chain.steps[0]);
        match &self.runs[..] {
            [run] if straight(run) && chain.repeats.is_empty() => usize::MAX,
            _ => BLOCK,
        }
    }
}

/// The steps of a chain in runs. One that follows another is all that reads its values.
fn runs(runner: &Runner<'_>) -> Vec<Range<usize>> {
    let steps = &runner.chain.steps;
    let mut uses = vec![0; steps.len()];
    for operand in steps.iter().flat_map(|step| &step.operands) {
        if let Operand::Step(earlier) = *operand {
            uses[earlier] += 1;
        }
    }
    // Without vectors there are too few registers.
    let vectors = runner.isa != InstructionSet::Scalar;
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        let swept = vectors && simd::is_swept(&step.op);
        match runs.last_mut() {
            Some(run) if swept && reads(step, Operand::Step(place - 1)) && uses[place - 1] == 1 => {
                run.end = place + 1;
            }
            _ => runs.push(place..place + 1),
        }
    }
    runs
}

/// Whether a step reads what is `before` it.
fn reads(step: &Step, before: Operand) -> bool {
    match step.operands[..] {
        [a] => a == before,
        [a, b] if NATIVE => a == before || b == before,
        _ => false,
    }
}

/// Whether a run of several begins with a step and not after it.
fn goes_straight(first: &Step) -> bool {
    NATIVE && simd::is_swept(&first.op)
}

impl Runner<'_> {
    pub(super) fn block(&self, scratch: &mut Scratch, here: BlockRange<'_>, out: &mut [f32]) {
        let Scratch {
            blocks,
            repeated,
            sweeps: Sweeps { runs, spare },
            ..
        } = scratch;
        self.repeat(repeated, here);
        let Some((last, runs)) = runs.split_last() else {
            out.copy_from_slice(self.operand(self.chain.result, blocks, repeated, here));
            return;
        };
        for run in runs {
            self.sweep(run, blocks, repeated, here, spare.get_mut(here.len));
            let home = &mut blocks[self.chain.steps[run.end - 1].block];
            std::mem::swap(home, spare);
        }
        self.sweep(last, blocks, repeated, here, out);
    }

    fn sweep(
        &self,
        run: &Range<usize>,
        blocks: &[Block],
        repeated: &[Block],
        here: BlockRange<'_>,
        out: &mut [f32],
    ) {
        let mut steps = &self.chain.steps[run.clone()];
        let mut before = Operand::Step(run.start);
        let mut x = None;
        match steps {
            // A run of several goes straight from what its first one reads.
            [first, _, ..] if goes_straight(first) => {
                before = first.operands[0];
                x = Some(self.operand(before, blocks, repeated, here));
            }
            [first, others @ ..] => {
                self.step(first, blocks, repeated, here, out);
                steps = others;
            }
            [] => {}
        }
        let Some(first) = steps.first() else {
            return;
        };
        let mut swept = [Swept::alone(&first.op); MAX_STEPS];
        for (swept, (step, place)) in swept
            .iter_mut()
            .zip(steps.iter().zip(run.end - steps.len()..))
        {
            *swept = Swept::alone(&step.op);
            if let Some((operand, is_first)) = other(step, before) {
                let values = self.operand(operand, blocks, repeated, here);
                swept.other = Other::of(values, is_first);
            }
            before = Operand::Step(place);
        }
        simd::sweep(self.isa, &swept[..steps.len()], x, out);
    }
}

/// Returns a step's operand other than `before`, and whether it is the first.
fn other(step: &Step, before: Operand) -> Option<(Operand, bool)> {
    match step.operands[..] {
        [a, b] if NATIVE => Some(if b == before { (a, true) } else { (b, false) }),
        _ => None,
    }
}

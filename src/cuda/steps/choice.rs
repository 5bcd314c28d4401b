//! The choice of a token from logits.

use super::{CudaPass, CudaWeights, Elements, flag, sizes};
use crate::cuda::launch::Argument;
use crate::error::Result;
use crate::graph::choice::{Changes, Draw, RANKED};
use crate::graph::steps::{Element, StepPass};
use relampago_ptx::kernels::{
    ChangeLogitsKernel, DrawKernel, PackedRowKernel, RankKernel, SumWeightsKernel,
};

/// The back-ends rank as many elements as the kernel.
const _: () = assert!(RANKED == RankKernel::RANKED);

/// The largest number of blocks that add up weights.
const BLOCKS: usize = 64;

/// The number of elements whose weights a block adds up, with up to [`BLOCKS`] blocks.
const ELEMENTS: usize = 1024;

impl CudaPass<'_> {
    pub(super) fn take_packed_row(
        &mut self,
        weights: &CudaWeights,
        index: Argument,
        scale: f32,
        y: &Elements,
    ) -> Result<()> {
        let pointers = [
            index,
            weights.words.from(0),
            weights.scales.from(0),
            y.from(0),
        ];
        let shape = sizes([weights.rows, weights.cols]);
        let numbers = [
            Argument::U32(weights.group_shift()),
            Argument::F32(weights.least),
            Argument::F32(scale),
        ];
        let arguments = [&pointers[..], &shape, &numbers].concat();
        self.launch(&PackedRowKernel::new(weights.format), arguments)
    }

    pub(super) fn change_logits(
        &mut self,
        changes: &Changes<Elements>,
        (chosen, next): Element<'_, Elements>,
        logits: &Elements,
        len: usize,
    ) -> Result<()> {
        let penalties = changes.penalties;
        let since = if penalties.any() { next } else { 0 };
        let pointers = [changes.list.from(0), chosen.from(0), logits.from(0)];
        let shape = sizes([len, changes.len, changes.len + since]);
        let numbers = [
            penalties.repetition,
            penalties.presence,
            penalties.frequency,
        ];
        let arguments = [&pointers[..], &shape, &numbers.map(Argument::F32)].concat();
        self.launch(&ChangeLogitsKernel, arguments)
    }

    pub(super) fn draw_token(
        &mut self,
        logits: &Elements,
        len: usize,
        Draw { limits, uniform }: Draw,
        index: Argument,
    ) -> Result<()> {
        let ranked = self.rank(logits, len)?;
        let (count, is_all) = limits.ranked(len);
        let blocks = len.div_ceil(ELEMENTS).clamp(1, BLOCKS);
        let [temperature, min_p] = [limits.temperature, limits.min_p].map(Argument::F32);
        let sums = self.allocate(BLOCKS)?;
        if !is_all {
            let pointers = [logits.from(0), ranked.from(0), sums.from(0)];
            let shape = sizes([len, blocks]);
            let arguments = [&pointers[..], &shape, &[temperature, min_p]].concat();
            self.launch(&SumWeightsKernel, arguments)?;
        }
        let pointers = [ranked.from(0), sums.from(0), index];
        let count = sizes([count]);
        let numbers = [
            flag(is_all),
            Argument::U32(blocks as u32),
            temperature,
            Argument::F32(limits.top_p),
            min_p,
            Argument::F32(uniform),
        ];
        let arguments = [&pointers[..], &count, &numbers].concat();
        self.launch(&DrawKernel, arguments)
    }

    /// Ranks elements; returns where the best ones are, as pairs of a value and its index.
    fn rank(&mut self, x: &Elements, len: usize) -> Result<Elements> {
        let (mut from, mut len, mut is_pairs) = (x.clone(), len, false);
        loop {
            let chunks = len.div_ceil(RankKernel::CHUNK).max(1);
            let best = self.allocate(2 * RANKED * chunks)?;
            let pointers = [from.from(0), best.from(0)];
            let [len_argument] = sizes([len]);
            let numbers = [len_argument, flag(is_pairs)];
            self.launch(&RankKernel, [pointers, numbers].concat())?;
            if chunks == 1 {
                return Ok(best);
            }
            (from, len, is_pairs) = (best, RANKED * chunks, true);
        }
    }
}

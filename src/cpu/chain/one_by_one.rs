//! Steps one by one, each on a whole block: what the package's small edition has, whose download has
//! no room for more. Chains that run often are compiled there, too.

use crate::cpu::chain::{BLOCK, Here, Runner, Scratch};
use crate::error::Result;
use crate::graph::fuse::Step;

/// What more a chain needs than its blocks: nothing.
pub(super) struct Sweeps;

impl Sweeps {
    #[allow(clippy::unnecessary_wraps)] // The other one needs memory.
    pub(super) fn new(_: &Runner<'_>, _: usize) -> Result<Self> {
        Ok(Self)
    }

    #[inline]
    #[allow(clippy::unused_self)] // As above.
    pub(super) fn block(&self, _: &[Step]) -> usize {
        BLOCK
    }
}

impl Runner<'_> {
    pub(super) fn block(&self, scratch: &mut Scratch, here: Here<'_>, out: &mut [f32]) {
        let Scratch {
            blocks, repeated, ..
        } = scratch;
        let Some((last, steps)) = self.chain.steps.split_last() else {
            out.copy_from_slice(self.operand(self.chain.result, blocks, repeated, here));
            return;
        };
        for step in steps {
            let mut block = std::mem::take(&mut blocks[step.block]);
            self.step(step, blocks, repeated, here, block.get_mut(here.len));
            blocks[step.block] = block;
        }
        self.step(last, blocks, repeated, here, out);
    }
}

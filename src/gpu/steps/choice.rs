//! The choice of a token from logits.

use super::{GpuPass, WORKGROUP};
use crate::error::Result;
use crate::gpu::kernels;
use crate::gpu::recorder::GpuBuffer;
use crate::graph::choice::{Changes, Draw, RANKED};
use crate::graph::steps::Element;

/// The number of elements among which a workgroup finds the largest or adds up weights, with up to [`WORKGROUP`]
/// workgroups.
const ELEMENTS: usize = 1024;

/// The number of elements among which a workgroup ranks the best [`RANKED`] ones.
const CHUNK: usize = 1024;

impl GpuPass<'_> {
    // The kernel of the operation `argmax`, which others fuse with, would bring all their texts into the package for
    // language models.
    pub(super) fn record_largest(
        &mut self,
        (x, before): Element<'_, GpuBuffer>,
        len: usize,
        (index, at): Element<'_, GpuBuffer>,
    ) -> Result<()> {
        let groups = len.div_ceil(ELEMENTS).clamp(1, WORKGROUP);
        let pairs = self.0.allocate(2 * groups)?;
        let kernel = ("largest", kernels::LARGEST);
        let params = [len, groups, 0, 0, before].map(|value| value as u32);
        let x = &x.with_len(before + len);
        self.record(kernel, &params, &[x], &pairs, groups)?;
        let params = [groups, 1, 1, at, 0].map(|value| value as u32);
        self.record(kernel, &params, &[&pairs], index, 1)
    }

    pub(super) fn record_change(
        &mut self,
        changes: &Changes<GpuBuffer>,
        (chosen, next): Element<'_, GpuBuffer>,
        logits: &GpuBuffer,
    ) -> Result<()> {
        let penalties = changes.penalties;
        let since = if penalties.any() { next } else { 0 };
        let params = [
            logits.len() as u32,
            changes.len as u32,
            since as u32,
            penalties.repetition.to_bits(),
            penalties.presence.to_bits(),
            penalties.frequency.to_bits(),
        ];
        let inputs = [&changes.list, chosen];
        let workgroups = (changes.len + since).div_ceil(WORKGROUP);
        let kernel = ("change_logits", kernels::CHANGE_LOGITS);
        self.record(kernel, &params, &inputs, logits, workgroups)
    }

    pub(super) fn record_forbid(&mut self, allowed: &GpuBuffer, logits: &GpuBuffer) -> Result<()> {
        let workgroups = logits.len().div_ceil(WORKGROUP);
        let kernel = ("forbid", kernels::FORBID);
        self.record(
            kernel,
            &[logits.len() as u32],
            &[allowed],
            logits,
            workgroups,
        )
    }

    pub(super) fn record_draw(
        &mut self,
        logits: &GpuBuffer,
        Draw { limits, uniform }: Draw,
        (index, at): Element<'_, GpuBuffer>,
    ) -> Result<()> {
        let ranked = self.rank(logits)?;
        let len = logits.len();
        let (count, is_all) = limits.ranked(len);
        let groups = len.div_ceil(ELEMENTS).clamp(1, WORKGROUP);
        let temperature = limits.temperature.to_bits();
        let min_p = limits.min_p.to_bits();
        let sums = if is_all {
            ranked.clone()
        } else {
            let sums = self.0.allocate(groups)?;
            let kernel = ("add_weights", kernels::ADD_WEIGHTS);
            let params = [len as u32, groups as u32, temperature, min_p];
            self.record(kernel, &params, &[logits, &ranked], &sums, groups)?;
            sums
        };
        let params = [
            count as u32,
            u32::from(is_all),
            groups as u32,
            temperature,
            limits.top_p.to_bits(),
            min_p,
            uniform.to_bits(),
            at as u32,
        ];
        let kernel = ("draw", kernels::DRAW);
        self.record(kernel, &params, &[&ranked, &sums], index, 1)
    }

    /// Records the ranking of elements; returns where the best ones are, as pairs of a value and its index.
    fn rank(&mut self, x: &GpuBuffer) -> Result<GpuBuffer> {
        let kernel = ("rank", kernels::RANK);
        let (mut from, mut len, mut is_pairs) = (x.clone(), x.len(), false);
        loop {
            let groups = len.div_ceil(CHUNK).max(1);
            let best = self.0.allocate(2 * RANKED * groups)?;
            let params = [len as u32, u32::from(is_pairs)];
            self.record(kernel, &params, &[&from], &best, groups)?;
            if groups == 1 {
                return Ok(best);
            }
            (from, len, is_pairs) = (best, RANKED * groups, true);
        }
    }
}

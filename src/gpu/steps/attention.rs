//! Records the kernels that place heads, and those of attention.

use super::GpuPass;
use crate::error::Result;
use crate::gpu::kernels;
use crate::gpu::recorder::GpuBuffer;
use crate::graph::steps::{Attention, HeadPlaces, check_head};
use crate::tensor::CacheType;

/// The number of tokens from which a workgroup computes the attention of [`TOKENS_OF_TILE`] tokens.
const ATTENTION_TILED_FROM: usize = 64;
const TOKENS_OF_TILE: usize = 16;
/// The length of the longest head for which it does.
const MOST_TILED_HEAD: usize = 128;

/// The kernels of attention for each type of cache: of one token to a workgroup, of the next token, and of several.
const ATTENTION: [(&str, &str); 3] = [
    ("attend", kernels::ATTEND),
    ("attend_f16", kernels::ATTEND_F16),
    ("attend_q8_0", kernels::ATTEND_Q8_0),
];
const ATTENTION_OF_NEXT: [(&str, &str); 3] = [
    ("attend_next", kernels::ATTEND_NEXT),
    ("attend_next_f16", kernels::ATTEND_NEXT_F16),
    ("attend_next_q8_0", kernels::ATTEND_NEXT_Q8_0),
];
const TILED_ATTENTION: [(&str, &str); 3] = [
    ("attend_tiled", kernels::ATTEND_TILED),
    ("attend_tiled_f16", kernels::ATTEND_TILED_F16),
    ("attend_tiled_q8_0", kernels::ATTEND_TILED_Q8_0),
];

impl GpuPass<'_> {
    /// Records `StepPass::place`.
    pub(super) fn place_heads(
        &mut self,
        x: &GpuBuffer,
        heads: &HeadPlaces<'_, GpuBuffer>,
        outputs: [&GpuBuffer; 2],
    ) -> Result<()> {
        check_head(heads.head_len, heads.cache_type)?;
        let params = [
            heads.tokens as u32,
            heads.heads as u32,
            heads.kv_heads as u32,
            heads.head_len as u32,
            heads.position as u32,
            heads.capacity as u32,
            heads.rows.before as u32,
        ];
        let params = [&params[..], &turning(heads)].concat();
        let [first, second] = heads.gains_or(x);
        let kernel = match heads.cache_type {
            CacheType::F32 => ("place_heads", kernels::PLACE_HEADS),
            CacheType::F16 => ("place_heads_f16", kernels::PLACE_HEADS_F16),
            CacheType::Q8_0 => ("place_heads_q8_0", kernels::PLACE_HEADS_Q8_0),
        };
        let inputs = [x, first, second, heads.rotation.angles];
        let workgroups = heads.tokens * (heads.heads + 2 * heads.kv_heads);
        self.record_to(kernel, &params, &inputs, &outputs, workgroups)
    }

    /// Records `StepPass::attend`.
    pub(super) fn attend_placed(
        &mut self,
        inputs: [&GpuBuffer; 2],
        attention: &Attention,
        [parts, mixed]: [&GpuBuffer; 2],
    ) -> Result<()> {
        check_head(attention.head_len, attention.cache_type)?;
        let (kernel, tokens) = attention_kernel(attention);
        let splits = if tokens > 1 {
            1
        } else {
            self.splits(attention)
        };
        let params = attention_params(attention, splits);
        let workgroups = attention.tokens.div_ceil(tokens) * attention.heads * splits;
        let to = if splits == 1 { mixed } else { parts };
        self.record(kernel, &params, &inputs, to, workgroups)?;
        self.add_splits(attention, splits, [parts, mixed])
    }

    /// Records `StepPass::attend_within`.
    pub(super) fn attend_texts(
        &mut self,
        inputs: [&GpuBuffer; 3],
        attention: &Attention,
        mixed: &GpuBuffer,
    ) -> Result<()> {
        check_head(attention.head_len, attention.cache_type)?;
        let params = attention_params(attention, 1);
        let workgroups = attention.tokens * attention.heads;
        let kernel = ("attend_within", kernels::ATTEND_WITHIN);
        self.record(kernel, &params, &inputs, mixed, workgroups)
    }

    /// Records the attention of one token, whose heads the same kernel places.
    pub(super) fn attend_next(
        &mut self,
        x: &GpuBuffer,
        heads: &HeadPlaces<'_, GpuBuffer>,
        cached: &GpuBuffer,
        attention: &Attention,
        [parts, mixed]: [&GpuBuffer; 2],
    ) -> Result<()> {
        check_head(attention.head_len, attention.cache_type)?;
        let splits = self.splits(attention);
        let params = attention_params(attention, splits);
        let params = [&params[..], &turning(heads)].concat();
        let [first, second] = heads.gains_or(x);
        let inputs = [x, first, second, heads.rotation.angles];
        let to = if splits == 1 { mixed } else { parts };
        let kernel = ATTENTION_OF_NEXT[attention.cache_type as usize];
        self.record_to(
            kernel,
            &params,
            &inputs,
            &[cached, to],
            attention.heads * splits,
        )?;
        self.add_splits(attention, splits, [parts, mixed])
    }

    /// Returns the workgroups that share the positions of a head.
    fn splits(&self, attention: &Attention) -> usize {
        // A software adapter has no more threads than heads.
        if self.0.gpu.adapter().software {
            1
        } else {
            attention.splits()
        }
    }

    /// Adds up the partial results of splits, if there are several.
    fn add_splits(
        &mut self,
        attention: &Attention,
        splits: usize,
        [parts, mixed]: [&GpuBuffer; 2],
    ) -> Result<()> {
        if splits == 1 {
            return Ok(());
        }
        let heads = attention.tokens * attention.heads;
        let before = attention.rows.before * attention.heads;
        let params = [heads, attention.head_len / 4, splits, before].map(|size| size as u32);
        let kernel = ("add_splits", kernels::ADD_SPLITS);
        self.record(kernel, &params, &[parts], mixed, heads)
    }
}

/// Returns how heads are normalised and rotated: the last parameters of kernels that place heads.
fn turning(heads: &HeadPlaces<'_, GpuBuffer>) -> [u32; 5] {
    let rotation = &heads.rotation;
    let (gains, epsilon) = heads.norm_parameters();
    [
        rotation.pairs as u32,
        u32::from(rotation.neighbours),
        gains,
        epsilon.to_bits(),
        rotation.query_angles as u32,
    ]
}

fn attention_params(attention: &Attention, splits: usize) -> [u32; 11] {
    [
        attention.tokens as u32,
        attention.heads as u32,
        attention.kv_heads as u32,
        attention.head_len as u32,
        attention.position as u32,
        attention.capacity as u32,
        attention.window.unwrap_or(0) as u32,
        attention.scale.to_bits(),
        splits as u32,
        attention.soft_cap.unwrap_or(0.0).to_bits(),
        attention.rows.before as u32,
    ]
}

/// Returns the name and the text of the kernel for an attention, and the tokens that a workgroup computes.
fn attention_kernel(attention: &Attention) -> ((&'static str, &'static str), usize) {
    let (len, kind) = (attention.head_len, attention.cache_type as usize);
    let is_tiled = len <= MOST_TILED_HEAD && len.is_multiple_of(16) && attention.rows.before == 0;
    if attention.tokens >= ATTENTION_TILED_FROM && is_tiled {
        (TILED_ATTENTION[kind], TOKENS_OF_TILE)
    } else {
        (ATTENTION[kind], 1)
    }
}

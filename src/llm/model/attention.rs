//! Attention to the positions so far, on SIMD.

use super::{Config, KvCache};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::ops::{Matmul, Op};
use crate::simd::{Cpu, execute};

/// Scores and results of attention, kept from layer to layer.
pub(super) struct Attention {
    tokens: usize,
    queries: Vec<f32>,
    scores: Vec<f32>,
    weights: Vec<f32>,
    mixed: Vec<f32>,
}

impl Attention {
    /// Memory for a block of tokens that ends at position `len`.
    pub(super) fn new(config: &Config, tokens: usize, len: usize) -> Result<Self> {
        Ok(Self {
            tokens,
            queries: try_zeros(tokens * config.head_len)?,
            scores: try_zeros(tokens * len)?,
            weights: try_zeros(tokens * len)?,
            mixed: try_zeros(tokens * config.head_len)?,
        })
    }

    /// Writes every head's mix of values to `out`. The block's keys and values are in the cache
    /// from position `first` on. With a window a token sees as many positions, its own included.
    pub(super) fn run(
        &mut self,
        cpu: Cpu,
        config: &Config,
        (cache, layer, first): (&KvCache, usize, usize),
        window: Option<usize>,
        queries: &[f32],
        out: &mut [f32],
    ) -> Result<()> {
        let (head_len, row) = (config.head_len, config.heads * config.head_len);
        let scale = config.score_scale();
        for head in 0..config.heads {
            let kv_head = head / (config.heads / config.kv_heads);
            let columns = head * head_len..(head + 1) * head_len;
            let rows = self.queries.chunks_exact_mut(head_len);
            for (to, from) in rows.zip(queries.chunks_exact(row)) {
                for (to, from) in to.iter_mut().zip(&from[columns.clone()]) {
                    *to = from * scale;
                }
            }
            let cached = cache.read(layer, kv_head, first + self.tokens);
            self.head(cpu, cached, first, window)?;
            let rows = self.mixed.chunks_exact(head_len);
            for (from, to) in rows.zip(out.chunks_exact_mut(row)) {
                to[columns.clone()].copy_from_slice(from);
            }
        }
        Ok(())
    }

    /// One head: softmax of the scores that its tokens see, times the values.
    fn head(
        &mut self,
        cpu: Cpu,
        [keys, values]: [&[f32]; 2],
        first: usize,
        window: Option<usize>,
    ) -> Result<()> {
        let (tokens, len) = (self.tokens, first + self.tokens);
        let head_len = keys.len() / len;
        let options = Matmul::new(tokens, head_len, len).transpose_b();
        execute(
            cpu,
            &Op::MatmulWith { options },
            &[&self.queries, keys],
            &mut self.scores,
        )?;
        for (token, scores) in self.scores.chunks_exact_mut(len).enumerate() {
            let end = first + token + 1;
            let start = window.map_or(0, |window| end.saturating_sub(window));
            scores[..start].fill(f32::NEG_INFINITY);
            scores[end..].fill(f32::NEG_INFINITY);
        }
        let softmax = Op::SoftmaxRows {
            rows: tokens,
            cols: len,
        };
        execute(cpu, &softmax, &[&self.scores], &mut self.weights)?;
        let product = Op::Matmul {
            m: tokens,
            k: len,
            n: head_len,
        };
        execute(cpu, &product, &[&self.weights, values], &mut self.mixed)
    }
}

//! Rotation of queries and keys, and attention to the positions so far.

use super::architecture::Rope;
use super::{Config, KvCache};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::ops::{Matmul, Op};
use crate::simd::{Cpu, execute};

/// Cosines and sines of some positions' angles, computed once for all layers.
pub(super) struct Rotation {
    rope: Rope,
    head_len: usize,
    rotated: usize,
    /// A pair for each position and frequency.
    angles: Vec<(f32, f32)>,
}

impl Rotation {
    pub(super) fn new(config: &Config, first: usize, tokens: usize) -> Self {
        let mut angles = Vec::new();
        for position in first..first + tokens {
            for pair in 0..config.rotated / 2 {
                let exponent = -((2 * pair) as f64) / config.rotated as f64;
                let angle = position as f64 * libm::pow(config.rope_base, exponent);
                angles.push((libm::cos(angle) as f32, libm::sin(angle) as f32));
            }
        }
        Self {
            rope: config.architecture.rope,
            head_len: config.head_len,
            rotated: config.rotated,
            angles,
        }
    }

    /// Rotates the heads of rows, of which there is one for each position.
    pub(super) fn apply(&self, rows: &mut [f32], heads: usize) {
        let pairs = self.rotated / 2;
        let (stride, step) = match self.rope {
            Rope::Interleaved => (1, 2),
            Rope::Halves => (pairs, 1),
        };
        let rows = rows.chunks_exact_mut(heads * self.head_len);
        for (row, angles) in rows.zip(self.angles.chunks_exact(pairs)) {
            for head in row.chunks_exact_mut(self.head_len) {
                for (pair, &(cos, sin)) in angles.iter().enumerate() {
                    let (a, b) = (head[pair * step], head[pair * step + stride]);
                    head[pair * step] = a * cos - b * sin;
                    head[pair * step + stride] = a * sin + b * cos;
                }
            }
        }
    }
}

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
    /// behind its `len` positions.
    pub(super) fn run(
        &mut self,
        cpu: Cpu,
        config: &Config,
        (cache, layer): (&KvCache, usize),
        queries: &[f32],
        out: &mut [f32],
    ) -> Result<()> {
        let (head_len, row) = (config.head_len, config.heads * config.head_len);
        for head in 0..config.heads {
            let kv_head = head / (config.heads / config.kv_heads);
            let columns = head * head_len..(head + 1) * head_len;
            let scale = 1.0 / libm::sqrtf(head_len as f32);
            for (to, from) in self
                .queries
                .chunks_exact_mut(head_len)
                .zip(queries.chunks_exact(row))
            {
                for (to, from) in to.iter_mut().zip(&from[columns.clone()]) {
                    *to = from * scale;
                }
            }
            self.head(
                cpu,
                cache.read(layer, kv_head, cache.len + self.tokens),
                cache.len,
            )?;
            for (from, to) in self
                .mixed
                .chunks_exact(head_len)
                .zip(out.chunks_exact_mut(row))
            {
                to[columns.clone()].copy_from_slice(from);
            }
        }
        Ok(())
    }

    /// One head: softmax of the causal scores, times the values.
    fn head(&mut self, cpu: Cpu, [keys, values]: [&[f32]; 2], first: usize) -> Result<()> {
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
            scores[first + token + 1..].fill(f32::NEG_INFINITY);
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

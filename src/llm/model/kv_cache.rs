//! Keys and values of the tokens so far, in memory that is allocated once.

use super::Config;
use crate::alloc::try_zeros;
use crate::error::Result;
use std::ops::Range;

/// The cache of a session: of each layer and head the keys of all positions, one after the other,
/// and the values likewise.
#[derive(Debug)]
pub(crate) struct KvCache {
    keys: Vec<f32>,
    values: Vec<f32>,
    /// Positions that there is room for.
    pub(crate) capacity: usize,
    /// Positions that are filled.
    pub(crate) len: usize,
    heads: usize,
    head_len: usize,
}

impl KvCache {
    /// Returns the number of elements of the keys, which is that of the values, saturating.
    pub(crate) fn elements(config: &Config, capacity: usize) -> usize {
        let sizes = [config.kv_heads, capacity, config.head_len];
        sizes.into_iter().fold(config.layers, usize::saturating_mul)
    }

    pub(crate) fn new(config: &Config, capacity: usize) -> Result<Self> {
        let len = Self::elements(config, capacity);
        Ok(Self {
            keys: try_zeros(len)?,
            values: try_zeros(len)?,
            capacity,
            len: 0,
            heads: config.kv_heads,
            head_len: config.head_len,
        })
    }

    /// The first `len` positions of a layer and head.
    fn range(&self, layer: usize, head: usize, len: usize) -> Range<usize> {
        let start = (layer * self.heads + head) * self.capacity * self.head_len;
        start..start + len * self.head_len
    }

    /// The keys and the values of the first `len` positions.
    pub(super) fn read(&self, layer: usize, head: usize, len: usize) -> [&[f32]; 2] {
        let range = self.range(layer, head, len);
        [&self.keys[range.clone()], &self.values[range]]
    }

    /// Writes the keys and values of tokens behind those that are filled. Both are rows of all heads.
    pub(super) fn write(&mut self, layer: usize, keys: &[f32], values: &[f32]) {
        let row = self.heads * self.head_len;
        for (token, (keys, values)) in keys
            .chunks_exact(row)
            .zip(values.chunks_exact(row))
            .enumerate()
        {
            for head in 0..self.heads {
                let start = self.range(layer, head, self.len + token).end;
                let (to, from) = (start..start + self.head_len, head * self.head_len);
                self.keys[to.clone()].copy_from_slice(&keys[from..from + self.head_len]);
                self.values[to].copy_from_slice(&values[from..from + self.head_len]);
            }
        }
    }
}

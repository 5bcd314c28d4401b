//! Keys and values of the tokens so far, in memory that is allocated once.

use super::Config;
use crate::alloc::try_zeros;
use crate::error::Result;
use std::ops::Range;

/// The cache of a session: of each layer and head the keys of all positions, one after the other,
/// and the values likewise.
#[derive(Debug)]
pub(super) struct KvCache {
    keys: Vec<f32>,
    values: Vec<f32>,
    capacity: usize,
    heads: usize,
    head_len: usize,
}

impl KvCache {
    pub(super) fn new(config: &Config) -> Result<Self> {
        let len = config.cache_len();
        Ok(Self {
            keys: try_zeros(len)?,
            values: try_zeros(len)?,
            capacity: config.capacity,
            heads: config.kv_heads,
            head_len: config.head_len,
        })
    }

    /// The keys and the values of a layer: for each head rows of as many positions as there is room for.
    pub(super) fn layer(&self, layer: usize) -> [&[f32]; 2] {
        let len = self.heads * self.capacity * self.head_len;
        let range = layer * len..(layer + 1) * len;
        [&self.keys[range.clone()], &self.values[range]]
    }

    /// Writes the keys of tokens from position `first` on, rows of all heads.
    pub(super) fn write_keys(&mut self, layer: usize, first: usize, rows: &[f32]) {
        self.for_each_head(layer, first, rows, |cache, to, from| {
            cache.keys[to].copy_from_slice(from);
        });
    }

    /// Writes the values of tokens from position `first` on, rows of all heads.
    pub(super) fn write_values(&mut self, layer: usize, first: usize, rows: &[f32]) {
        self.for_each_head(layer, first, rows, |cache, to, from| {
            cache.values[to].copy_from_slice(from);
        });
    }

    fn for_each_head(
        &mut self,
        layer: usize,
        first: usize,
        rows: &[f32],
        write: impl Fn(&mut Self, Range<usize>, &[f32]),
    ) {
        for (token, row) in rows.chunks_exact(self.heads * self.head_len).enumerate() {
            for (head, from) in row.chunks_exact(self.head_len).enumerate() {
                let head = (layer * self.heads + head) * self.capacity;
                let start = (head + first + token) * self.head_len;
                write(self, start..start + self.head_len, from);
            }
        }
    }
}

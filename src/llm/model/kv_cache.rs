//! Keys and values of the tokens so far, in memory that is allocated once.

use super::Config;
use crate::alloc::try_zeros;
use crate::error::Result;
use std::ops::Range;

/// The cache of a session: of each layer the keys and then the values. Both have for each head a row for each position
/// that there is room for.
#[derive(Debug)]
pub(super) struct KvCache {
    values: Vec<f32>,
    capacity: usize,
    heads: usize,
    head_len: usize,
}

/// The halves of a layer.
const KEYS: usize = 0;
const VALUES: usize = 1;

impl KvCache {
    pub(super) fn new(config: &Config) -> Result<Self> {
        Ok(Self {
            values: try_zeros(config.cache_len().saturating_mul(2))?,
            capacity: config.capacity,
            heads: config.kv_heads,
            head_len: config.head_len,
        })
    }

    /// The keys and the values of a layer: for each head rows of as many positions as there is room for.
    pub(super) fn layer(&self, layer: usize) -> [&[f32]; 2] {
        let len = self.heads * self.capacity * self.head_len;
        let (keys, values) = self.values[2 * layer * len..2 * (layer + 1) * len].split_at(len);
        [keys, values]
    }

    /// Writes the keys of tokens from position `first` on, rows of all heads.
    pub(super) fn write_keys(&mut self, layer: usize, first: usize, rows: &[f32]) {
        self.write(2 * layer + KEYS, first, rows);
    }

    /// Writes the values of tokens from position `first` on, rows of all heads.
    pub(super) fn write_values(&mut self, layer: usize, first: usize, rows: &[f32]) {
        self.write(2 * layer + VALUES, first, rows);
    }

    fn write(&mut self, half: usize, first: usize, rows: &[f32]) {
        for (token, row) in rows.chunks_exact(self.heads * self.head_len).enumerate() {
            for (head, from) in row.chunks_exact(self.head_len).enumerate() {
                let head = (half * self.heads + head) * self.capacity;
                let start = (head + first + token) * self.head_len;
                self.values[start..start + self.head_len].copy_from_slice(from);
            }
        }
    }

    /// Returns the rows of the first `len` positions, one head after the other.
    pub(super) fn export(&self, len: usize) -> Result<Vec<f32>> {
        let mut values = try_zeros(self.head_rows(len).map(|rows| rows.len()).sum())?;
        let mut rest = &mut values[..];
        for rows in self.head_rows(len) {
            if let Some(to) = rest.split_off_mut(..rows.len()) {
                to.copy_from_slice(&self.values[rows]);
            }
        }
        Ok(values)
    }

    /// Replaces the rows of the first `len` positions by those that [`KvCache::export`] returned.
    pub(super) fn import(&mut self, len: usize, values: &[f32]) {
        let mut rest = values;
        for rows in self.head_rows(len) {
            if let Some(from) = rest.split_off(..rows.len()) {
                self.values[rows].copy_from_slice(from);
            }
        }
    }

    /// The rows of all layers as they lie in memory.
    pub(super) fn layers(&self) -> &[f32] {
        &self.values
    }

    pub(super) fn set_layers(&mut self, values: &[f32]) {
        self.values.copy_from_slice(values);
    }

    /// The range of each head's first `len` rows.
    fn head_rows(&self, len: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let (stride, len) = (self.capacity * self.head_len, len * self.head_len);
        (0..self.values.len() / stride).map(move |head| head * stride..head * stride + len)
    }
}

//! Keys and values of the tokens so far, in memory that grows with them.

use super::Config;
use crate::alloc::{try_resize, try_zeros};
use crate::error::Result;
use crate::simd::pack_row;

/// The positions that a layer has room for at first. Each time that they are full, the room doubles, so that a long
/// context takes no memory before it is used, and no token is copied more than about once.
const FIRST_ROOM: usize = 128;

/// The cache of a session.
#[derive(Debug)]
pub(super) struct KvCache {
    layers: Vec<Layer>,
    heads: usize,
    head_len: usize,
    /// Words of a row: an element each, or two f16.
    row: usize,
    packed: bool,
    /// The most positions.
    capacity: usize,
}

/// The keys and the values of a layer, in words. Both have for each head a row for each position that there is room for.
#[derive(Clone, Debug, Default)]
struct Layer {
    halves: [Vec<f32>; 2],
    room: usize,
}

/// The halves of a layer.
const KEYS: usize = 0;
const VALUES: usize = 1;

impl KvCache {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            layers: vec![Layer::default(); config.layers],
            heads: config.kv_heads,
            head_len: config.head_len,
            row: config.cached_row(),
            packed: config.packed(),
            capacity: config.capacity,
        }
    }

    /// The keys and the values of a layer, and the number of rows that each head has.
    pub(super) fn layer(&self, layer: usize) -> ([&[f32]; 2], usize) {
        let Layer { halves, room } = &self.layers[layer];
        (halves.each_ref().map(Vec::as_slice), *room)
    }

    /// Writes the keys of tokens from position `first` on, rows of all heads.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn write_keys(&mut self, layer: usize, first: usize, rows: &[f32]) -> Result<()> {
        self.write(layer, KEYS, first, rows)
    }

    /// Writes the values of tokens from position `first` on, rows of all heads.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn write_values(&mut self, layer: usize, first: usize, rows: &[f32]) -> Result<()> {
        self.write(layer, VALUES, first, rows)
    }

    fn write(&mut self, layer: usize, half: usize, first: usize, rows: &[f32]) -> Result<()> {
        let (heads, len, words) = (self.heads, self.head_len, self.row);
        let tokens = rows.len() / (heads * len);
        self.reserve(layer, first + tokens)?;
        let Layer { halves, room } = &mut self.layers[layer];
        for (token, row) in rows.chunks_exact(heads * len).enumerate() {
            for (head, from) in row.chunks_exact(len).enumerate() {
                let start = (head * *room + first + token) * words;
                let to = &mut halves[half][start..start + words];
                if self.packed {
                    pack_row(from, to);
                } else {
                    to.copy_from_slice(from);
                }
            }
        }
        Ok(())
    }

    /// Gives a layer room for `positions`, which are at most the capacity.
    fn reserve(&mut self, layer: usize, positions: usize) -> Result<()> {
        let (heads, len) = (self.heads, self.row);
        let layer = &mut self.layers[layer];
        if positions <= layer.room {
            return Ok(());
        }
        let doubled = positions.max(2 * layer.room).max(FIRST_ROOM);
        let room = doubled.min(self.capacity).max(positions);
        // Memory for both halves before either changes.
        for half in &mut layer.halves {
            try_resize(half, heads.saturating_mul(room).saturating_mul(len))?;
        }
        for half in &mut layer.halves {
            // From the last head on, whose rows move farthest.
            for head in (1..heads).rev() {
                let from = head * layer.room * len;
                half.copy_within(from..from + layer.room * len, head * room * len);
            }
        }
        layer.room = room;
        Ok(())
    }

    /// Returns the rows of the first `len` positions, one head after the other.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn export(&self, len: usize) -> Result<Vec<f32>> {
        let part = self.heads * len * self.row;
        let mut values = try_zeros(2 * self.layers.len() * part)?;
        let halves = self
            .layers
            .iter()
            .flat_map(|layer| layer.halves.iter().map(|half| (half, layer.room)));
        for ((half, room), to) in halves.zip(values.chunks_exact_mut(part.max(1))) {
            copy_rows(half, room * self.row, to, len * self.row);
        }
        Ok(values)
    }

    /// Replaces the rows of the first `len` positions by those that [`KvCache::export`] returned.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn import(&mut self, len: usize, values: &[f32]) -> Result<()> {
        for layer in 0..self.layers.len() {
            self.reserve(layer, len)?;
        }
        let part = self.heads * len * self.row;
        let halves = self.layers.iter_mut().flat_map(|layer| {
            let Layer { halves, room } = layer;
            halves.iter_mut().map(|half| (half, *room))
        });
        for ((half, room), from) in halves.zip(values.chunks_exact(part.max(1))) {
            copy_rows(from, len * self.row, half, room * self.row);
        }
        Ok(())
    }
}

/// Copies as much of each head as both have: heads have `stride` elements before and `to_stride` after.
pub(super) fn copy_rows(from: &[f32], stride: usize, to: &mut [f32], to_stride: usize) {
    let len = stride.min(to_stride);
    if len == 0 {
        return;
    }
    let heads = from
        .chunks_exact(stride)
        .zip(to.chunks_exact_mut(to_stride));
    for (from, to) in heads {
        to[..len].copy_from_slice(&from[..len]);
    }
}

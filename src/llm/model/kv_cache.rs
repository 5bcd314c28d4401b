//! Keys and values of the tokens so far, in memory that grows with them.

use super::{Config, KeptPositions};
use crate::alloc::{try_resize, try_zeros};
use crate::error::Result;
use crate::graph::steps::BLOCK;
use crate::simd::pack_row;
use crate::tensor::CacheType;

/// The positions that a layer has room for at first. Each time that they are full, the room doubles, so that a long
/// context takes no memory before it is used, and no token is copied more than about once.
const FIRST_ROOM: usize = 128;

/// The cache of a session.
#[derive(Debug)]
pub(super) struct KvCache {
    layers: Vec<Layer>,
    heads: usize,
    head_len: usize,
    kind: CacheType,
    /// The words of a row.
    row: usize,
    /// The largest number of positions.
    capacity: usize,
}

/// The keys and the values of a layer, in words. Both have for each head a row for each position that there is room for.
#[derive(Clone, Debug, Default)]
struct Layer {
    halves: [Vec<f32>; 2],
    room: usize,
    /// The position of the first row. It rises where the layer keeps the last positions only.
    first: usize,
    /// The last positions that the layer keeps.
    kept: usize,
}

/// The halves of a layer.
const KEYS: usize = 0;
const VALUES: usize = 1;

/// The keys and the values of a layer as attention reads them.
pub(super) struct CachedLayer<'a> {
    pub(super) keys: &'a [f32],
    pub(super) values: &'a [f32],
    /// The rows of a head.
    pub(super) room: usize,
    /// The position of the first row.
    pub(super) first: usize,
}

impl KvCache {
    pub(super) fn new(config: &Config) -> Self {
        let layers = (0..config.layers).map(|layer| Layer {
            kept: config.room(layer),
            ..Layer::default()
        });
        Self {
            layers: layers.collect(),
            heads: config.kv_heads,
            head_len: config.head_len,
            kind: config.cache_type,
            row: config.cached_row(),
            capacity: config.capacity,
        }
    }

    pub(super) fn layer(&self, layer: usize) -> CachedLayer<'_> {
        let layer = &self.layers[layer];
        let [keys, values] = layer.halves.each_ref().map(Vec::as_slice);
        CachedLayer {
            keys,
            values,
            room: layer.room,
            first: layer.first,
        }
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
        self.make_room(layer, first, tokens)?;
        let layer = &mut self.layers[layer];
        let first = first - layer.first;
        for (token, row) in rows.chunks_exact(heads * len).enumerate() {
            for (head, from) in row.chunks_exact(len).enumerate() {
                let start = (head * layer.room + first + token) * words;
                let to = &mut layer.halves[half][start..start + words];
                pack_row(self.kind, from, to);
            }
        }
        Ok(())
    }

    /// Makes room in a layer for `tokens` rows from position `first` on.
    fn make_room(&mut self, layer: usize, first: usize, tokens: usize) -> Result<()> {
        let layer = &mut self.layers[layer];
        let kept = layer.kept;
        let most = self.capacity.min(kept + BLOCK);
        layer.first = layer.first.min(first);
        if first + tokens - layer.first > most {
            // Rows before these. Moving them is seldom, as a block's worth of room becomes free.
            layer.drop_before(first - (kept - tokens), self.row);
        }
        let positions = first + tokens - layer.first;
        if positions > layer.room {
            let doubled = positions.max(2 * layer.room).max(FIRST_ROOM);
            layer.grow(doubled.min(most), self.heads, self.row)?;
        }
        Ok(())
    }

    /// Returns the rows of some positions, one head after the other.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn export(&self, config: &Config, kept: KeptPositions) -> Result<Vec<f32>> {
        let mut values = try_zeros(config.kept_words(kept))?;
        let mut rest = &mut values[..];
        for (index, layer) in self.layers.iter().enumerate() {
            let positions = config.positions(index, kept);
            let len = positions.len() * self.row;
            let start = positions.start.saturating_sub(layer.first) * self.row;
            for head in layer.heads(self.row) {
                let to = rest.split_off_mut(..len).unwrap_or_default();
                to.copy_from_slice(&head[start..start + len]);
            }
        }
        Ok(values)
    }

    /// Replaces the rows of some positions by rows that [`KvCache::export`] returned.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn import(
        &mut self,
        config: &Config,
        kept: KeptPositions,
        values: &[f32],
    ) -> Result<()> {
        let mut rest = values;
        for index in 0..self.layers.len() {
            let positions = config.positions(index, kept);
            self.layers[index].first = positions.start;
            self.make_room(index, positions.start, positions.len())?;
            let len = positions.len() * self.row;
            for head in self.layers[index].heads_mut(self.row) {
                let from = rest.split_off(..len).unwrap_or_default();
                head[..len].copy_from_slice(from);
            }
        }
        Ok(())
    }
}

impl Layer {
    /// Gives the layer room for more positions.
    fn grow(&mut self, room: usize, heads: usize, row: usize) -> Result<()> {
        // Memory for both halves before either changes.
        for half in &mut self.halves {
            try_resize(half, heads.saturating_mul(room).saturating_mul(row))?;
        }
        let len = self.room * row;
        for half in &mut self.halves {
            // From the last head on, whose rows move farthest.
            for head in (1..heads).rev() {
                half.copy_within(head * len..(head + 1) * len, head * room * row);
            }
        }
        self.room = room;
        Ok(())
    }

    /// Forgets the rows of positions before `first`.
    fn drop_before(&mut self, first: usize, row: usize) {
        let dropped = (first - self.first) * row;
        for head in self.heads_mut(row) {
            head.copy_within(dropped.., 0);
        }
        self.first = first;
    }

    /// The rows of each head's keys, then those of its values.
    fn heads(&self, row: usize) -> impl Iterator<Item = &[f32]> {
        let len = (self.room * row).max(1);
        self.halves
            .iter()
            .flat_map(move |half| half.chunks_exact(len))
    }

    fn heads_mut(&mut self, row: usize) -> impl Iterator<Item = &mut [f32]> {
        let len = (self.room * row).max(1);
        self.halves
            .iter_mut()
            .flat_map(move |half| half.chunks_exact_mut(len))
    }
}

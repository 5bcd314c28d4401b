//! Keys and values of a layer, in memory that grows with the tokens.

use super::pass::CpuPass;
use crate::alloc::try_resize;
use crate::error::Result;
use crate::graph::steps::{BLOCK, CacheLayout, StepCache};
use crate::simd::{Cpu, pack_row};
use std::ops::Range;
use std::sync::{Arc, RwLock};

/// The positions that a layer has room for at first. Each time that they are full, the room doubles, so that a long
/// context takes no memory before it is used, and no token is copied more than about once.
const FIRST_ROOM: usize = 128;

/// The keys and the values of a layer, in words. Both have for each head a row for each position that there is room for.
#[derive(Debug)]
pub(crate) struct LayerCache {
    layout: CacheLayout,
    halves: [Vec<f32>; 2],
    room: usize,
    /// The position of the first row. It rises where the layer keeps the last positions only.
    first: usize,
}

/// The cache of a layer, which recorded steps share.
pub(crate) type SharedCache = Arc<RwLock<LayerCache>>;

impl StepCache<Cpu> for SharedCache {
    fn new(layout: CacheLayout, _: &mut CpuPass) -> Result<Self> {
        Ok(Arc::new(RwLock::new(LayerCache::new(layout))))
    }

    fn memory(&self) -> &Self {
        self
    }
}

/// The halves of a layer.
pub(super) const KEYS: usize = 0;
pub(super) const VALUES: usize = 1;

/// The keys and the values of a layer as attention reads them.
pub(super) struct CachedLayer<'a> {
    pub(super) keys: &'a [f32],
    pub(super) values: &'a [f32],
    /// The rows of a head.
    pub(super) room: usize,
    /// The position of the first row.
    pub(super) first: usize,
}

impl LayerCache {
    fn new(layout: CacheLayout) -> Self {
        Self {
            layout,
            halves: Default::default(),
            room: 0,
            first: 0,
        }
    }

    pub(super) fn layer(&self) -> CachedLayer<'_> {
        let [keys, values] = self.halves.each_ref().map(Vec::as_slice);
        CachedLayer {
            keys,
            values,
            room: self.room,
            first: self.first,
        }
    }

    /// Writes a half of tokens from position `first` on, rows of all heads.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn write(&mut self, half: usize, first: usize, rows: &[f32]) -> Result<()> {
        let (layout, words) = (self.layout, self.layout.row());
        let (len, all) = (layout.head_len, layout.heads * layout.head_len);
        self.make_room(first, rows.len() / all)?;
        let first = first - self.first;
        for (token, row) in rows.chunks_exact(all).enumerate() {
            for (head, from) in row.chunks_exact(len).enumerate() {
                let start = (head * self.room + first + token) * words;
                let to = &mut self.halves[half][start..start + words];
                pack_row(layout.cache_type, from, to);
            }
        }
        Ok(())
    }

    /// Makes room for `tokens` rows from position `first` on.
    fn make_room(&mut self, first: usize, tokens: usize) -> Result<()> {
        let kept = self.layout.room;
        let most = self.layout.capacity.min(kept + BLOCK);
        self.first = self.first.min(first);
        if first + tokens - self.first > most {
            // Rows before these. Moving them is seldom, as a block's worth of room becomes free.
            self.drop_before(first - (kept - tokens));
        }
        let positions = first + tokens - self.first;
        if positions > self.room {
            let doubled = positions.max(2 * self.room).max(FIRST_ROOM);
            self.grow(doubled.min(most))?;
        }
        Ok(())
    }

    /// Copies the rows of some positions, one head after the other: keys, then values.
    pub(crate) fn export(&self, positions: Range<usize>, mut rows: &mut [f32]) {
        let len = positions.len() * self.layout.row();
        let start = positions.start.saturating_sub(self.first) * self.layout.row();
        for head in self.heads() {
            let to = rows.split_off_mut(..len).unwrap_or_default();
            to.copy_from_slice(&head[start..start + len]);
        }
    }

    /// Replaces the rows of some positions by those that [`LayerCache::export`] copied.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn import(&mut self, positions: Range<usize>, mut rows: &[f32]) -> Result<()> {
        self.first = positions.start;
        self.make_room(positions.start, positions.len())?;
        let len = positions.len() * self.layout.row();
        for head in self.heads_mut() {
            let from = rows.split_off(..len).unwrap_or_default();
            head[..len].copy_from_slice(from);
        }
        Ok(())
    }

    /// Gives the layer room for more positions.
    fn grow(&mut self, room: usize) -> Result<()> {
        let (heads, row) = (self.layout.heads, self.layout.row());
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
    fn drop_before(&mut self, first: usize) {
        let dropped = (first - self.first) * self.layout.row();
        for head in self.heads_mut() {
            head.copy_within(dropped.., 0);
        }
        self.first = first;
    }

    /// The rows of each head's keys, then those of its values.
    fn heads(&self) -> impl Iterator<Item = &[f32]> {
        let len = (self.room * self.layout.row()).max(1);
        self.halves
            .iter()
            .flat_map(move |half| half.chunks_exact(len))
    }

    fn heads_mut(&mut self) -> impl Iterator<Item = &mut [f32]> {
        let len = (self.room * self.layout.row()).max(1);
        self.halves
            .iter_mut()
            .flat_map(move |half| half.chunks_exact_mut(len))
    }
}

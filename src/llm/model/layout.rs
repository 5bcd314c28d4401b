//! The sizes of keys and values in a sequence's memory.
//!
//! A layer has room for all positions of a session. A layer with a window keeps fewer: the rows of its keys and values
//! form a ring, in which a new position replaces one that no token sees any more.

use super::Config;
use crate::graph::steps::{CacheLayout, MOST_BLOCK};
use std::ops::Range;

/// The positions before its window that a layer keeps: a block of tokens is written before the first of them attends.
/// Between blocks they allow a sequence to be cut by this number of tokens without reading it again.
const SPARE: usize = MOST_BLOCK;

/// The positions whose keys and values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptPositions {
    /// The number of tokens.
    pub(crate) len: usize,
    /// The first position that layers with a ring have; the others have all.
    pub(crate) oldest: usize,
}

impl Config {
    /// Returns the window and the positions that layers with one have room for, if there are such layers.
    pub(crate) fn ring(&self) -> Option<[usize; 2]> {
        let window = self.window.filter(|_| !self.keeps_all)?;
        let room = self.capacity.min(window.saturating_add(SPARE));
        Some([window, room])
    }

    fn ring_of(&self, layer: usize) -> Option<[usize; 2]> {
        self.ring().filter(|_| self.is_local(layer))
    }

    /// Returns the number of positions that a layer has room for.
    pub(super) fn room(&self, layer: usize) -> usize {
        let ring = self.ring_of(layer);
        ring.map_or(self.capacity, |[_, room]| room)
    }

    /// Returns whether layers with a ring have room for the positions that are kept.
    pub(crate) fn has_room(&self, kept: KeptPositions) -> bool {
        let room = self.ring().map_or(self.capacity, |[_, room]| room);
        kept.oldest <= kept.len && kept.len - kept.oldest <= room
    }

    /// Returns the layers that have a cache. The layers of an encoder have one in common, since none reads the keys of
    /// another pass.
    pub(super) fn cached_layers(&self) -> Range<usize> {
        0..if self.is_encoder() { 1 } else { self.layers }
    }

    /// Returns the number of tokens that go through the layers at a time, of `block` on the back-end: an encoder's texts
    /// are never divided.
    pub(super) fn block(&self, block: usize) -> usize {
        if self.is_encoder() {
            self.capacity
        } else {
            block
        }
    }

    /// Returns the layout of a layer's keys and values.
    pub(super) fn cache_layout(&self, layer: usize) -> CacheLayout {
        CacheLayout {
            heads: self.kv_heads,
            head_len: self.head_len,
            cache_type: self.cache_type,
            room: self.room(layer),
            capacity: self.capacity,
        }
    }

    /// Returns the positions of `kept` that a layer has, and the number of words of their keys and values, saturating.
    pub(super) fn layer_words(&self, layer: usize, kept: KeptPositions) -> (Range<usize>, usize) {
        let positions = self.ring_of(layer).map_or(0, |_| kept.oldest)..kept.len;
        let words = self.cache_layout(layer).words(positions.len());
        (positions, words)
    }

    /// Returns the number of words of the keys and values of some positions in all layers, saturating.
    pub(crate) fn kept_words(&self, kept: KeptPositions) -> usize {
        let words = self.cached_layers();
        let words = words.map(|layer| self.layer_words(layer, kept).1);
        words.fold(0, usize::saturating_add)
    }

    /// Returns the size of the cache of a sequence that fills the context in bytes, saturating.
    pub(crate) fn session_bytes(&self) -> usize {
        let layouts = self.cached_layers();
        let layouts = layouts.map(|layer| self.cache_layout(layer));
        let words = layouts.map(|layout| layout.words(layout.room));
        words
            .fold(0, usize::saturating_add)
            .saturating_mul(size_of::<f32>())
    }

    /// Returns the length of a token's queries and the length of its keys.
    pub(super) fn projections(&self) -> (usize, usize) {
        (self.heads * self.head_len, self.kv_heads * self.head_len)
    }
}

//! Heads of queries, keys and values on their way to where attention reads them.

use super::cache::{KEYS, LayerCache, VALUES};
use super::pass::read;
use super::{Elements, elements, elements_mut, norm};
use crate::alloc::try_resize;
use crate::error::Result;
use crate::graph::steps::HeadPlaces;
use crate::simd::{Cpu, rotate};

/// [`HeadPlaces`] with shares of its buffers.
pub(super) struct HeadsToPlace {
    tokens: usize,
    heads: usize,
    kv_heads: usize,
    head_len: usize,
    position: usize,
    gains: Option<[Elements; 2]>,
    epsilon: f32,
    /// Of the tokens.
    angles: Elements,
    pairs: usize,
    neighbours: bool,
}

impl HeadsToPlace {
    pub(super) fn new(places: &HeadPlaces<'_, Elements>) -> Self {
        let rotation = &places.rotation;
        Self {
            tokens: places.tokens,
            heads: places.heads,
            kv_heads: places.kv_heads,
            head_len: places.head_len,
            position: places.position,
            gains: places.gains.map(|(gains, _)| gains.map(Clone::clone)),
            epsilon: places.gains.map_or(0.0, |(_, epsilon)| epsilon),
            angles: rotation.angles.clone(),
            pairs: rotation.pairs,
            neighbours: rotation.neighbours,
        }
    }

    /// Writes the heads of `x`, which has all queries, then all keys, then all values. `turned` is memory for keys.
    pub(super) fn place(
        &self,
        cpu: Cpu,
        x: &[f32],
        queries: &mut Vec<f32>,
        turned: &mut Vec<f32>,
        cache: &mut LayerCache,
    ) -> Result<()> {
        let [of_queries, of_keys] = [self.heads, self.kv_heads];
        let [of_queries, of_keys] =
            [of_queries, of_keys].map(|heads| self.tokens * heads * self.head_len);
        let (from, rest) = elements(x, 0..of_queries + 2 * of_keys)?.split_at(of_queries);
        let (keys, values) = rest.split_at(of_keys);
        let [query_gain, key_gain] = match &self.gains {
            Some(gains) => gains.each_ref().map(Some),
            None => [None; 2],
        };
        self.turn(cpu, from, query_gain, elements_mut(queries, 0..of_queries)?)?;
        try_resize(turned, of_keys)?;
        self.turn(cpu, keys, key_gain, turned)?;
        cache.write(KEYS, self.position, turned)?;
        cache.write(VALUES, self.position, values)
    }

    /// Normalises heads if there is a gain, and rotates them.
    fn turn(&self, cpu: Cpu, from: &[f32], gain: Option<&Elements>, to: &mut [f32]) -> Result<()> {
        match gain {
            Some(gain) => norm(cpu, from, (&read(gain)?, self.epsilon), to)?,
            None => to.copy_from_slice(from),
        }
        let angles = read(&self.angles)?;
        let (angles, _) = angles.as_chunks::<2>();
        let rows = to.chunks_exact_mut((from.len() / self.tokens).max(1));
        for (row, angles) in rows.zip(angles.chunks_exact(self.pairs.max(1))) {
            for head in row.chunks_exact_mut(self.head_len) {
                rotate(self.neighbours, &mut head[..2 * self.pairs], angles);
            }
        }
        Ok(())
    }
}

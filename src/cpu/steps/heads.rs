//! Heads of queries, keys and values on their way to where attention reads them.

use super::cache::{KEYS, SharedCache, VALUES};
use super::pass::{read, write};
use super::{Elements, norm};
use crate::alloc::try_resize;
use crate::error::Result;
use crate::graph::steps::{HeadPlaces, TokenRows};
use crate::simd::{Cpu, rotate};
use std::ops::Range;

/// The index of queries among queries and keys.
const QUERIES: usize = 0;

/// [`HeadPlaces`] with shares of its buffers.
pub(super) struct HeadsToPlace {
    tokens: usize,
    rows: TokenRows,
    heads: usize,
    kv_heads: usize,
    head_len: usize,
    position: usize,
    gains: Option<[Elements; 2]>,
    epsilon: f32,
    /// Of the pass's rows.
    angles: Elements,
    query_angles: usize,
    pairs: usize,
    neighbours: bool,
    cache: SharedCache,
}

impl HeadsToPlace {
    pub(super) fn new(places: &HeadPlaces<'_, Elements>, cache: &SharedCache) -> Self {
        let rotation = &places.rotation;
        Self {
            tokens: places.tokens,
            rows: places.rows,
            heads: places.heads,
            kv_heads: places.kv_heads,
            head_len: places.head_len,
            position: places.position,
            gains: places
                .gains
                .as_ref()
                .map(|norms| norms.gains.map(Clone::clone)),
            epsilon: places.norm_parameters().1,
            angles: rotation.angles.clone(),
            query_angles: rotation.query_angles,
            pairs: rotation.pairs,
            neighbours: rotation.neighbours,
            cache: cache.clone(),
        }
    }

    /// Returns the number of elements of a row's queries, and of its keys.
    fn lens(&self) -> [usize; 2] {
        [self.heads, self.kv_heads].map(|heads| heads * self.head_len)
    }

    /// Returns the number of elements of all queries, keys and values of the pass.
    pub(super) fn inputs(&self) -> usize {
        let [query, key] = self.lens();
        self.rows.all * (query + 2 * key)
    }

    /// Returns the elements of the tokens' queries.
    pub(super) fn queries(&self) -> Range<usize> {
        self.of_tokens(self.lens()[QUERIES])
    }

    /// Returns the elements of the tokens' rows, which have `len` each.
    fn of_tokens(&self, len: usize) -> Range<usize> {
        self.rows.elements(self.tokens, len)
    }

    /// Writes the tokens' heads of `x`, which has all queries of the pass, then all keys, then all values. `turned` is memory
    /// for keys.
    pub(super) fn place(
        &self,
        cpu: Cpu,
        x: &[f32],
        queries: &mut [f32],
        turned: &mut Vec<f32>,
    ) -> Result<()> {
        let [query, key] = self.lens();
        let (from, rest) = x.split_at(self.rows.all * query);
        let (keys, values) = rest.split_at(self.rows.all * key);
        let (keys, values) = (&keys[self.of_tokens(key)], &values[self.of_tokens(key)]);
        self.turn(cpu, &from[self.of_tokens(query)], QUERIES, queries)?;
        try_resize(turned, keys.len())?;
        self.turn(cpu, keys, 1 - QUERIES, turned)?;
        let mut cache = write(&self.cache)?;
        cache.write(KEYS, self.position, turned)?;
        cache.write(VALUES, self.position, values)
    }

    /// Normalises parts as long as a gain if there is one, and rotates them if there are pairs.
    fn turn(&self, cpu: Cpu, from: &[f32], kind: usize, to: &mut [f32]) -> Result<()> {
        match &self.gains {
            Some(gains) => norm(cpu, from, (&gains[kind], self.epsilon), to)?,
            None => to.copy_from_slice(from),
        }
        if self.pairs == 0 {
            return Ok(());
        }
        let angles = read(&self.angles)?;
        let (angles, _) = angles.as_chunks::<2>();
        let of_queries = if kind == QUERIES {
            self.query_angles
        } else {
            0
        };
        let first = of_queries + self.rows.before * self.pairs;
        let angles = angles.get(first..).unwrap_or_default();
        let rows = to.chunks_exact_mut((from.len() / self.tokens).max(1));
        for (row, angles) in rows.zip(angles.chunks_exact(self.pairs)) {
            for head in row.chunks_exact_mut(self.head_len) {
                rotate(self.neighbours, &mut head[..2 * self.pairs], angles);
            }
        }
        Ok(())
    }
}

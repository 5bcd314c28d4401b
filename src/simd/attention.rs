//! Attention of grouped query heads to keys and values, which may be those of a cache.
//!
//! A few tokens are computed one by one: heads that share keys and values read them together. Blocks of tokens are
//! computed by matmuls.

mod shape;

use super::InstructionSet;
use super::cached_rows::unpack_rows;
use super::isa::{Isa, Kernel, MAX_LANES, dispatch};
use super::math;
use super::matmul::matmul;
use super::reduce::sum_lanes;
use super::threads::{Cpu, share_out};
use crate::alloc::scratch::Scratch;
use crate::error::{Error, Result};
use crate::ops::{Matmul, OpClass};
use crate::tensor::CacheType;
pub(crate) use shape::AttentionShape;
use std::ops::{Deref, Range};

/// The number of tokens in a block of a matmul. Keys after the last token of a block are skipped.
const BLOCK: usize = 32;

/// The number of keys whose products one accumulator gathers, which bounds the rounding error. Their values stay in the
/// first-level cache.
const CHAIN: usize = 128;

/// Writes the attention of each token and head: rows of tokens, of heads, of `head_len` values, as
/// the queries are. Keys and values are rows of `head_len` values for each position up to the last token's,
/// those of one head after the other, `capacity` rows apart, as words of the cache's type. Where the lengths are others,
/// nothing is done.
///
/// # Errors
/// `OutOfMemory` where there is no memory for scores.
pub(crate) fn attention(
    cpu: Cpu,
    shape: AttentionShape,
    queries: &[f32],
    keys: &[f32],
    values: &[f32],
    out: &mut [f32],
) -> Result<()> {
    let fits = shape.fits([queries.len(), keys.len(), values.len(), out.len()]);
    if !fits {
        return Err(Error::invalid("shape", "another", "that of the arrays"));
    }
    if out.is_empty() {
        return Ok(());
    }
    let work = out.len() as u64 * shape.last() as u64 * 2;
    let class = if shape.in_blocks() {
        OpClass::Matmul
    } else {
        OpClass::Reduction
    };
    // One token is shared by heads, several by blocks.
    let part = match shape.tokens {
        1 => shape.group() * shape.head_len,
        _ if shape.in_blocks() => shape.row() * BLOCK,
        _ => shape.row(),
    };
    let task = Task {
        isa: cpu.isa,
        shape,
        queries,
        keys,
        values,
    };
    share_out(cpu.split(work, class), part, out, |at, out| {
        if shape.in_blocks() {
            task.in_blocks(at / shape.row(), out)
        } else {
            task.one_by_one(at, out)
        }
    })
}

/// The keys or the values of a head.
enum Cached<'a> {
    Elements(&'a [f32]),
    Unpacked(Scratch),
}

impl Deref for Cached<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            Cached::Elements(rows) => rows,
            Cached::Unpacked(rows) => rows,
        }
    }
}

/// The operands.
#[derive(Clone, Copy)]
struct Task<'a> {
    isa: InstructionSet,
    shape: AttentionShape,
    queries: &'a [f32],
    keys: &'a [f32],
    values: &'a [f32],
}

impl<'a> Task<'a> {
    /// Returns the rows of a head at some positions, of the keys or of the values.
    ///
    /// # Errors
    /// `OutOfMemory` where they are not f32 and there is no memory for their elements.
    fn cached(
        &self,
        all: &'a [f32],
        kv_head: usize,
        positions: &Range<usize>,
    ) -> Result<Cached<'a>> {
        let (row, len) = (self.shape.cached_row(), self.shape.head_len);
        let start = kv_head * self.shape.capacity;
        let words = &all[(start + positions.start) * row..(start + positions.end) * row];
        let kind = self.shape.cache_type;
        // Only sessions of language models have other types.
        if kind == CacheType::F32 || !cfg!(feature = "llm-core") {
            return Ok(Cached::Elements(words));
        }
        let mut rows = Scratch::new(positions.len() * len)?;
        unpack_rows(self.isa, (kind, len), words, &mut rows);
        Ok(Cached::Unpacked(rows))
    }

    /// Computes the results from `at` on, which are those of whole groups of heads.
    fn one_by_one(&self, at: usize, out: &mut [f32]) -> Result<()> {
        let shape = &self.shape;
        let group = shape.group() * shape.head_len;
        let most = shape.last();
        let mut scores = Scratch::new(MOST_HEADS * row_len(most))?;
        for (index, out) in out.chunks_exact_mut(group).enumerate() {
            let at = at + index * group;
            let visible = shape.visible(at / shape.row());
            let kv_head = at % shape.row() / group;
            let token = Token {
                isa: self.isa,
                shape: self.shape,
                queries: &self.queries[at..][..group],
                keys: &self.cached(self.keys, kv_head, &visible)?,
                values: &self.cached(self.values, kv_head, &visible)?,
                scores: &mut scores,
                out,
            };
            dispatch(self.isa, token);
        }
        Ok(())
    }

    /// Computes the rows of tokens from `first` on, which is a multiple of [`BLOCK`].
    fn in_blocks(&self, first: usize, out: &mut [f32]) -> Result<()> {
        let shape = &self.shape;
        for (index, out) in out.chunks_mut(BLOCK * shape.row()).enumerate() {
            let token = first + index * BLOCK;
            let tokens = token..token + out.len() / shape.row();
            if !self.finite_where_hidden(&tokens)? {
                self.one_by_one(token * shape.row(), out)?;
                continue;
            }
            for kv_head in 0..shape.kv_heads {
                self.block(kv_head, tokens.clone(), out)?;
            }
        }
        Ok(())
    }

    /// Returns whether all values are finite that only some of the tokens see. The matmul multiplies hidden values by
    /// 0, which gives NaN for infinite values.
    fn finite_where_hidden(&self, tokens: &Range<usize>) -> Result<bool> {
        let (first, last) = (
            self.shape.visible(tokens.start),
            self.shape.visible(tokens.end - 1),
        );
        let hidden = [first.start..last.start, first.end..last.end];
        for kv_head in 0..self.shape.kv_heads {
            for positions in &hidden {
                let values = self.cached(self.values, kv_head, positions)?;
                if !values.iter().all(|value| value.is_finite()) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Computes a group of heads of some tokens, whose rows are `out`.
    fn block(&self, kv_head: usize, tokens: Range<usize>, out: &mut [f32]) -> Result<()> {
        let shape = &self.shape;
        let (len, group) = (shape.head_len, shape.group());
        let columns = kv_head * group * len..(kv_head + 1) * group * len;
        let seen = shape.visible(tokens.start).start..shape.end(tokens.end - 1);
        let keys = self.cached(self.keys, kv_head, &seen)?;
        let values = self.cached(self.values, kv_head, &seen)?;
        let (rows, cols) = (tokens.len() * group, seen.len());
        let mut mixed = Scratch::new(rows * len)?;
        let mut scores = Scratch::new(rows * cols)?;
        let queries = self.queries[tokens.start * shape.row()..].chunks(shape.row());
        for (to, from) in mixed.chunks_exact_mut(group * len).zip(queries) {
            to.copy_from_slice(&from[columns.clone()]);
        }
        let options = Matmul::new(rows, len, cols).transpose_b();
        matmul(self.isa, 1, &options, &mixed, &keys, &mut scores)?;
        let mut sums = Scratch::new(rows)?;
        for (row, (scores, sum)) in scores.chunks_exact_mut(cols).zip(&mut *sums).enumerate() {
            let visible = shape.visible(tokens.start + row / group);
            let visible = visible.start - seen.start..visible.end - seen.start;
            scores[..visible.start].fill(0.0);
            scores[visible.end..].fill(0.0);
            let scores = &mut scores[visible];
            *sum = dispatch(
                self.isa,
                Weights {
                    shape: self.shape,
                    scores,
                },
            );
        }
        let options = Matmul::new(rows, cols, len);
        matmul(self.isa, 1, &options, &scores, &values, &mut mixed)?;
        let sums = sums.chunks_exact(group);
        let rows = mixed.chunks_exact(group * len).zip(sums);
        for (to, (from, sums)) in out.chunks_exact_mut(shape.row()).zip(rows) {
            let heads = to[columns.clone()].chunks_exact_mut(len);
            for ((to, from), sum) in heads.zip(from.chunks_exact(len)).zip(sums) {
                let factor = 1.0 / sum;
                to.iter_mut()
                    .zip(from)
                    .for_each(|(to, from)| *to = from * factor);
            }
        }
        Ok(())
    }
}

/// The weights of a row of scores, without the division by their sum, which is returned.
struct Weights<'a> {
    shape: AttentionShape,
    scores: &'a mut [f32],
}

impl Kernel for Weights<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f32 {
        let most = largest(isa, self.shape, self.scores);
        let most = isa.splat(most);
        let mut total = 0.0;
        // So many vectors are added up before their sum goes to `f64`.
        for scores in self.scores.chunks_mut(16 * I::LANES) {
            let mut sum = isa.splat(0.0);
            let mut vectors = scores.chunks_exact_mut(I::LANES);
            for scores in &mut vectors {
                let weights = math::exp_difference(isa, isa.sub(isa.load(scores), most));
                isa.store(weights, scores);
                sum = isa.add(sum, weights);
            }
            let tail = vectors.into_remainder();
            if !tail.is_empty() {
                // The fill gives weights of 0.
                let scores = isa.load_first(tail, f32::NEG_INFINITY);
                let weights = math::exp_difference(isa, isa.sub(scores, most));
                isa.store_first(weights, tail);
                sum = isa.add(sum, weights);
            }
            total += f64::from(sum_lanes(isa, sum));
        }
        total as f32
    }
}

/// Scales and caps scores, and returns the largest.
#[inline(always)]
fn largest<I: Isa>(isa: I, shape: AttentionShape, scores: &mut [f32]) -> f32 {
    let mut most = isa.splat(f32::NEG_INFINITY);
    let mut vectors = scores.chunks_exact_mut(I::LANES);
    for scores in &mut vectors {
        let capped = capped(isa, shape, isa.load(scores));
        isa.store(capped, scores);
        most = isa.at_least(capped, most);
    }
    let tail = vectors.into_remainder();
    if !tail.is_empty() {
        isa.store_first(capped(isa, shape, isa.load_first(tail, 0.0)), tail);
        most = isa.at_least(isa.load_first(tail, f32::NEG_INFINITY), most);
    }
    // A score that is NaN makes its weight and the sum NaN.
    let lanes = isa.to_array(most);
    lanes[..I::LANES]
        .iter()
        .copied()
        .fold(f32::NEG_INFINITY, f32::max)
}

#[inline(always)]
fn capped<I: Isa>(isa: I, shape: AttentionShape, scores: I::F32) -> I::F32 {
    let scores = isa.mul(scores, isa.splat(shape.scale));
    match shape.soft_cap {
        None => scores,
        Some(cap) => {
            let cap = isa.splat(cap);
            isa.mul(cap, math::tanh(isa, isa.div(scores, cap)))
        }
    }
}

/// The largest number of heads that read a key or a value together.
const MOST_HEADS: usize = 4;

/// The distance of two heads' scores.
fn row_len(positions: usize) -> usize {
    positions.next_multiple_of(MAX_LANES)
}

/// One token and the heads of one group.
struct Token<'a> {
    isa: InstructionSet,
    shape: AttentionShape,
    queries: &'a [f32],
    keys: &'a [f32],
    values: &'a [f32],
    scores: &'a mut [f32],
    out: &'a mut [f32],
}

impl Kernel for Token<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let len = self.shape.head_len;
        let heads = self.out.len() / len;
        let mut head = 0;
        while head < heads {
            let heads = MOST_HEADS.min(heads - head);
            match heads {
                1 => self.heads::<I, 1, 4>(isa, head),
                2 => self.heads::<I, 2, 4>(isa, head),
                3 => self.heads::<I, 3, 2>(isa, head),
                _ => self.heads::<I, MOST_HEADS, 2>(isa, head),
            }
            head += heads;
        }
    }
}

impl Token<'_> {
    /// Computes `R` heads from `head` on, `V` vectors of the results at a time.
    #[inline(always)]
    fn heads<I: Isa, const R: usize, const V: usize>(&mut self, isa: I, head: usize) {
        let len = self.shape.head_len;
        let queries = &self.queries[head * len..][..R * len];
        let out = &mut self.out[head * len..][..R * len];
        let positions = self.keys.len() / len;
        let stride = row_len(positions);
        let scores = &mut self.scores[..R * stride];
        write_scores::<I, R>(isa, queries, self.keys, scores);
        let mut factors = [0.0; R];
        for (scores, factor) in scores.chunks_exact_mut(stride).zip(&mut factors) {
            let row = Weights {
                shape: self.shape,
                scores: &mut scores[..positions],
            };
            // A call, since the code of exponentials is long.
            *factor = 1.0 / dispatch(self.isa, row);
        }
        out.fill(0.0);
        let chunks = self.values.chunks(CHAIN * len);
        for (values, first) in chunks.zip((0..).step_by(CHAIN)) {
            let mut weights = [&scores[..0]; R];
            for (r, weights) in weights.iter_mut().enumerate() {
                *weights = &scores[r * stride + first..][..values.len() / len];
            }
            let mut col = 0;
            while col + V * I::LANES <= len {
                add_mix::<I, R, V>(isa, weights, (values, col), out);
                col += V * I::LANES;
            }
            // Few lengths of heads have columns left.
            for (out, weights) in out.chunks_exact_mut(len).zip(weights) {
                add_last(isa, weights, (values, col), out);
            }
        }
        for (out, factor) in out.chunks_exact_mut(len).zip(factors) {
            for out in out {
                *out *= factor;
            }
        }
    }
}

/// Writes rows of the products of `R` queries with all keys.
#[inline(always)]
fn write_scores<I: Isa, const R: usize>(isa: I, queries: &[f32], keys: &[f32], scores: &mut [f32]) {
    let (len, stride) = (queries.len() / R, scores.len() / R);
    let whole = len / I::LANES * I::LANES;
    for (position, key) in keys.chunks_exact(len).enumerate() {
        let mut sums = [isa.splat(0.0); R];
        for at in (0..whole).step_by(I::LANES) {
            // SAFETY: the key and each of the queries have `len` values.
            unsafe {
                let key = isa.load_ptr(key.as_ptr().add(at));
                for (r, sum) in sums.iter_mut().enumerate() {
                    let query = isa.load_ptr(queries.as_ptr().add(r * len + at));
                    *sum = isa.mul_add(key, query, *sum);
                }
            }
        }
        if whole < len {
            let key = isa.load_first(&key[whole..], 0.0);
            for (query, sum) in queries.chunks_exact(len).zip(&mut sums) {
                *sum = isa.mul_add(key, isa.load_first(&query[whole..], 0.0), *sum);
            }
        }
        for (r, sum) in sums.into_iter().enumerate() {
            scores[r * stride + position] = sum_lanes(isa, sum);
        }
    }
}

/// Adds the values, times `R` rows of weights, to `R` rows of results: `V` vectors of each, from column `col` on.
#[inline(always)]
fn add_mix<I: Isa, const R: usize, const V: usize>(
    isa: I,
    weights: [&[f32]; R],
    (values, col): (&[f32], usize),
    out: &mut [f32],
) {
    let len = out.len() / R;
    assert!(col + V * I::LANES <= len);
    let mut sums = [[isa.splat(0.0); V]; R];
    for (position, value) in values.chunks_exact(len).enumerate() {
        let mut columns = [isa.splat(0.0); V];
        for (v, column) in columns.iter_mut().enumerate() {
            // SAFETY: the row has `len` values, and the vectors lie within.
            *column = unsafe { isa.load_ptr(value.as_ptr().add(col + v * I::LANES)) };
        }
        for (weights, sums) in weights.iter().zip(&mut sums) {
            // SAFETY: there is a weight for each value.
            let weight = isa.splat(unsafe { *weights.get_unchecked(position) });
            for (sum, &column) in sums.iter_mut().zip(&columns) {
                *sum = isa.mul_add(weight, column, *sum);
            }
        }
    }
    for (out, sums) in out.chunks_exact_mut(len).zip(sums) {
        for (out, sum) in out[col..].chunks_exact_mut(I::LANES).zip(sums) {
            isa.store(isa.add(isa.load(out), sum), out);
        }
    }
}

/// [`add_mix`] of one row for all columns from `col` on.
#[inline(always)]
fn add_last<I: Isa>(isa: I, weights: &[f32], (values, mut col): (&[f32], usize), out: &mut [f32]) {
    while col + I::LANES <= out.len() {
        add_mix::<I, 1, 1>(isa, [weights], (values, col), out);
        col += I::LANES;
    }
    if col == out.len() {
        return;
    }
    let mut sum = isa.splat(0.0);
    for (value, &weight) in values.chunks_exact(out.len()).zip(weights) {
        sum = isa.mul_add(isa.splat(weight), isa.load_first(&value[col..], 0.0), sum);
    }
    let out = &mut out[col..];
    isa.store_first(isa.add(isa.load_first(out, 0.0), sum), out);
}

//! Attention of many tokens on tensor cores: a block computes a head of 64 tokens, 16 to a warp, and at most 128
//! elements of it. Tiles of keys and values go through shared memory, and the matrix of scores is never stored (Dao et
//! al., 2022).
//!
//! A number is the sum of two bf16. Tiles have the upper parts and the lower parts apart. Of the four products of parts
//! that of the lower ones is left out.

mod tile;

use super::super::soft_cap::soft_cap;
use super::cache::{Cache, halves};
use super::{CachedAttentionKernel, CachedRows, LOWEST, Params};
use crate::build::Builder;
use crate::error::{Error, Result};
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::{Combine, WARP, over_lanes, wrapped};
use crate::kernels::fragments::{bf16_parts, multiply_parts};
use crate::types::PtxType::{B32, F32, U32};
use crate::types::Target;
use tile::Tile;

const WARPS: u32 = 4;
const THREADS: u32 = WARPS * WARP;
/// Tokens of a block, and of a warp.
const TOKENS: u32 = 64;
const WARP_TOKENS: u32 = TOKENS / WARPS;

pub(super) fn build(kernel: CachedAttentionKernel, len: u32, target: Target) -> Result<PtxKernel> {
    if !CachedAttentionKernel::MMA_HEADS.contains(&len) {
        let requirement = "32, 64, 96, 128, 192 or 256";
        return Err(Error::invalid("head_len", len.to_string(), requirement));
    }
    let shape = Shape::of(len);
    let grid = [
        Extent::Tiles("tokens", TOKENS),
        Extent::Param("heads"),
        Extent::Fixed(len / shape.columns),
    ];
    let launch = Launch::new(THREADS, grid).overlapping(target);
    let mut k = Builder::new(kernel.name(), target, launch);
    let block = Block::declare(&mut k, kernel, shape);
    k.wait_for_grid();
    block.load_queries(&mut k);
    let running = Running::new(&mut k, shape);
    let [start, end] = block.range(&mut k);
    k.for_range(start, end, shape.keys, |k, first| {
        block.load_keys(k, [first, end]);
        block.load_values(k, [first, end]);
        k.barrier();
        block.add_poison(k);
        let scores = block.scores(k);
        block.cap(k, &scores);
        k.barrier();
        block.mask(k, first, &scores);
        running.add(k, &block, &scores);
        k.barrier();
    });
    block.store(&mut k, &running);
    k.finish()
}

/// The sizes of a block's work.
#[derive(Clone, Copy)]
struct Shape {
    /// The number of elements of a head.
    len: u32,
    /// The number of keys of a tile. Tiles of the longest heads fit into the 99 KB that every GPU since Ampere has.
    keys: u32,
    /// The number of elements of values that a block adds up.
    columns: u32,
}

impl Shape {
    fn of(len: u32) -> Self {
        let (keys, columns) = if len > 128 { (16, len / 2) } else { (32, len) };
        Self { len, keys, columns }
    }

    /// Vectors of words that are loaded of a value.
    fn value_vectors(self, cached: CachedRows) -> u32 {
        // Words of two f16 have an element of each half of a row.
        let is_whole = cached == CachedRows::F16;
        cached.vectors(if is_whole { self.len } else { self.columns })
    }
}

struct Block {
    shape: Shape,
    params: Params,
    head: Reg,
    /// log₂ e times the scale, by which scores become powers of 2.
    unit: Reg,
    cache: Cache,
    /// The position of the ring's first row in the round that the first position lies in.
    round: Reg,
    thread: Reg,
    lane: Reg,
    first_token: Reg,
    /// The warp's first token in the tile.
    warp_token: Reg,
    /// Which part of the columns of values the block adds up.
    part: Reg,
    query_tile: Tile,
    key_tile: Tile,
    value_tile: Tile,
    /// For each vector of four elements of a tile's values, and for each value, 0 or NaN if an element is not finite.
    vector_poison: Reg,
    poison: Reg,
}

impl Block {
    fn declare(k: &mut Builder, kernel: CachedAttentionKernel, shape: Shape) -> Self {
        let params = Params::declare(k, kernel);
        let head = k.special(Special::CtaidY);
        // The last tokens see the most positions: they come first.
        let (tile, tiles) = (k.special(Special::CtaidX), k.special(Special::NctaidX));
        let after = k.sub(tiles, tile);
        let tile = k.sub(after, 1);
        let (thread, part) = (k.special(Special::TidX), k.special(Special::CtaidZ));
        let Shape { len, keys, columns } = shape;
        let rows = [[TOKENS, len], [keys, len], [keys, columns]];
        let bytes: u32 = rows
            .iter()
            .map(|[rows, cols]| 2 * rows * (2 * cols + 16))
            .sum();
        let vectors = shape.value_vectors(kernel.cached);
        let shared = k.dynamic_shared("tiles", bytes + 4 * keys * (vectors + 1));
        let mut used = 0;
        let [query_tile, key_tile, value_tile] =
            rows.map(|shape| Tile::new(shared, &mut used, k, shape));
        let warp = k.div(thread, WARP);
        let first_token = k.mul(tile, TOKENS);
        let first = k.add(params.position, first_token);
        let first = params.first_seen(k, first);
        let row = k.rem(first, params.capacity);
        Self {
            shape,
            head,
            unit: k.mul(params.scale, std::f32::consts::LOG2_E),
            cache: Cache::new(k, &params, head),
            round: k.sub(first, row),
            params,
            thread,
            lane: k.and(thread, WARP - 1),
            first_token,
            warp_token: k.mul(warp, WARP_TOKENS),
            part,
            query_tile,
            key_tile,
            value_tile,
            vector_poison: k.offset(shared, used),
            poison: k.offset(shared, used + 4 * keys * vectors),
        }
    }

    /// Copies the tokens' queries. In place of tokens after the last one it copies the last token's queries; their
    /// results are not stored.
    fn load_queries(&self, k: &mut Builder) {
        let Shape { len, keys, .. } = self.shape;
        let last = k.sub(self.params.tokens, 1);
        for pass in (0..TOKENS).step_by(keys as usize) {
            for (row, col) in self.share(k, len / 4, keys) {
                let row = k.offset(row, pass);
                let col = k.mul(col, 4);
                let token = k.add(self.first_token, row);
                let token = k.min(token, last);
                let index = k.fma(token, self.params.heads, self.head);
                let len = k.value(U32, len);
                let at = k.at_2d(self.params.queries, index, len, col, 4);
                let elements = k.ld_vector(Op::LdGlobal, F32, 4, at, 0);
                let scaled: Vec<Reg> = elements.iter().map(|&x| k.mul(x, self.unit)).collect();
                self.query_tile.store(k, [row, col], &scaled);
            }
        }
    }

    /// Divides `rows` rows of `across` columns among the threads.
    fn share(&self, k: &mut Builder, across: u32, rows: u32) -> Vec<(Reg, Reg)> {
        let place = |pass: u32| {
            let index = k.offset(self.thread, pass * THREADS);
            (k.div(index, across), k.rem(index, across))
        };
        (0..rows * across / THREADS).map(place).collect()
    }

    /// The positions that some token of the block sees, from the first one to the end.
    fn range(&self, k: &mut Builder) -> [Reg; 2] {
        let after = k.add(self.first_token, TOKENS);
        let after = k.min(after, self.params.tokens);
        let end = k.add(self.params.position, after);
        let first = k.add(self.params.position, self.first_token);
        [self.params.first_seen(k, first), end]
    }

    /// Loads a vector of four words, or of four integers, of the row of a tile that begins with position `first`. Positions from `end` on repeat
    /// the last one.
    fn load(
        &self,
        k: &mut Builder,
        base: Reg,
        [first, end]: [Reg; 2],
        [row, vector]: [Reg; 2],
    ) -> Vec<Vec<Reg>> {
        let last = k.sub(end, 1);
        let row = k.add(first, row);
        let row = k.min(row, last);
        let row = k.sub(row, self.round);
        let row = wrapped(k, row, self.cache.capacity);
        let zero = k.value(U32, 0);
        let row = k.at_2d(base, row, self.cache.words, zero, 4);
        if self.cache.rows == CachedRows::Q8 {
            return vec![self.cache.quantized(k, [row, vector])];
        }
        let at = k.at(row, vector, 16);
        let words = k.ld_vector(Op::LdGlobal, B32, 4, at, 0);
        self.numbers(k, &words)
    }

    fn load_keys(&self, k: &mut Builder, range: [Reg; 2]) {
        let Shape { len, keys, .. } = self.shape;
        let vectors = self.cache.rows.vectors(len);
        for (row, vector) in self.share(k, vectors, keys) {
            let halves = self.load(k, self.cache.keys, range, [row, vector]);
            for (half, numbers) in (0..).zip(halves) {
                let col = self.column(k, vector, half);
                self.key_tile.store(k, [row, col], &numbers);
            }
        }
    }

    fn load_values(&self, k: &mut Builder, range: [Reg; 2]) {
        let Shape { len, keys, columns } = self.shape;
        let vectors = self.shape.value_vectors(self.cache.rows);
        for (row, vector) in self.share(k, vectors, keys) {
            let halves = if columns == len {
                self.load(k, self.cache.values, range, [row, vector])
            } else {
                vec![self.part_of_value(k, range, [row, vector])]
            };
            // Elements that are not finite would reach tokens that do not see them, as products with 0 are NaN.
            let nothing = k.value(F32, 0.0f32);
            for &number in halves.iter().flatten() {
                k.fma_assign(nothing, number, 0.0f32);
            }
            let poisoned = k.ne(nothing, nothing);
            for (half, numbers) in (0..).zip(halves) {
                let finite = numbers.iter();
                let finite = finite.map(|&number| k.select(poisoned, 0.0f32, number));
                let finite: Vec<Reg> = finite.collect();
                let col = self.column(k, vector, half);
                self.value_tile.store(k, [row, col], &finite);
            }
            let index = k.fma(row, vectors, vector);
            let to = k.fma(index, 4, self.vector_poison);
            k.st_shared(F32, to, 0, nothing);
        }
    }

    /// Adds up the poison of each value's vectors.
    fn add_poison(&self, k: &mut Builder) {
        let vectors = self.shape.value_vectors(self.cache.rows);
        let has_key = k.lt(self.thread, self.shape.keys);
        k.when(has_key, |k| {
            let from = k.fma(self.thread, 4 * vectors, self.vector_poison);
            let sum = k.value(F32, 0.0f32);
            k.for_range(0, vectors, 1, |k, vector| {
                let at = k.fma(vector, 4, from);
                let more = k.ld_shared(F32, at, 0);
                k.add_assign(sum, more);
            });
            let to = k.fma(self.thread, 4, self.poison);
            k.st_shared(F32, to, 0, sum);
        });
    }

    /// The first column of a vector of words, or that of their upper halves.
    fn column(&self, k: &mut Builder, vector: Reg, half: u32) -> Reg {
        let col = k.mul(vector, 4);
        k.offset(col, half * self.shape.len / 2)
    }

    /// The elements of words: those of one vector, or of each half of a row.
    fn numbers(&self, k: &mut Builder, words: &[Reg]) -> Vec<Vec<Reg>> {
        if self.cache.rows == CachedRows::F32 {
            return vec![words.iter().map(|&word| k.value(F32, word)).collect()];
        }
        let pairs: Vec<[Reg; 2]> = words.iter().map(|&word| halves(k, word)).collect();
        [0, 1]
            .map(|half| pairs.iter().map(|pair| pair[half]).collect())
            .into()
    }

    /// Loads four elements of the half of a value that the block adds up.
    fn part_of_value(&self, k: &mut Builder, range: [Reg; 2], [row, vector]: [Reg; 2]) -> Vec<Reg> {
        if self.cache.rows != CachedRows::F16 {
            let vector = k.fma(self.part, self.shape.columns / 4, vector);
            return self
                .load(k, self.cache.values, range, [row, vector])
                .concat();
        }
        let halves = self.load(k, self.cache.values, range, [row, vector]);
        let upper = k.ne(self.part, 0);
        let pairs = halves[0].iter().zip(&halves[1]);
        pairs
            .map(|(&low, &high)| k.select(upper, high, low))
            .collect()
    }

    /// Multiplies the warp's queries by the tile's keys, eight to a fragment.
    fn scores(&self, k: &mut Builder) -> Vec<Vec<Reg>> {
        let Shape { len, keys, .. } = self.shape;
        let (queries, tile) = (&self.query_tile, &self.key_tile);
        // Lane 8i + j names row j of matrix i. Matrices of queries are below each other, then side by side, those of keys
        // side by side first.
        let (low, high) = (k.and(self.lane, 15), k.shr(self.lane, 4));
        let row = k.add(self.warp_token, low);
        let row = k.fma(row, queries.pitch, queries.first);
        let query = k.fma(high, 16, row);
        let (in_matrix, matrix) = (k.and(self.lane, 7), k.shr(self.lane, 3));
        let row = k.fma(high, 8, in_matrix);
        let row = k.fma(row, tile.pitch, tile.first);
        let side = k.and(matrix, 1);
        let key = k.fma(side, 16, row);
        let scores: Vec<Vec<Reg>> = (0..keys / 8).map(|_| k.filled(F32, 4, 0.0f32)).collect();
        for step in 0..len / 16 {
            let query = queries.load(k, Op::LdMatrix4, query, 32 * step);
            for (pair, scores) in (0..).zip(scores.chunks_exact(2)) {
                let further = pair * 16 * tile.pitch + 32 * step;
                let key = tile.load(k, Op::LdMatrix4, key, further);
                multiply_parts(k, scores, &query, &key);
            }
        }
        scores
    }

    /// The position of the lane's first token; its second one is eight further.
    fn first_position(&self, k: &mut Builder) -> Reg {
        let g = k.shr(self.lane, 2);
        let token = k.add(self.first_token, self.warp_token);
        let token = k.add(token, g);
        k.add(self.params.position, token)
    }

    /// Masks the scores of positions that tokens do not see, and sets the scores of values that are not finite to NaN.
    /// Lane 4g + t has columns 2t and the next of rows g and g + 8 of a fragment.
    fn mask(&self, k: &mut Builder, first: Reg, scores: &[Vec<Reg>]) {
        let t = k.and(self.lane, 3);
        let poison = k.fma(t, 8, self.poison);
        for (i, scores) in (0..).zip(scores) {
            let poison = k.ld_vector(Op::LdShared, F32, 2, poison, 32 * i);
            for (&score, &poison) in scores.iter().zip(poison.iter().cycle()) {
                k.add_assign(score, poison);
            }
        }
        let end = k.offset(first, self.shape.keys);
        let all_see = k.add(self.params.position, self.first_token);
        let all_see = k.offset(all_see, 1);
        let beyond = k.gt(end, all_see);
        let has_window = k.ne(self.params.window, 0);
        let masked = k.or(beyond, has_window);
        k.when(masked, |k| {
            let position = self.first_position(k);
            let col = k.fma(t, 2, first);
            for half in 0..2 {
                let position = k.offset(position, 8 * half);
                let first_seen = self.params.first_seen(k, position);
                for (i, scores) in (0..).zip(scores) {
                    for odd in 0..2 {
                        let col = k.offset(col, 8 * i + odd);
                        let later = k.gt(col, position);
                        let earlier = k.lt(col, first_seen);
                        let hidden = k.or(later, earlier);
                        let score = scores[(2 * half + odd) as usize];
                        k.guarded(hidden, true, |k| k.assign(score, f32::NEG_INFINITY));
                    }
                }
            }
        });
    }

    /// Bounds scores, if there is a bound.
    fn cap(&self, k: &mut Builder, scores: &[Vec<Reg>]) {
        let has_cap = k.gt(self.params.soft_cap, 0.0f32);
        // Scores are in units of ln 2.
        let cap = k.mul(self.params.soft_cap, std::f32::consts::LOG2_E);
        k.when(has_cap, |k| {
            for &score in scores.iter().flatten() {
                soft_cap(k, score, cap);
            }
        });
    }

    /// Adds the products of weights with the tile's values to sums.
    fn add_values(&self, k: &mut Builder, weights: &[Vec<Reg>], sums: &[Vec<Reg>]) {
        let tile = &self.value_tile;
        let (low, high) = (k.and(self.lane, 15), k.shr(self.lane, 4));
        let row = k.fma(low, tile.pitch, tile.first);
        let value = k.fma(high, 16, row);
        for (step, weights) in (0..).zip(weights.chunks_exact(2)) {
            let weights = bf16_parts(k, &weights.concat());
            for (pair, sums) in (0..).zip(sums.chunks_exact(2)) {
                let further = step * 16 * tile.pitch + 32 * pair;
                let value = tile.load(k, Op::LdMatrix4Trans, value, further);
                multiply_parts(k, sums, &weights, &value);
            }
        }
    }

    fn store(&self, k: &mut Builder, running: &Running) {
        let Shape { len, columns, .. } = self.shape;
        let (g, t) = (k.shr(self.lane, 2), k.and(self.lane, 3));
        let token = k.add(self.first_token, self.warp_token);
        let first = k.add(token, g);
        let col = k.mul(t, 2);
        let col = k.fma(self.part, columns, col);
        for half in 0..2 {
            let total = over_lanes(k, Combine::Sum, running.totals[half], 4);
            let token = k.offset(first, 8 * half as u32);
            let index = k.fma(token, self.params.heads, self.head);
            let len = k.value(U32, len);
            let to = k.at_2d(self.params.mixed, index, len, col, 4);
            let means: Vec<Reg> = running.of(half).map(|sum| k.div(sum, total)).collect();
            let exists = k.lt(token, self.params.tokens);
            k.when(exists, |k| {
                for (i, pair) in (0..).zip(means.chunks_exact(2)) {
                    k.st_global(F32, to, 32 * i, pair);
                }
            });
        }
    }
}

/// For both tokens of a lane the largest score so far and the lane's part of the sum of weights, and the sums of values.
struct Running {
    highest: [Reg; 2],
    totals: [Reg; 2],
    sums: Vec<Vec<Reg>>,
}

impl Running {
    fn new(k: &mut Builder, shape: Shape) -> Self {
        let fragments = 0..shape.columns / 8;
        Self {
            highest: [LOWEST; 2].map(|score| k.value(F32, score)),
            totals: [0.0f32; 2].map(|total| k.value(F32, total)),
            sums: fragments.map(|_| k.filled(F32, 4, 0.0f32)).collect(),
        }
    }

    /// The sums of one of the lane's tokens.
    fn of(&self, half: usize) -> impl Iterator<Item = Reg> {
        self.sums
            .iter()
            .flat_map(move |sums| [sums[2 * half], sums[2 * half + 1]])
    }

    /// Adds a tile whose scores are given.
    fn add(&self, k: &mut Builder, block: &Block, scores: &[Vec<Reg>]) {
        for half in 0..2 {
            let own: Vec<Reg> = scores
                .iter()
                .flat_map(|scores| [scores[2 * half], scores[2 * half + 1]])
                .collect();
            let highest = k.value(F32, self.highest[half]);
            for &score in &own {
                Combine::Max.apply(k, highest, score);
            }
            let highest = over_lanes(k, Combine::Max, highest, 4);
            let down = k.sub(self.highest[half], highest);
            let correction = k.ex2(down);
            k.assign(self.highest[half], highest);
            k.mul_assign(self.totals[half], correction);
            for sum in self.of(half) {
                k.mul_assign(sum, correction);
            }
            for score in own {
                let down = k.sub(score, highest);
                k.emit(Op::Ex2, F32, &[score.into()], &[down.into()]);
                k.add_assign(self.totals[half], score);
            }
        }
        block.add_values(k, scores, &self.sums);
    }
}

//! Prepares heads of queries, keys and values for attention.

use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::{BlockReduce, Combine, over_lanes};
use crate::types::PtxType::{B32, F16, F32, S32, U32};
use crate::types::Target;

const THREADS: u32 = 128;

/// The largest number of elements of a head.
pub(super) const MOST_HEAD: u32 = 256;

/// The largest integer, and the number up to which its quotient may be infinite: a block of such numbers becomes zeros.
const MOST_INTEGER: f32 = 127.0;
const LEAST: f32 = 1e-36;

/// The largest f16.
const MOST_F16: f32 = 65504.0;

/// Writes heads where attention reads them: those of queries one after the other, and those of keys and values to the rows
/// of a cache. Queries and keys are divided by their root mean square and multiplied by a gain, if there is one, and then
/// rotated by the angles of their position; values are copied.
///
/// Parameters: `x` (f32, for each token its heads of queries, keys and values), `query_gain`, `key_gain` (f32, `head_len`, or
/// that for each head; not read without gains), `angles` (f32, cosine and sine for each position and pair), `queries` (f32, `tokens ×
/// query_heads × head_len`), `cached` (the keys and then the values, a row of `head_len` elements for each head and position
/// that there is room for; f32 or words), `tokens` (at most 65,535), `heads` (of queries, keys and values), `query_heads`,
/// `turned` (the heads of queries and keys), `head_len` (at most 256), `position` (of the first token), `pairs` (the pairs
/// of a head that are rotated), `neighbours` (1 if a pair is of elements `2i` and `2i + 1`, 0 if of `i` and `pairs + i`),
/// `gains` (0: none, 1: for each head by itself, 2: for all heads of queries together and for all of keys), `capacity` (the positions that there is room for, at least `tokens`; the row of a position is its
/// remainder), `query_angles` (the number of pairs of angles before those of queries) (u32), `epsilon` (f32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlaceHeadsKernel {
    rows: CachedRows,
}

/// The type in which a cache stores the rows of keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum CachedRows {
    #[default]
    F32,
    /// Words of two f16, one of each half of a row.
    F16,
    /// Words of four integers, then an f32 for each block of 32 elements, up to a multiple of four words.
    Q8,
}

impl CachedRows {
    /// The end of the names of kernels.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            CachedRows::F32 => "",
            CachedRows::F16 => "_f16",
            CachedRows::Q8 => "_q8_0",
        }
    }

    pub(super) fn elements_of_word(self) -> u32 {
        match self {
            // Those of a half of a row.
            CachedRows::F32 | CachedRows::F16 => 1,
            CachedRows::Q8 => 4,
        }
    }

    /// Returns the number of vectors of four words or integers that `len` elements take.
    pub(super) fn vectors(self, len: u32) -> u32 {
        match self {
            CachedRows::F32 | CachedRows::Q8 => len / 4,
            CachedRows::F16 => len / 8,
        }
    }

    /// The words of a row of `len` elements that hold them, and all words of a row.
    pub(super) fn words(self, k: &mut Builder, len: Reg) -> [Reg; 2] {
        match self {
            CachedRows::F32 => [len; 2],
            CachedRows::F16 => [k.shr(len, 1); 2],
            CachedRows::Q8 => {
                let used = k.shr(len, 2);
                // Four words for each 128 elements and for the rest.
                let scales = k.offset(len, 127);
                let scales = k.shr(scales, 7);
                [used, k.fma(scales, 4, used)]
            }
        }
    }
}

impl PlaceHeadsKernel {
    /// Creates a kernel that writes f32 to the cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes words of two f16: element `i` of a head in the low half and element `head_len/2 + i` in the high one.
    /// Elements beyond ±65504 become that. The length of a head must be even.
    #[must_use]
    pub fn packed(self) -> Self {
        let rows = CachedRows::F16;
        Self { rows }
    }

    /// Writes words of four integers of 8 bits, then the scale (f32) of each block of 32 elements: an element is its integer
    /// times the scale, which is the 127th part of the largest magnitude. A block with an element that is not finite gets a
    /// scale that is NaN. A row takes `⌈(head_len/4 + ⌈head_len/32⌉)/4⌉` times four words. The length of a head must be a
    /// multiple of 16.
    #[must_use]
    pub fn quantized(self) -> Self {
        let rows = CachedRows::Q8;
        Self { rows }
    }
}

impl Kernel for PlaceHeadsKernel {
    fn name(&self) -> String {
        format!("place_heads{}", self.rows.suffix())
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let grid = [
            Extent::Param("heads"),
            Extent::Param("tokens"),
            Extent::Fixed(1),
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let [x, query_gain, key_gain, angles, queries, cached] =
            ["x", "query_gain", "key_gain", "angles", "queries", "cached"]
                .map(|name| k.pointer(name, F32));
        let _ = k.scalar("tokens", U32);
        let [heads, query_heads, turned, head_len] =
            ["heads", "query_heads", "turned", "head_len"].map(|name| k.scalar(name, U32));
        let [position, pairs, neighbours, gains, capacity] =
            ["position", "pairs", "neighbours", "gains", "capacity"]
                .map(|name| k.scalar(name, U32));
        let query_angles = k.scalar("query_angles", U32);
        let epsilon = k.scalar("epsilon", F32);
        let (index, token) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
        let zero = k.value(U32, 0);
        let position = k.add(position, token);
        let is_query = k.lt(index, query_heads);
        let first_angle = k.select(is_query, query_angles, 0u32);
        let head = Head {
            elements: k.shared("elements", F32, MOST_HEAD),
            len: head_len,
            thread: k.special(Special::TidX),
            turned: k.lt(index, turned),
            pairs,
            neighbours: k.ne(neighbours, 0),
            angles: k.at_2d(angles, position, pairs, first_angle, 8),
        };
        let reduce = BlockReduce::new(&mut k, THREADS, false);
        k.wait_for_grid();
        let x_head = k.fma(token, heads, index);
        let all = x;
        let x = k.at_2d(x, x_head, head_len, zero, 4);
        let squares = head.load(&mut k, x);
        // The first head that is normalised with this one, and the number of elements of all of them.
        let first = k.select(is_query, 0u32, query_heads);
        let end = k.select(is_query, query_heads, turned);
        let of_kind = k.sub(end, first);
        let of_kind = k.mul(of_kind, head_len);
        let together = k.eq(gains, 2);
        let together = k.and(together, head.turned);
        k.when(together, |k| {
            let first = k.fma(token, heads, first);
            let from = k.at_2d(all, first, head_len, zero, 4);
            add_squares(k, [from, of_kind, head.thread], squares);
        });
        let count = k.select(together, of_kind, head_len);
        let before = k.sub(index, first);
        let before = k.select(together, before, 0u32);
        let sum = reduce.all(&mut k, Combine::Sum, squares);
        let has_gains = k.ne(gains, 0);
        let normed = k.and(has_gains, head.turned);
        let gain = k.select(is_query, query_gain, key_gain);
        let gain = k.at_2d(gain, before, head_len, zero, 4);
        k.when(normed, |k| head.normalise(k, gain, [sum, count, epsilon]));
        k.barrier();
        let to = k.fma(token, query_heads, index);
        let to_queries = k.at_2d(queries, to, head_len, zero, 4);
        let row = k.rem(position, capacity);
        let of_cache = k.sub(index, query_heads);
        let row = k.fma(of_cache, capacity, row);
        let [_, words] = self.rows.words(&mut k, head_len);
        let to_cache = k.at_2d(cached, row, words, zero, 4);
        k.when_else(
            is_query,
            |k| head.store(k, to_queries),
            |k| match self.rows {
                CachedRows::F32 => head.store(k, to_cache),
                CachedRows::F16 => head.store_packed(k, to_cache),
                CachedRows::Q8 => head.store_quantized(k, to_cache),
            },
        );
        k.finish()
    }
}

/// A head in shared memory with the rotation of its position.
struct Head {
    elements: Reg,
    len: Reg,
    thread: Reg,
    /// Whether the head is normalised and rotated.
    turned: Reg,
    pairs: Reg,
    neighbours: Reg,
    angles: Reg,
}

impl Head {
    /// Copies the head to shared memory, and returns the sum of the thread's squares.
    fn load(&self, k: &mut Builder, x: Reg) -> Reg {
        let squares = k.value(F32, 0.0f32);
        k.for_range(self.thread, self.len, THREADS, |k, i| {
            let at = k.at(x, i, 4);
            let value = k.ld(Op::LdGlobal, F32, at, 0);
            k.fma_assign(squares, value, value);
            let at = k.fma(i, 4, self.elements);
            k.st_shared(F32, at, 0, value);
        });
        squares
    }

    /// Divides the head by the root of the mean of `count` squares, and multiplies it by the gain.
    fn normalise(&self, k: &mut Builder, gain: Reg, [sum, count, epsilon]: [Reg; 3]) {
        let count = k.convert(Op::CvtF32U32, F32, &[count.into()]);
        let mean = k.div(sum, count);
        let mean = k.add(mean, epsilon);
        let root = k.sqrt(mean);
        let factor = k.rcp(root);
        k.for_range(self.thread, self.len, THREADS, |k, i| {
            let gain = k.at(gain, i, 4);
            let gain = k.ld_global(F32, gain, 0);
            let at = k.fma(i, 4, self.elements);
            let value = k.ld_shared(F32, at, 0);
            let value = k.mul(value, factor);
            let value = k.mul(value, gain);
            k.st_shared(F32, at, 0, value);
        });
    }

    fn store(&self, k: &mut Builder, y: Reg) {
        k.for_range(self.thread, self.len, THREADS, |k, i| {
            let value = self.element(k, i);
            let at = k.at(y, i, 4);
            k.st_global(F32, at, 0, value);
        });
    }

    fn store_packed(&self, k: &mut Builder, y: Reg) {
        let half = k.shr(self.len, 1);
        k.for_range(self.thread, half, THREADS, |k, i| {
            let further = k.add(half, i);
            let pair = [i, further].map(|i| {
                let value = self.element(k, i);
                to_f16(k, value)
            });
            let word = k.op(Op::Pack, B32, B32, &[pair.as_slice().into()]);
            let at = k.at(y, i, 4);
            k.st_global(B32, at, 0, word);
        });
    }

    /// A thread stores a word; eight of them have a block.
    fn store_quantized(&self, k: &mut Builder, y: Reg) {
        let words = k.shr(self.len, 2);
        let last = k.sub(words, 1);
        let exists = k.lt(self.thread, words);
        // Threads beyond the last word take part in the exchange with its elements.
        let word = k.min(self.thread, last);
        let first = k.mul(word, 4);
        let elements = [0, 1, 2, 3].map(|i| {
            let i = k.offset(first, i);
            self.element(k, i)
        });
        let (largest, nothing) = (k.value(F32, 0.0f32), k.value(F32, 0.0f32));
        for element in elements {
            let magnitude = k.abs(element);
            Combine::Max.apply(k, largest, magnitude);
            // NaN if the element is not finite.
            k.fma_assign(nothing, element, 0.0f32);
        }
        let largest = over_lanes(k, Combine::Max, largest, 8);
        let nothing = over_lanes(k, Combine::Sum, nothing, 8);
        let is_number = k.gt(largest, LEAST);
        let inverse = k.rcp(largest);
        let factor = k.mul(inverse, MOST_INTEGER);
        let factor = k.select(is_number, factor, 0.0f32);
        let bytes = elements.map(|element| {
            let scaled = k.mul(element, factor);
            let integer = k.convert(Op::CvtS32F32, S32, &[scaled.into()]);
            k.and(integer, 0xff)
        });
        let packed = k.value(U32, bytes[0]);
        for (i, byte) in (1..).zip(&bytes[1..]) {
            let shifted = k.shl(*byte, 8 * i);
            let both = k.or(packed, shifted);
            k.assign(packed, both);
        }
        k.when(exists, |k| {
            let at = k.at(y, word, 4);
            k.st_global(B32, at, 0, packed);
            let in_block = k.and(word, 7);
            let is_first = k.eq(in_block, 0);
            k.when(is_first, |k| {
                let scale = k.mul(largest, 1.0 / MOST_INTEGER);
                let scale = k.add(scale, nothing);
                let block = k.shr(word, 3);
                let place = k.add(words, block);
                let at = k.at(y, place, 4);
                k.st_global(F32, at, 0, scale);
            });
        });
    }

    /// Returns an element of the head after the rotation.
    fn element(&self, k: &mut Builder, i: Reg) -> Reg {
        let at = k.fma(i, 4, self.elements);
        let result = k.value(F32, 0.0f32);
        let value = k.ld_shared(F32, at, 0);
        k.assign(result, value);
        let rotated = k.mul(self.pairs, 2);
        let rotated = k.lt(i, rotated);
        let rotated = k.and(rotated, self.turned);
        k.when(rotated, |k| {
            let odd = k.and(i, 1);
            let odd = k.ne(odd, 0);
            let further = k.ge(i, self.pairs);
            let of_neighbours = k.and(self.neighbours, odd);
            let of_halves = k.not(self.neighbours);
            let of_halves = k.and(of_halves, further);
            let second = k.or(of_neighbours, of_halves);
            let stride = k.select(self.neighbours, 1u32, self.pairs);
            let before = k.sub(i, stride);
            let after = k.add(i, stride);
            let other = k.select(second, before, after);
            let half = k.shr(i, 1);
            let first = k.select(second, before, i);
            let pair = k.select(self.neighbours, half, first);
            let angle = k.at(self.angles, pair, 8);
            let angle = k.ld_vector(Op::LdGlobalNc, F32, 2, angle, 0);
            let other = k.fma(other, 4, self.elements);
            let other = k.ld_shared(F32, other, 0);
            let minus = k.neg(other);
            let other = k.select(second, other, minus);
            let turned = k.mul(other, angle[1]);
            let turned = k.fma(value, angle[0], turned);
            k.assign(result, turned);
        });
        result
    }
}

/// Replaces a thread's sum of squares by that of its share of `len` elements at an address.
fn add_squares(k: &mut Builder, [from, len, thread]: [Reg; 3], squares: Reg) {
    k.assign(squares, 0.0f32);
    k.for_range(thread, len, THREADS, |k, i| {
        let at = k.at(from, i, 4);
        let value = k.ld(Op::LdGlobal, F32, at, 0);
        k.fma_assign(squares, value, value);
    });
}

/// Rounds a number to f16; those beyond its range become the largest, and NaN stays.
fn to_f16(k: &mut Builder, value: Reg) -> Reg {
    let above = k.gt(value, MOST_F16);
    let value = k.select(above, MOST_F16, value);
    let below = k.lt(value, -MOST_F16);
    let value = k.select(below, -MOST_F16, value);
    k.convert(Op::CvtF16F32, F16, &[value.into()])
}

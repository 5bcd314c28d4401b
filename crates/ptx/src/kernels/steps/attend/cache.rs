//! The rows of keys and values in a cache, as attention reads them.

use super::{AT_ONCE, CachedRows, Params};
use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::kernels::common::wrapped;
use crate::types::PtxType::{B32, F16, F32, U32};

/// The keys and values of a head.
pub(super) struct Cache {
    pub(super) rows: CachedRows,
    pub(super) keys: Reg,
    pub(super) values: Reg,
    /// The words of a row, and those of them that hold elements.
    pub(super) words: Reg,
    used: Reg,
    /// The rows, after which the first one follows.
    pub(super) capacity: Reg,
}

impl Cache {
    /// The cache of the head that a head of queries shares.
    pub(super) fn new(k: &mut Builder, params: &Params, head: Reg) -> Self {
        let sharing = k.div(params.heads, params.kv_heads);
        let kv_head = k.div(head, sharing);
        let len = params.head_len;
        let [used, words] = params.rows.words(k, len);
        let after_keys = k.add(kv_head, params.kv_heads);
        let zero = k.value(U32, 0);
        let [keys, values] = [kv_head, after_keys].map(|head| {
            let first = k.mul(head, params.capacity);
            k.at_2d(params.cached, first, words, zero, 4)
        });
        Self {
            rows: params.rows,
            keys,
            values,
            words,
            used,
            capacity: params.capacity,
        }
    }

    /// Multiplies the query by the key of a position.
    pub(super) fn score(&self, k: &mut Builder, row: Reg, query: Reg, score: Reg) {
        let zero = k.value(U32, 0);
        let row = wrapped(k, row, self.capacity);
        let row = k.at_2d(self.keys, row, self.words, zero, 4);
        let sums = k.filled(F32, 4, 0.0f32);
        let i = k.value(U32, 0);
        for count in [AT_ONCE, 1] {
            // The first word from which on there are not as many vectors.
            let end = k.add(self.used, 1);
            let end = k.sub(end, 4 * count);
            let enough = k.ge(self.used, 4 * count);
            let end = k.select(enough, end, 0u32);
            k.count_up(i, end, 4 * count, |k| {
                let at = k.at(row, i, 4);
                let vector =
                    |vector: u32| k.ld_vector(Op::LdGlobal, B32, 4, at, 16 * vector as i32);
                let keys: Vec<Vec<Reg>> = (0..count).map(vector).collect();
                let first = k.fma(i, self.rows.elements_of_word() * 4, query);
                // Only integers have scales.
                let scales = match self.rows {
                    CachedRows::F32 | CachedRows::F16 => first,
                    CachedRows::Q8 => self.scale_of(k, [row, i]),
                };
                for (vector, keys) in (0..).zip(&keys) {
                    self.multiply(k, keys, [first, scales], vector, &sums);
                }
            });
        }
        let even = k.add(sums[0], sums[2]);
        let odd = k.add(sums[1], sums[3]);
        let sum = k.add(even, odd);
        k.assign(score, sum);
    }

    /// Adds the products of four words of a key and the elements of the query. They are the vector of this number from those
    /// on that belong to the addresses of elements of the query and of a scale.
    fn multiply(
        &self,
        k: &mut Builder,
        words: &[Reg],
        [first, scales]: [Reg; 2],
        vector: i32,
        sums: &[Reg],
    ) {
        match self.rows {
            CachedRows::F32 => {
                let queries = k.ld_vector(Op::LdShared, F32, 4, first, 16 * vector);
                for ((&sum, query), &word) in sums.iter().zip(queries).zip(words) {
                    let key = k.value(F32, word);
                    k.fma_assign(sum, query, key);
                }
            }
            CachedRows::F16 => {
                let queries = k.ld_vector(Op::LdShared, F32, 4, first, 16 * vector);
                let second = k.fma(self.words, 4, first);
                let further = k.ld_vector(Op::LdShared, F32, 4, second, 16 * vector);
                for (j, &word) in words.iter().enumerate() {
                    let [low, high] = halves(k, word);
                    k.fma_assign(sums[j], queries[j], low);
                    k.fma_assign(sums[j], further[j], high);
                }
            }
            CachedRows::Q8 => {
                // Two vectors have a block.
                let scale = k.ld(Op::LdGlobal, F32, scales, 4 * (vector / 2));
                let of_block = k.filled(F32, 4, 0.0f32);
                for (j, &word) in (0..).zip(words) {
                    let queries = k.ld_vector(Op::LdShared, F32, 4, first, 64 * vector + 16 * j);
                    let integers = integers(k, word);
                    for ((&sum, query), key) in of_block.iter().zip(queries).zip(integers) {
                        k.fma_assign(sum, query, key);
                    }
                }
                for (&sum, part) in sums.iter().zip(of_block) {
                    k.fma_assign(sum, scale, part);
                }
            }
        }
    }

    /// The address of the scale of the block that a word of integers of the row at an address belongs to.
    fn scale_of(&self, k: &mut Builder, [row, word]: [Reg; 2]) -> Reg {
        let block = k.shr(word, 3);
        let place = k.add(self.used, block);
        k.at(row, place, 4)
    }

    /// Four elements of the value of a position.
    pub(super) fn value(&self, k: &mut Builder, row: Reg, vector: Reg) -> Vec<Reg> {
        let row = wrapped(k, row, self.capacity);
        match self.rows {
            CachedRows::F32 => {
                let column = k.mul(vector, 4);
                let at = k.at_2d(self.values, row, self.words, column, 4);
                k.ld_vector(Op::LdGlobal, F32, 4, at, 0)
            }
            CachedRows::F16 => {
                let of_half = k.shr(self.words, 2);
                let second = k.ge(vector, of_half);
                let before = k.sub(vector, of_half);
                let vector = k.select(second, before, vector);
                let column = k.mul(vector, 4);
                let at = k.at_2d(self.values, row, self.words, column, 4);
                let words = k.ld_vector(Op::LdGlobal, B32, 4, at, 0);
                let element = |word| {
                    let [low, high] = halves(k, word);
                    k.select(second, high, low)
                };
                words.into_iter().map(element).collect()
            }
            CachedRows::Q8 => {
                let zero = k.value(U32, 0);
                let row = k.at_2d(self.values, row, self.words, zero, 4);
                self.quantized(k, [row, vector])
            }
        }
    }

    /// The four elements of a word of the row of integers at an address.
    pub(super) fn quantized(&self, k: &mut Builder, [row, word]: [Reg; 2]) -> Vec<Reg> {
        let at = k.at(row, word, 4);
        let integers_of_word = k.ld(Op::LdGlobal, B32, at, 0);
        let scale = self.scale_of(k, [row, word]);
        let scale = k.ld(Op::LdGlobal, F32, scale, 0);
        let integers = integers(k, integers_of_word).into_iter();
        integers.map(|integer| k.mul(integer, scale)).collect()
    }
}

/// The integers from −128 to 127 in a word's bytes, as numbers.
fn integers(k: &mut Builder, word: Reg) -> [Reg; 4] {
    // 2²³ + b has the byte b as its lowest bits.
    const ROUNDING: f32 = 8_388_608.0;
    let upper = k.value(B32, ROUNDING.to_bits());
    let shifted = k.xor(word, 0x8080_8080u32);
    [0, 1, 2, 3].map(|i| {
        let bytes = [shifted.into(), upper.into(), (0x7440 + i).into()];
        let number = k.op(Op::Prmt, B32, F32, &bytes);
        k.sub(number, ROUNDING + 128.0)
    })
}

/// The two f16 of a word as f32, the low half first.
pub(super) fn halves(k: &mut Builder, word: Reg) -> [Reg; 2] {
    let halves = k.regs(F16, 2);
    k.emit(Op::Unpack, B32, &[halves.as_slice().into()], &[word.into()]);
    [halves[0], halves[1]].map(|half| k.convert(Op::CvtF32F16, F32, &[half.into()]))
}

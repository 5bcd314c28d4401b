//! A matrix of quantised weights times a vector, limited by how quickly weights can be read.
//!
//! Four rows go to a block of four warps; a warp takes 512 weights of each row at a time, and
//! a lane 16 of them, which two runs of eight consecutive ones make up. A weight `q` of `b` bits
//! becomes the number `1 + q/2ᵇ` by placing its bits in a mantissa: one instruction, where a
//! conversion takes a quarter of the rate. With `S` the sum of these times `x`, and `X` the sum
//! of `x`, a run adds `scale · S + bias · X`.

use super::{QuantFormat, QuantizeKernel};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::{Combine, WARP, along_x, over_lanes};
use crate::types::PtxType::{B16, B32, F16, F32, S8, U8, U16, U32};
use crate::types::Target;

/// The number of rows per block.
const ROWS: u32 = 4;
/// The number of warps that share these rows.
const WARPS: u32 = 4;
/// The number of weights per lane.
const LANE: u32 = 16;

/// Eight consecutive weights of a lane.
struct Run {
    /// As bytes, in two words, or for weights of 8 bits as numbers.
    values: Vec<Reg>,
    scale: Reg,
    bias: Option<Reg>,
}

/// A lane's place in its block of weights.
struct Place {
    /// Number of the lane among those that share a block.
    lane: Reg,
    /// The position of its first run in the block.
    first: Reg,
    second: u32,
}

pub(super) fn build(kernel: QuantizeKernel, target: Target) -> Result<PtxKernel> {
    let format = kernel.format;
    let (values, bytes) = format.block();
    let launch = Launch::new(WARPS * WARP, along_x(Extent::Tiles("rows", ROWS)));
    let mut k = Builder::new(kernel.name(), target, launch);
    let (w, x, y) = (k.pointer("w", U8), k.pointer("x", F32), k.pointer("y", F32));
    let (rows, cols) = (k.scalar("rows", U32), k.scalar("cols", U32));
    let (thread, block) = (k.special(Special::TidX), k.special(Special::CtaidX));
    let place = Place::new(&mut k, format, thread);
    let first_row = k.mul(block, ROWS);
    let blocks = k.div(cols, values);
    let last = k.sub(rows, 1);
    let row_starts: Vec<Reg> = (0..ROWS)
        .map(|i| {
            // Rows beyond the last repeat it; their sums are not stored.
            let row = k.offset(first_row, i);
            let row = k.min(row, last);
            let zero = k.value(U32, 0);
            k.at_2d(w, row, blocks, zero, bytes)
        })
        .collect();
    let sums = k.filled(F32, ROWS as usize, 0.0f32);
    let own = k.shr(thread, (values / LANE).trailing_zeros());
    k.for_range(own, blocks, WARPS * WARP * LANE / values, |k, block| {
        let start = k.fma(block, values, place.first);
        let x = k.at(x, start, 4);
        let runs = [0, place.second].map(|further| load_eight(k, x, further * 4));
        let totals = runs.each_ref().map(|run| total(k, run));
        for (&row, &sum) in row_starts.iter().zip(&sums) {
            let block = k.at(row, block, bytes);
            let weights = format.runs(k, block, &place);
            for ((run, x), total) in weights.iter().zip(&runs).zip(&totals) {
                run.add_to(k, sum, x, *total);
            }
        }
    });
    finish(&mut k, thread, &sums, [first_row, rows, y]);
    k.finish()
}

/// Adds up lanes, then warps; thread `i` stores row `i`.
fn finish(k: &mut Builder, thread: Reg, sums: &[Reg], [first_row, rows, y]: [Reg; 3]) {
    let partial = k.shared("partial", F32, ROWS * WARPS);
    let (warp, lane) = (k.shr(thread, 5), k.and(thread, WARP - 1));
    let first = k.eq(lane, 0);
    let to = k.fma(warp, 4, partial);
    for (i, &sum) in sums.iter().enumerate() {
        let sum = over_lanes(k, Combine::Sum, sum, WARP);
        let offset = (i as u32 * WARPS * 4) as i32;
        k.guarded(first, true, |k| k.st_shared(F32, to, offset, sum));
    }
    k.barrier();
    let row = k.add(first_row, thread);
    let (mine, exists) = (k.lt(thread, ROWS), k.lt(row, rows));
    let stores = k.and(mine, exists);
    k.when(stores, |k| {
        let from = k.fma(thread, WARPS * 4, partial);
        let parts = k.ld_vector(Op::LdShared, F32, WARPS as usize, from, 0);
        let sum = total(k, &parts);
        let y = k.at(y, row, 4);
        k.st_global(F32, y, 0, sum);
    });
}

fn load_eight(k: &mut Builder, x: Reg, offset: u32) -> Vec<Reg> {
    let mut values = k.ld_vector(Op::LdGlobalNc, F32, 4, x, offset as i32);
    values.extend(k.ld_vector(Op::LdGlobalNc, F32, 4, x, offset as i32 + 16));
    values
}

fn total(k: &mut Builder, values: &[Reg]) -> Reg {
    let sum = k.value(F32, values[0]);
    for &value in &values[1..] {
        k.add_assign(sum, value);
    }
    sum
}

impl Run {
    fn add_to(&self, k: &mut Builder, sum: Reg, x: &[Reg], total: Reg) {
        let dot = k.value(F32, 0.0f32);
        for (i, &x) in x.iter().enumerate() {
            let weight = match self.values.len() {
                2 => in_mantissa(k, self.values[i / 4], i % 4),
                _ => self.values[i],
            };
            k.fma_assign(dot, weight, x);
        }
        k.fma_assign(sum, self.scale, dot);
        if let Some(bias) = self.bias {
            k.fma_assign(sum, bias, total);
        }
    }
}

/// `1 + (byte − 128)/128` of byte `i`, whose highest bit is set: the byte becomes the lower bit
/// of the exponent and the upper seven of the mantissa.
fn in_mantissa(k: &mut Builder, word: Reg, i: usize) -> Reg {
    let upper = k.value(B32, 0x3f00_0000);
    let selector = 0x7044 | (i as u32) << 8;
    let bits = [word.into(), upper.into(), selector.into()];
    k.op(Op::Prmt, B32, F32, &bits)
}

impl Place {
    fn new(k: &mut Builder, format: QuantFormat, thread: Reg) -> Self {
        let (values, _) = format.block();
        let lane = k.and(thread, values / LANE - 1);
        let (first, second) = match format {
            // Two groups of 32 share 32 bytes.
            QuantFormat::Q4K | QuantFormat::Q5K => {
                let (pair, in_pair) = (k.shr(lane, 2), k.and(lane, 3));
                let start = k.mul(in_pair, 8);
                (k.fma(pair, 64, start), 32)
            }
            QuantFormat::Q6K => {
                let (half, in_half) = (k.shr(lane, 3), k.and(lane, 7));
                let start = k.mul(in_half, 8);
                (k.fma(half, 128, start), 64)
            }
            QuantFormat::Q4_0 => (k.mul(lane, 8), 16),
            QuantFormat::Q8_0 => (k.mul(lane, LANE), 8),
        };
        Place {
            lane,
            first,
            second,
        }
    }
}

impl QuantFormat {
    /// This lane's runs of the block at `block`.
    fn runs(self, k: &mut Builder, block: Reg, place: &Place) -> [Run; 2] {
        match self {
            QuantFormat::Q4K | QuantFormat::Q5K => with_minimum(k, block, place, self),
            QuantFormat::Q6K => q6_k(k, block, place),
            QuantFormat::Q4_0 => q4_0(k, block, place),
            QuantFormat::Q8_0 => q8_0(k, block, place),
        }
    }
}

/// Eight bytes as two words, from an address that is a multiple of 2 only.
fn words_by_halves(k: &mut Builder, address: Reg, at: i32) -> Vec<Reg> {
    let word = |k: &mut Builder, at| {
        let halves = [
            k.ld_global(B16, address, at),
            k.ld_global(B16, address, at + 2),
        ];
        k.op(Op::Pack, B32, B32, &[halves.as_slice().into()])
    };
    vec![word(k, at), word(k, at + 4)]
}

/// The low or the high four bits of each byte, as the upper bits of a mantissa.
fn nibbles(k: &mut Builder, word: Reg, high: bool) -> Reg {
    let shifted = if high {
        k.op(Op::Shr, U32, B32, &[word.into(), 1.into()])
    } else {
        k.shl(word, 3)
    };
    k.and(shifted, 0x7878_7878)
}

fn marked(k: &mut Builder, word: Reg) -> Reg {
    k.or(word, 0x8080_8080u32)
}

/// An f16 at an even address, as f32, times a constant.
fn half_times(k: &mut Builder, block: Reg, at: i32, factor: f32) -> Reg {
    let value = super::formats::half(k, block, at);
    k.mul(value, factor)
}

/// `Q4_K` and `Q5_K`: `d · scale · q − dmin · min`.
fn with_minimum(k: &mut Builder, block: Reg, place: &Place, format: QuantFormat) -> [Run; 2] {
    let five = format == QuantFormat::Q5K;
    let (quants, unit) = if five { (48, 32.0) } else { (16, 16.0) };
    let pair = k.shr(place.lane, 2);
    let own = k.at(block, place.lane, 8);
    let words = k.ld_vector(Op::LdGlobalNc, B32, 2, own, quants);
    let both = k.ld(Op::LdGlobalNc, B32, block, 0);
    let halves = k.regs(F16, 2);
    k.emit(Op::Unpack, B32, &[halves.as_slice().into()], &[both.into()]);
    let [d, dmin] = [halves[0], halves[1]].map(|h| k.convert(Op::CvtF32F16, F32, &[h.into()]));
    let (d, dmin) = (k.mul(d, unit), k.neg(dmin));
    let (scales, minima) = scales_of_pair(k, block, pair);
    let high_bits = five.then(|| {
        let in_pair = k.and(place.lane, 3);
        let own = k.at(block, in_pair, 8);
        let words = k.ld_vector(Op::LdGlobalNc, B32, 2, own, 16);
        let from = k.shl(pair, 1);
        let shift =
            |word: Reg, k: &mut Builder| k.op(Op::Shr, U32, B32, &[word.into(), from.into()]);
        [shift(words[0], k), shift(words[1], k)]
    });
    [0, 1].map(|group| {
        let scale = byte_of(k, scales, group);
        let min = byte_of(k, minima, group);
        let scale = k.mul(d, scale);
        let bias = k.neg(scale);
        k.fma_assign(bias, dmin, min);
        let mut values = Vec::new();
        for (i, &word) in words.iter().enumerate() {
            let low = nibbles(k, word, group == 1);
            let bits = match &high_bits {
                None => low,
                // Five bits: one place lower, with the fifth on top.
                Some(high) => {
                    let low = k.op(Op::Shr, U32, B32, &[low.into(), 1.into()]);
                    let high = k.shl(high[i], 6 - group);
                    let high = k.and(high, 0x4040_4040);
                    k.or(low, high)
                }
            };
            values.push(marked(k, bits));
        }
        Run {
            values,
            scale,
            bias: Some(bias),
        }
    })
}

/// The scales and the minima of groups `2 · pair` and the next, each as two bytes of a word. As
/// `scale_and_min` of the formats, two at a time.
fn scales_of_pair(k: &mut Builder, block: Reg, pair: Reg) -> (Reg, Reg) {
    let low = k.and(pair, 1);
    let own = k.at(block, low, 2);
    let [first, second, third] = [4, 8, 12].map(|at| {
        let bits = k.ld(Op::LdGlobalNc, U16, own, at);
        k.convert(Op::CvtU32U16, U32, &[bits.into()])
    });
    let plain = k.lt(pair, 2);
    let mut six = |plain_bits: Reg, from: u32| {
        let low = if from == 0 { third } else { k.shr(third, from) };
        let low = k.and(low, 0x0f0f);
        let high = k.shr(plain_bits, 2);
        let high = k.and(high, 0x3030);
        let split = k.or(low, high);
        let own = k.and(plain_bits, 0x3f3f);
        k.select(plain, own, split)
    };
    (six(first, 0), six(second, 4))
}

/// Byte `i` of a word as a number.
fn byte_of(k: &mut Builder, word: Reg, i: u32) -> Reg {
    let byte = k.op(Op::Bfe, U32, U32, &[word.into(), (8 * i).into(), 8.into()]);
    k.convert(Op::CvtF32U32, F32, &[byte.into()])
}

/// `d · scale · (q − 32)`.
fn q6_k(k: &mut Builder, block: Reg, place: &Place) -> [Run; 2] {
    let (half, in_half) = (k.shr(place.lane, 3), k.and(place.lane, 7));
    let own = k.at(block, place.lane, 8);
    let low = words_by_halves(k, own, 0);
    // Four weights 32 apart share a byte of two high bits.
    let in_32 = k.and(in_half, 3);
    let index = k.fma(half, 4, in_32);
    let own = k.at(block, index, 8);
    let high = words_by_halves(k, own, 128);
    let upper = k.shr(in_half, 2);
    let from = k.shl(upper, 1);
    let high = [0, 1].map(|i| k.op(Op::Shr, U32, B32, &[high[i].into(), from.into()]));
    let d = half_times(k, block, 208, 64.0);
    let index = k.shr(place.first, 4);
    let scales = k.at(block, index, 1);
    [0, 1].map(|second| {
        let scale = k.ld(Op::LdGlobalNc, S8, scales, 192 + 4 * second);
        let scale = k.convert(Op::CvtF32S32, F32, &[scale.into()]);
        let scale = k.mul(scale, d);
        // 64 · (1 + q/64) is q + 64, so q − 32 is 96 less.
        let bias = k.mul(scale, -1.5f32);
        let values = [0, 1].map(|i| {
            let low = nibbles(k, low[i], second == 1);
            let low = k.op(Op::Shr, U32, B32, &[low.into(), 2.into()]);
            let high = if second == 0 {
                k.shl(high[i], 5)
            } else {
                k.shl(high[i], 1)
            };
            let high = k.and(high, 0x6060_6060);
            let bits = k.or(low, high);
            marked(k, bits)
        });
        Run {
            values: values.to_vec(),
            scale,
            bias: Some(bias),
        }
    })
}

/// `d · (q − 8)`.
fn q4_0(k: &mut Builder, block: Reg, place: &Place) -> [Run; 2] {
    let own = k.at(block, place.lane, 8);
    let words = words_by_halves(k, own, 2);
    let scale = half_times(k, block, 0, 16.0);
    let bias = k.mul(scale, -1.5f32);
    [false, true].map(|high| {
        let values = [0, 1].map(|i| {
            let bits = nibbles(k, words[i], high);
            marked(k, bits)
        });
        Run {
            values: values.to_vec(),
            scale,
            bias: Some(bias),
        }
    })
}

/// `d · q`.
fn q8_0(k: &mut Builder, block: Reg, place: &Place) -> [Run; 2] {
    let own = k.at(block, place.lane, LANE);
    let scale = super::formats::half(k, block, 0);
    // 2²³ + u has u as its lowest bits; with u = q + 128 the difference is exact.
    let upper = k.value(B32, 0x4b00_0000);
    [0, 8].map(|at| {
        let words = words_by_halves(k, own, 2 + at);
        let mut values = Vec::new();
        for word in words {
            let shifted = k.xor(word, 0x8080_8080u32);
            for i in 0..4u32 {
                let bits = [shifted.into(), upper.into(), (0x7440 | i).into()];
                let number = k.op(Op::Prmt, B32, F32, &bits);
                values.push(k.sub(number, 8_388_736.0f32));
            }
        }
        Run {
            values,
            scale,
            bias: None,
        }
    })
}

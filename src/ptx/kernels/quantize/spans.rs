//! Block formats as tensor cores see them: spans of 256 weights in shared memory, of which each
//! lane makes its bf16 fragments.
//!
//! A span has eight runs of 32 weights. Of each, lane `4g + t` takes those at `4t` and the next
//! three, and those 16 further: two *halves* of a word's four bytes each. For every format a
//! table says where a run's bits are; what turns them into numbers is the same for all.

use super::formats::QuantFormat;
use crate::ptx::build::Builder;
use crate::ptx::inst::{Op, Reg};
use crate::ptx::types::PtxType::{B32, F16, F32, U32};
use std::cmp::Ordering;

/// Weights of a span, and of a run.
pub(super) const SPAN: u32 = 256;
pub(super) const RUN: u32 = 32;

/// How a row's part in a span lies in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Window {
    /// Bytes of a span.
    pub(super) bytes: u32,
    /// Whether spans begin at multiples of 16 bytes.
    pub(super) exact: bool,
    /// Units of 16 bytes that hold a span wherever it begins, and bytes from a row to the next:
    /// an odd number of units, so that eight rows lie in different banks.
    pub(super) units: u32,
    pub(super) stride: u32,
}

impl Window {
    pub(super) fn of(format: QuantFormat) -> Self {
        let (values, block) = format.block();
        let (bytes, exact) = (block * SPAN / values, block.is_multiple_of(16));
        // Blocks of an even number of bytes begin at an even address: at most 14 too far.
        let units = if exact { bytes } else { bytes + 14 }.div_ceil(16);
        Window {
            bytes,
            exact,
            units,
            stride: (units | 1) * 16,
        }
    }
}

/// A row's span in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Where it begins.
    begin: Reg,
    /// The word that it begins in, and the same for this lane's `t`.
    word: Reg,
    own: Reg,
    /// Which bytes of two words are the one that begins at a multiple of 4 from the beginning,
    /// and the one 2 beyond; none for spans that begin at words.
    select: Option<[Reg; 2]>,
}

impl Row {
    /// The row whose window begins at `window`, if its bytes in global memory begin at `from`.
    pub(super) fn new(k: &mut Builder, exact: bool, window: Reg, from: Reg, t: Reg) -> Self {
        if exact {
            let own = k.fma(t, 4, window);
            let select = None;
            return Row {
                begin: window,
                word: window,
                own,
                select,
            };
        }
        let low = k.convert(Op::CvtU32U64, U32, &[from.into()]);
        let over = k.and(low, 15);
        let begin = k.add(window, over);
        let word = k.and(begin, !3);
        let odd = k.and(begin, 2);
        let odd = k.ne(odd, 0);
        let mut select = |even: u32, odd_by_2: u32| {
            let even = k.value(B32, even);
            k.select(odd, odd_by_2, even)
        };
        let select = Some([select(0x3210, 0x5432), select(0x5432, 0x7654)]);
        let own = k.fma(t, 4, word);
        Row {
            begin,
            word,
            own,
            select,
        }
    }

    /// The same so many bytes further.
    pub(super) fn at(&self, k: &mut Builder, further: Reg) -> Self {
        let own = k.add(self.own, further);
        if self.select.is_none() {
            let begin = k.add(self.begin, further);
            return Row {
                begin,
                word: begin,
                own,
                select: None,
            };
        }
        Row {
            begin: k.add(self.begin, further),
            word: k.add(self.word, further),
            own,
            select: self.select,
        }
    }

    /// Four bytes from an even number on, counted from `4t`.
    fn own_word(&self, k: &mut Builder, at: u32) -> Reg {
        let Some(select) = self.select else {
            return k.ld_shared(B32, self.own, at as i32);
        };
        let first = (at & !3) as i32;
        let words = [first, first + 4].map(|at| k.ld_shared(B32, self.own, at));
        let select = select[at as usize / 2 % 2];
        k.op(
            Op::Prmt,
            B32,
            B32,
            &[words[0].into(), words[1].into(), select.into()],
        )
    }
}

/// Where half a run's bits are in a span.
pub(super) struct Half {
    /// Bytes with four bits of the weights, and whether in their upper halves.
    pub(super) low: u32,
    pub(super) upper: bool,
    /// Bytes with the bits beyond four, and from which bit on.
    pub(super) rest: Option<(u32, u32)>,
}

impl QuantFormat {
    /// Bits of a weight.
    pub(super) fn bits(self) -> u32 {
        match self {
            QuantFormat::Q4_0 | QuantFormat::Q4K => 4,
            QuantFormat::Q5K => 5,
            QuantFormat::Q6K => 6,
            QuantFormat::Q8_0 => 8,
        }
    }

    /// How many scales a run has.
    pub(super) fn parts(self) -> usize {
        if self == QuantFormat::Q6K { 2 } else { 1 }
    }

    /// Half `half` of run `run`; the layouts are those of `formats`.
    pub(super) fn half(self, run: u32, half: u32) -> Half {
        let (pair, upper) = (run / 2, run % 2 == 1);
        match self {
            QuantFormat::Q4K => Half {
                low: 16 + 32 * pair + 16 * half,
                upper,
                rest: None,
            },
            QuantFormat::Q5K => Half {
                low: 48 + 32 * pair + 16 * half,
                upper,
                rest: Some((16 + 16 * half, run)),
            },
            QuantFormat::Q6K => {
                let (of_two, of_four) = (run / 4, run % 4);
                Half {
                    low: 64 * of_two + 32 * (of_four % 2) + 16 * half,
                    upper: of_four >= 2,
                    rest: Some((128 + 32 * of_two + 16 * half, 2 * of_four)),
                }
            }
            QuantFormat::Q4_0 | QuantFormat::Q8_0 => Half {
                low: 18 * run + 2,
                upper: half == 1,
                rest: None,
            },
        }
    }
}

/// Words of a row that have been loaded.
#[derive(Default)]
pub(super) struct Words {
    loaded: Vec<(u32, Reg)>,
}

impl Words {
    fn get(&mut self, k: &mut Builder, row: &Row, at: u32) -> Reg {
        let known = self.loaded.iter().find(|(known, _)| *known == at);
        known.map(|(_, word)| *word).unwrap_or_else(|| {
            let word = row.own_word(k, at);
            self.loaded.push((at, word));
            word
        })
    }

    /// Four weights of `b` bits as bf16 numbers `1 + q/2ᵇ`: the first and the third, the second and
    /// the fourth.
    pub(super) fn weights(&mut self, k: &mut Builder, row: &Row, b: u32, half: &Half) -> [Reg; 2] {
        // A mantissa has seven bits; weights get the highest.
        let to = 7 - b;
        let low = self.get(k, row, half.low);
        let rest = half.rest.map(|(at, from)| (self.get(k, row, at), from));
        let upper = if half.upper { 4 } else { 0 };
        // Every other byte: those of a word's halves.
        [0, 8].map(|odd| {
            let mut number = bits(k, low, upper + odd, to, 4);
            if let Some((word, from)) = rest {
                let beyond = bits(k, word, from + odd, to + 4, b - 4);
                number = k.or(number, beyond);
            }
            k.or(number, 0x3f80_3f80)
        })
    }
}

/// Bits `from .. from + count` of each half of a word, moved to `to`.
fn bits(k: &mut Builder, word: Reg, from: u32, to: u32, count: u32) -> Reg {
    let moved = match from.cmp(&to) {
        Ordering::Less => k.shl(word, to - from),
        Ordering::Equal => word,
        Ordering::Greater => k.op(Op::Shr, U32, B32, &[word.into(), (from - to).into()]),
    };
    k.and(moved, (((1 << count) - 1) << to) * 0x0001_0001u32)
}

/// A run's `scale · (1 + q/2ᵇ) + bias`.
pub(super) struct Scale {
    pub(super) scale: Reg,
    pub(super) bias: Reg,
}

impl QuantFormat {
    /// The scales of runs `2t` and `2t + 1` of a row, by run and part.
    pub(super) fn scales(self, k: &mut Builder, row: &Row, t: Reg) -> [Vec<Scale>; 2] {
        match self {
            QuantFormat::Q4K | QuantFormat::Q5K => self.with_minimum(k, row, t),
            QuantFormat::Q6K => {
                let d = half_at(k, row.begin, 208);
                let d = k.mul(d, 64.0f32);
                // Signed bytes: 128 is added, and taken off again.
                let scales = row.own_word(k, 192);
                let scales = k.xor(scales, 0x8080_8080u32);
                [0, 2].map(|first| {
                    let part = |i| {
                        let scale = number(k, scales, i, -128.0);
                        centred(k, d, scale)
                    };
                    [first, first + 1].map(part).into()
                })
            }
            QuantFormat::Q4_0 | QuantFormat::Q8_0 => {
                let own = k.fma(t, 36, row.begin);
                [0, 18].map(|at| {
                    let d = half_at(k, own, at);
                    let sixteen = k.value(F32, 16.0f32);
                    vec![centred(k, d, sixteen)]
                })
            }
        }
    }

    /// `d · scale · q − dmin · min`; as `scale_and_min` of the formats, for two runs.
    fn with_minimum(self, k: &mut Builder, row: &Row, t: Reg) -> [Vec<Scale>; 2] {
        let header = k.ld_vector(Op::LdShared, B32, 4, row.word, 0);
        let halves = k.regs(F16, 2);
        k.emit(
            Op::Unpack,
            B32,
            &[halves.as_slice().into()],
            &[header[0].into()],
        );
        let [d, dmin] = [halves[0], halves[1]].map(|h| k.convert(Op::CvtF32F16, F32, &[h.into()]));
        let unit = (1 << self.bits()) as f32;
        let (d, dmin) = (k.mul(d, unit), k.neg(dmin));
        let odd = k.and(t, 1);
        let from = k.shl(odd, 4);
        let [first, second, third] =
            [1, 2, 3].map(|i| k.op(Op::Shr, U32, B32, &[header[i].into(), from.into()]));
        let plain = k.lt(t, 2);
        let mut six = |plain_bits: Reg, from: u32| {
            let low = k.op(Op::Shr, U32, B32, &[third.into(), from.into()]);
            let low = k.and(low, 0x0f0f);
            let high = k.op(Op::Shr, U32, B32, &[plain_bits.into(), 2.into()]);
            let high = k.and(high, 0x3030);
            let split = k.or(low, high);
            let own = k.and(plain_bits, 0x3f3f);
            k.select(plain, own, split)
        };
        let (scales, minima) = (six(first, 0), six(second, 4));
        [0, 1].map(|i| {
            let (scale, min) = (number(k, scales, i, 0.0), number(k, minima, i, 0.0));
            let scale = k.mul(d, scale);
            let bias = k.neg(scale);
            k.fma_assign(bias, dmin, min);
            vec![Scale { scale, bias }]
        })
    }
}

/// `d · s · (q − 2ᵇ⁻¹)`, which is `1.5` less than `1 + q/2ᵇ` once divided.
fn centred(k: &mut Builder, d: Reg, s: Reg) -> Scale {
    let scale = k.mul(d, s);
    let bias = k.mul(scale, -1.5f32);
    Scale { scale, bias }
}

/// Byte `i` of a word as a number, plus a whole number. 2²³ + byte has the byte as its lowest bits.
fn number(k: &mut Builder, word: Reg, i: u32, plus: f32) -> Reg {
    let upper = k.value(B32, 0x4b00_0000);
    let bytes = [word.into(), upper.into(), (0x7440 | i).into()];
    let sum = k.op(Op::Prmt, B32, F32, &bytes);
    k.sub(sum, 8_388_608.0 - plus)
}

/// An f16 at an even address.
fn half_at(k: &mut Builder, begin: Reg, at: i32) -> Reg {
    let bits = k.ld_shared(F16, begin, at);
    k.convert(Op::CvtF32F16, F32, &[bits.into()])
}

//! Block formats in the layout of tensor cores: each lane converts its part of a span of 256 weights
//! to fragments of signed bytes.
//!
//! A span has eight runs of 32 weights. Of each, lane `4g + t` takes those at `4t` and the next
//! three, and those 16 further: two *halves*, each four bytes of one word. (Or eight that follow each
//! other, where [`Bytes::own_words`] says so: sums do not notice.) For every format a table says where a
//! run's bits are; what turns them into bytes is the same for all.

use super::formats::QuantFormat;
use super::window::{Bytes, Place};
use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::types::PtxType::{B32, F16, F32, U32};
use std::cmp::Ordering;

/// Weights of a span, and of a run.
pub(super) const SPAN: u32 = 256;
pub(super) const RUN: u32 = 32;

/// The position of half a run's weights in a span, and their conversion to bytes.
struct Half {
    /// Bytes with (the first) four bits of the weights, and whether in their upper halves.
    low: Place,
    upper: bool,
    /// The bytes that have the bits beyond the fourth, with the first of these bits and their number.
    rest: Option<(Place, u32, u32)>,
    /// The position of the bits in a byte, `2ᵗᵒ · q`. If it is not 0, flipping the highest bit
    /// makes a weight signed: `2ᵗᵒ · (q − 2⁷⁻ᵗᵒ)`.
    to: u32,
}

impl QuantFormat {
    /// Returns the number of scales of a run.
    pub(super) fn parts(self) -> usize {
        if self == QuantFormat::Q6K { 2 } else { 1 }
    }

    /// Runs in an order in which words are used again soon.
    pub(super) fn order(self) -> [u32; 8] {
        match self {
            QuantFormat::Q6K => [0, 2, 1, 3, 4, 6, 5, 7],
            _ => [0, 1, 2, 3, 4, 5, 6, 7],
        }
    }

    /// Half `half` of run `run`, of weights of fewer than eight bits; the layouts are those of
    /// `formats`.
    fn half(self, run: u32, half: u32) -> Half {
        let (pair, upper) = (run / 2, run % 2 == 1);
        match self {
            QuantFormat::Q4K => Half {
                low: [16 + 32 * pair, half],
                upper,
                rest: None,
                to: 0,
            },
            QuantFormat::Q5K => Half {
                low: [48 + 32 * pair, half],
                upper,
                rest: Some(([16, half], run, 1)),
                to: 0,
            },
            QuantFormat::Q6K => {
                let (of_two, of_four) = (run / 4, run % 4);
                Half {
                    low: [64 * of_two + 32 * (of_four % 2), half],
                    upper: of_four >= 2,
                    rest: Some(([128 + 32 * of_two, half], 2 * of_four, 2)),
                    to: 2,
                }
            }
            QuantFormat::Q4_0 | QuantFormat::Q8_0 => Half {
                low: [18 * run + 2, 0],
                upper: half == 1,
                rest: None,
                to: 4,
            },
        }
    }
}

/// Words of a row that have been loaded: where they lie, and whether [`UPPER_OF_TWO`] are turned.
#[derive(Clone, Default)]
pub(super) struct Words {
    loaded: Vec<((Place, bool), Reg)>,
}

/// The uppermost bits of weights of which a word has two bits each: turned round in it once, they make
/// all weights that share the word signed.
const UPPER_OF_TWO: u32 = 0xaaaa_aaaa;

impl Words {
    /// Puts other words in the place of these: those of another span, loaded in the same order.
    pub(super) fn assign(&self, k: &mut Builder, others: &Words) {
        for ((_, to), (_, from)) in self.loaded.iter().zip(&others.loaded) {
            k.assign(*to, *from);
        }
    }

    fn get(&mut self, k: &mut Builder, row: &impl Bytes, place: Place, turned: bool) -> Reg {
        let key = (place, turned);
        if let Some((_, word)) = self.loaded.iter().find(|(known, _)| *known == key) {
            return *word;
        }
        if turned {
            let word = self.get(k, row, place, false);
            let word = k.xor(word, UPPER_OF_TWO);
            self.loaded.push((key, word));
            return word;
        }
        let [at, _] = place;
        let words = row.own_words(k, place).into_iter();
        let words = words.map(|(half, word)| (([at, half], false), word));
        self.loaded.extend(words);
        self.get(k, row, place, false)
    }

    /// Loads the words that [`Words::weights`] needs.
    pub(super) fn load(
        &mut self,
        k: &mut Builder,
        row: &impl Bytes,
        format: QuantFormat,
        [run, half]: [u32; 2],
    ) {
        if format == QuantFormat::Q8_0 {
            let _ = self.get(k, row, [34 * run + 2, half], false);
            return;
        }
        let Half { low, rest, .. } = format.half(run, half);
        let _ = self.get(k, row, low, false);
        if let Some((place, ..)) = rest {
            let _ = self.get(k, row, place, false);
        }
    }

    /// This lane's four weights of half a run as bytes, signed or 128 more; those of `Q4_K` and `Q5_K`
    /// as they are.
    pub(super) fn weights(
        &mut self,
        k: &mut Builder,
        row: &impl Bytes,
        format: QuantFormat,
        [run, half]: [u32; 2],
        signed: bool,
    ) -> Reg {
        const SIGNS: u32 = 0x8080_8080;
        if format == QuantFormat::Q8_0 {
            let bytes = self.get(k, row, [34 * run + 2, half], false);
            return if signed { bytes } else { k.xor(bytes, SIGNS) };
        }
        let Half {
            low,
            upper,
            rest,
            to,
        } = format.half(run, half);
        let low = self.get(k, row, low, false);
        let bytes = bits(k, low, if upper { 4 } else { 0 }, to, 4);
        let turns = signed && to > 0;
        match rest {
            None if turns => k.xor(bytes, SIGNS),
            None => bytes,
            Some((place, from, count)) => {
                let word = self.get(k, row, place, turns);
                let rest = bits(k, word, from, to + 4, count);
                k.or(bytes, rest)
            }
        }
    }
}

/// Bits `from .. from + count` of each byte of a word, moved to `to`.
fn bits(k: &mut Builder, word: Reg, from: u32, to: u32, count: u32) -> Reg {
    let moved = match from.cmp(&to) {
        Ordering::Less => k.shl(word, to - from),
        Ordering::Equal => word,
        Ordering::Greater => k.op(Op::Shr, U32, B32, &[word.into(), (from - to).into()]),
    };
    k.and(moved, (((1 << count) - 1) << to) * 0x0101_0101u32)
}

/// The scale of a run's bytes, and the minimum that is subtracted, if any.
#[derive(Clone)]
pub(super) struct Scale {
    pub(super) scale: Reg,
    pub(super) minimum: Option<Reg>,
}

/// The constants for unpacking scales.
pub(super) struct Unpacking {
    /// The constants for formats with packed scales.
    packed: Option<Packed>,
    t: Reg,
    /// 2²³, whose lowest bits a byte takes the place of.
    upper: Reg,
}

/// `Q4_K` and `Q5_K`'s packed scales: those of the first four runs are bytes of their own, those of
/// the others are split.
struct Packed {
    plain: Reg,
    /// The low bits of the packed bytes that count, and the high ones.
    low: Reg,
    high: Reg,
    /// The selectors of the bytes of this lane's two runs, as the lowest bits of 2²³.
    select: [Reg; 2],
    upper: Reg,
}

impl Unpacking {
    pub(super) fn new(k: &mut Builder, format: QuantFormat, t: Reg) -> Self {
        let upper = k.value(B32, 0x4b00_0000);
        let packed = matches!(format, QuantFormat::Q4K | QuantFormat::Q5K);
        Unpacking {
            packed: packed.then(|| Packed::new(k, t, upper)),
            t,
            upper,
        }
    }
}

impl Packed {
    fn new(k: &mut Builder, t: Reg, upper: Reg) -> Self {
        let plain = k.lt(t, 2);
        let mut choose = |then: u32, otherwise: u32| {
            let otherwise = k.value(B32, otherwise);
            k.select(plain, then, otherwise)
        };
        let (low, high) = (choose(0x3f3f_3f3f, 0x0f0f_0f0f), choose(0, 0x3030_3030));
        let odd = k.and(t, 1);
        Packed {
            plain,
            low,
            high,
            select: [0x7440, 0x7441].map(|first| k.fma(odd, 2, first)),
            upper,
        }
    }

    /// Four numbers of six bits: those of `plain`, or the highest two of it and four of `split`.
    fn six_bits(&self, k: &mut Builder, plain: Reg, split: Reg) -> Reg {
        let packed = k.select(self.plain, plain, split);
        let low = k.and(packed, self.low);
        let high = k.op(Op::Shr, U32, B32, &[plain.into(), 2.into()]);
        let high = k.and(high, self.high);
        k.or(low, high)
    }

    /// Byte `i` of this lane's two in a word, times `d`. 2²³ + byte has the byte as its lowest bits;
    /// `minus` is `2²³ · d`, negated.
    fn times(&self, k: &mut Builder, word: Reg, i: usize, [d, minus]: [Reg; 2]) -> Reg {
        let bytes = [word.into(), self.upper.into(), self.select[i].into()];
        let number = k.op(Op::Prmt, B32, F32, &bytes);
        k.fma(number, d, minus)
    }

    /// `d · scale` and `dmin · min`; as `scale_and_min` of the formats, for two runs.
    fn with_minimum(&self, k: &mut Builder, row: &impl Bytes) -> [Vec<Scale>; 2] {
        let header = row.header(k);
        let halves = k.regs(F16, 2);
        k.emit(
            Op::Unpack,
            B32,
            &[halves.as_slice().into()],
            &[header[0].into()],
        );
        let [d, dmin] = [halves[0], halves[1]].map(|half| {
            let d = k.convert(Op::CvtF32F16, F32, &[half.into()]);
            [d, k.mul(d, -TWO_TO_23)]
        });
        let upper = k.op(Op::Shr, U32, B32, &[header[3].into(), 4.into()]);
        let scales = self.six_bits(k, header[1], header[3]);
        let minima = self.six_bits(k, header[2], upper);
        [0, 1].map(|i| {
            let scale = self.times(k, scales, i, d);
            let minimum = Some(self.times(k, minima, i, dmin));
            vec![Scale { scale, minimum }]
        })
    }
}

const TWO_TO_23: f32 = 8_388_608.0;

impl QuantFormat {
    /// The scales of runs `2t` and `2t + 1` of a row, by run and part. Of blocks shorter than a span
    /// not all may `exist`.
    pub(super) fn scales(
        self,
        k: &mut Builder,
        row: &impl Bytes,
        lane: &Unpacking,
        exist: [Reg; 2],
    ) -> [Vec<Scale>; 2] {
        match (&lane.packed, self) {
            (Some(packed), _) => packed.with_minimum(k, row),
            (None, QuantFormat::Q6K) => {
                let d = row.half(k, 208);
                let d = k.mul(d, 0.25f32);
                let (_, scales) = row.own_words(k, [192, 0])[0];
                // Signed bytes: 128 is added, and taken off again.
                let scales = k.xor(scales, 0x8080_8080u32);
                [0, 2].map(|first| {
                    let part = |i: u32| {
                        let bytes = [scales.into(), lane.upper.into(), (0x7440 | i).into()];
                        let number = k.op(Op::Prmt, B32, F32, &bytes);
                        let number = k.sub(number, TWO_TO_23 + 128.0);
                        let scale = k.mul(number, d);
                        Scale {
                            scale,
                            minimum: None,
                        }
                    };
                    [first, first + 1].map(part).into()
                })
            }
            (None, _) => {
                let (bytes, unit) = if self == QuantFormat::Q8_0 {
                    (34, 1.0)
                } else {
                    (18, 0.0625f32)
                };
                let d = row.of_runs(k, lane.t, bytes, exist);
                d.map(|d| {
                    let (scale, minimum) = (k.mul(d, unit), None);
                    vec![Scale { scale, minimum }]
                })
            }
        }
    }
}

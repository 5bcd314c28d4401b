//! The right factor: the digits of a row of `x` in shared memory.

use super::{
    DigitSplit, PART, RUNS, Sizes, Tokens, UNIT_BYTES, Warp, digits_bytes, parts_of_run, run_len,
    sums_bytes,
};
use crate::build::Builder;
use crate::inst::{Op, Operand, Reg};
use crate::kernels::common::{Combine, WARP, over_lanes};
use crate::kernels::integers::{RunScale, four_bytes};
use crate::kernels::steps::packed::{HIGH, Loaded, PackedFormat, Params};
use crate::types::PtxType::{B32, F32, S32, U32};

/// The digits of rows of `x` in shared memory.
pub(super) struct Digits {
    /// The sums of warps.
    pub(super) parts: Reg,
    start: Reg,
    /// The unit of each run's lowest digits, and the sum of its elements.
    units: Reg,
    /// The address of the first run's digits that this lane multiplies.
    own: Reg,
    /// Whether this lane has digits of the columns `2t`, or of either column.
    even: Reg,
    either: Reg,
    warps: u32,
    /// Bytes of a row's digits, and of its units.
    row_bytes: [u32; 2],
    /// The right factors, which stay zero in lanes without digits.
    upper: Vec<Reg>,
    lowest: Vec<Reg>,
}

impl Digits {
    pub(super) fn new(
        k: &mut Builder,
        format: PackedFormat,
        split: DigitSplit,
        warp: &Warp,
    ) -> Self {
        let sizes = Sizes::of(split);
        let runs = split.cols(k.target()) / run_len(format);
        let sums = 2 * sums_bytes(sizes);
        let row_bytes = [digits_bytes(format), UNIT_BYTES].map(|bytes| runs * bytes);
        let all = row_bytes.map(|bytes| bytes * sizes.tokens);
        let parts = k.dynamic_shared("parts", sums + all[0] + all[1]);
        let digits = k.offset(parts, sums);
        let units = k.offset(digits, all[0]);
        // Column 2t of the right factor belongs to lane 4 · 2t + t, and column 2t + 1 to the lane four further.
        let first = k.mul(warp.t, 9);
        let even = k.eq(warp.lane, first);
        let second = k.add(first, 4);
        let odd = k.eq(warp.lane, second);
        let own = k.offset(digits, run_len(format));
        Self {
            parts,
            start: digits,
            units,
            own: k.select(odd, own, digits),
            even,
            either: k.or(even, odd),
            warps: sizes.warps,
            row_bytes,
            upper: k.filled(B32, 4, 0),
            lowest: k.filled(B32, 4, 0),
        }
    }

    /// Makes the digits of all rows, and the sum of squares of each warp's elements of each.
    pub(super) fn make_all(
        &self,
        k: &mut Builder,
        params: &Params,
        warp: &Warp,
        tokens: &Tokens,
        normalises: Reg,
        squares: Reg,
    ) {
        let zero = k.value(U32, 0);
        if tokens.most == 1 {
            let row = Row {
                x: k.at_2d(params.x, tokens.first, params.k, zero, 4),
                digits: self.start,
                units: self.units,
                squares,
            };
            return self.make(k, params, warp, &row, normalises);
        }
        k.for_range(0, tokens.count, 1, |k, token| {
            let number = k.add(tokens.first, token);
            let row = Row {
                x: k.at_2d(params.x, number, params.k, zero, 4),
                digits: k.fma(token, self.row_bytes[0], self.start),
                units: k.fma(token, self.row_bytes[1], self.units),
                squares: k.fma(token, 4 * self.warps, squares),
            };
            self.make(k, params, warp, &row, normalises);
        });
    }

    /// Makes the digits of all runs of a row, and the sum of squares of each warp's elements.
    fn make(&self, k: &mut Builder, params: &Params, warp: &Warp, row: &Row, normalises: Reg) {
        let format = params.weights.format;
        let sum = k.value(F32, 0.0f32);
        let parts = k.mul(warp.chunks, RUNS * parts_of_run(format));
        // Whole warps, since lanes exchange values.
        let first = k.mul(warp.number, WARP);
        k.for_range(first, parts, self.warps * WARP, |k, first| {
            let part = k.add(first, warp.lane);
            let values = k.filled(F32, PART as usize, 0.0f32);
            let exists = k.lt(part, params.weights.units);
            k.when(exists, |k| {
                for_each_four(k, row.x, part, &values, |k, to, from| {
                    k.assign(to, from);
                    k.fma_assign(sum, to, to);
                });
            });
            let gains = k.and(normalises, exists);
            k.when(gains, |k| {
                for_each_four(k, params.gain, part, &values, |k, x, gain| {
                    k.mul_assign(x, gain);
                });
            });
            let stores = k.lt(part, parts);
            row.put(k, format, [part, stores], &values);
        });
        let sum = over_lanes(k, Combine::Sum, sum, WARP);
        let first = k.eq(warp.lane, 0);
        let own = k.fma(warp.number, 4, row.squares);
        k.guarded(first, true, |k| k.st_shared(F32, own, 0, sum));
    }

    /// Adds a chunk's products to the sums of two rows of weights for each row of `x`.
    pub(super) fn multiply(
        &self,
        k: &mut Builder,
        params: &Params,
        (warp, tokens): (&Warp, &Tokens),
        rows: &[Loaded; 2],
        chunk: Reg,
        sums: &[Reg],
    ) {
        let format = params.weights.format;
        let run = k.fma(chunk, RUNS, warp.t);
        let digits = k.fma(run, digits_bytes(format), self.own);
        // One row uses the left factor once, and needs no registers for all of it.
        let all = if tokens.most == 1 {
            0
        } else {
            2 * parts_of_run(format)
        };
        let left: Vec<_> = (0..all)
            .map(|eight| left_factor(k, format, rows, eight))
            .collect();
        let left = |k: &mut Builder, eight: u32| match left.get(eight as usize) {
            Some(left) => left.clone(),
            None => left_factor(k, format, rows, eight),
        };
        tokens.each(k, |k, token| {
            let places = self.row_bytes.map(|bytes| (token * bytes) as i32);
            let [upper, lowest] = self.products(k, format, &left, digits, places[0]);
            let units = k.fma(run, UNIT_BYTES, self.units);
            let of_run = k.ld_vector(Op::LdShared, F32, 2, units, places[1]);
            let sums = &sums[2 * token as usize..][..2];
            add(k, params, rows, [&upper, &lowest], &of_run, sums);
        });
    }

    /// The products of a chunk: those of both upper digits, and of the lowest one.
    fn products(
        &self,
        k: &mut Builder,
        format: PackedFormat,
        left: &impl Fn(&mut Builder, u32) -> Vec<Reg>,
        digits: Reg,
        place: i32,
    ) -> [Vec<Reg>; 2] {
        let [upper, lowest] = [0, 1].map(|_| k.filled(S32, 4, 0));
        for part in 0..parts_of_run(format) {
            for (lanes, to, digit) in [(self.either, &self.upper, 0), (self.even, &self.lowest, 2)]
            {
                let place = place + (digit * run_len(format) + part * PART) as i32;
                k.guarded(lanes, true, |k| {
                    let from = [Operand::At(digits, place)];
                    k.emit(Op::LdShared, B32, &[to.as_slice().into()], &from);
                });
            }
            for half in 0..2 {
                let left = left(k, 2 * part + half);
                for (sum, right) in [(&upper, &self.upper), (&lowest, &self.lowest)] {
                    let right = &right[2 * half as usize..][..2];
                    let from = [left.as_slice().into(), right.into(), sum.as_slice().into()];
                    k.emit(Op::MmaS8, B32, &[sum.as_slice().into()], &from);
                }
            }
        }
        [upper, lowest]
    }
}

/// Adds products to the sums of two rows of weights.
fn add(
    k: &mut Builder,
    params: &Params,
    rows: &[Loaded; 2],
    [upper, lowest]: [&[Reg]; 2],
    of_run: &[Reg],
    sums: &[Reg],
) {
    let [unit, whole] = [of_run[0], of_run[1]];
    // Nibbles begin with `least`.
    let least = match params.weights.format {
        PackedFormat::Nibbles => {
            let least = k.sub(params.weights.bias, HIGH);
            Some(k.mul(whole, least))
        }
        _ => None,
    };
    for (row, &sum) in sums.iter().enumerate() {
        let Some([scale, offset]) = rows[row].group else {
            continue;
        };
        let dot = k.fma(upper[2 * row], 256, upper[2 * row + 1]);
        let dot = k.convert(Op::CvtF32S32, F32, &[dot.into()]);
        let low = k.convert(Op::CvtF32S32, F32, &[lowest[2 * row].into()]);
        let dot = k.fma(dot, 256.0f32, low);
        let dot = match least {
            Some(least) => {
                let dot = k.mul(dot, unit);
                k.sub(dot, least)
            }
            None => k.mul(dot, unit),
        };
        k.fma_assign(sum, scale, dot);
        k.fma_assign(sum, offset, whole);
    }
}

/// A row of `x`, and the addresses of its digits, units and sums of squares.
struct Row {
    x: Reg,
    digits: Reg,
    units: Reg,
    squares: Reg,
}

impl Row {
    /// Stores the digits of a part, and the unit and the sum of its run.
    fn put(&self, k: &mut Builder, format: PackedFormat, [part, stores]: [Reg; 2], x: &[Reg]) {
        let parts = parts_of_run(format);
        let RunScale {
            factor,
            unit,
            total,
        } = RunScale::new(k, x, parts, 22);
        k.when(stores, |k| {
            let (run, in_run) = (k.shr(part, parts.trailing_zeros()), k.and(part, parts - 1));
            let to = k.fma(run, digits_bytes(format), self.digits);
            let to = k.fma(in_run, PART, to);
            // Half a part at a time, which needs less registers.
            for (half, x) in (0u32..).zip(x.chunks_exact(8)) {
                let whole = |&x: &Reg| {
                    let scaled = k.mul(x, factor);
                    k.convert(Op::CvtS32F32, S32, &[scaled.into()])
                };
                let whole: Vec<Reg> = x.iter().map(whole).collect();
                for (place, digit) in (0u32..).zip([2, 1, 0]) {
                    // Lower digits are signed: half of their range belongs to the next upper one.
                    let carry = [0, 0x80, 0x8080][digit as usize];
                    let words = order(format).map(|of| {
                        let carried = of.map(|i| match carry {
                            0 => whole[i],
                            carry => k.add(whole[i], carry),
                        });
                        four_bytes(k, carried, digit)
                    });
                    let place = (place * run_len(format) + half * PART / 2) as i32;
                    k.st_shared(B32, to, place, words.as_slice());
                }
            }
            let to = k.fma(run, UNIT_BYTES, self.units);
            let first = k.eq(in_run, 0);
            k.guarded(first, true, |k| {
                k.st_shared(F32, to, 0, [unit, total].as_slice());
            });
        });
    }
}

/// Calls a function with each of a part's registers and its element of a vector. Loads four elements at once, which needs
/// less registers than all.
fn for_each_four(
    k: &mut Builder,
    vector: Reg,
    part: Reg,
    registers: &[Reg],
    each: impl Fn(&mut Builder, Reg, Reg),
) {
    let at = k.at(vector, part, 4 * PART);
    for (four, registers) in (0..).zip(registers.chunks_exact(4)) {
        let elements = k.ld_vector(Op::LdGlobal, F32, 4, at, 16 * four);
        for (&register, element) in registers.iter().zip(elements) {
            each(k, register, element);
        }
    }
}

/// The columns of half a part in both words of its digits, as the left factor has them.
fn order(format: PackedFormat) -> [[usize; 4]; 2] {
    match format {
        PackedFormat::Nibbles => [[0, 2, 4, 6], [1, 3, 5, 7]],
        PackedFormat::Bytes | PackedFormat::Floats => [[0, 1, 2, 3], [4, 5, 6, 7]],
    }
}

/// The left factor of eight columns of each run.
fn left_factor(k: &mut Builder, format: PackedFormat, rows: &[Loaded; 2], eight: u32) -> Vec<Reg> {
    let [first, second] = rows.each_ref().map(|row| match format {
        PackedFormat::Nibbles => {
            let word = row.words[eight as usize];
            let low = k.and(word, 0x0f0f_0f0fu32);
            let high = k.shr(word, 4);
            [low, k.and(high, 0x0f0f_0f0fu32)]
        }
        PackedFormat::Bytes | PackedFormat::Floats => [
            row.words[2 * eight as usize],
            row.words[2 * eight as usize + 1],
        ],
    });
    vec![first[0], second[0], first[1], second[1]]
}

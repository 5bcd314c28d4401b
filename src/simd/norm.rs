//! Layer and RMS norm of rows.

use super::InstructionSet;
use super::elementwise::{Unary, map, unary};
use super::isa::{Isa, Kernel, constant, dispatch};
use super::reduce::{Products, Sum, Values, mean, sum_vectors};
use super::short_rows::{OfColumns, gain_side_by_side, short_rows};

/// Divides each row by √(mean square + `epsilon`) and multiplies it by `gain`, which has the length of a row. With a
/// bias, it subtracts the row's mean first and adds the bias last.
pub(super) fn norm(
    isa: InstructionSet,
    bias: Option<&[f32]>,
    epsilon: f32,
    [x, gain]: [&[f32]; 2],
    y: &mut [f32],
) {
    // No values are no rows, whatever their length.
    let cols = gain.len().max(1);
    let short = gain_side_by_side(x.len() / cols, cols);
    if short {
        let f = SideBySide {
            epsilon,
            gain,
            bias,
        };
        short_rows(isa, f, x, cols, y);
    }
    for (x, y) in x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
        if !short || y[0].is_nan() {
            norm_row(isa, bias, epsilon, [x, gain], y);
        }
    }
}

fn norm_row(
    isa: InstructionSet,
    bias: Option<&[f32]>,
    epsilon: f32,
    [x, gain]: [&[f32]; 2],
    y: &mut [f32],
) {
    let mean = if bias.is_some() { mean(isa, x) } else { 0.0 };
    map(isa, Deviation { mean }, x, y);
    let mut squares = dispatch(isa, Sum(Products(y, y)));
    // A value may be farther from the mean than numbers reach. Half of that is not, and `epsilon`
    // is lost beside its square.
    if squares.is_infinite() {
        let mean = mean * 0.5;
        map(isa, HalfDeviation { mean }, x, y);
        squares = dispatch(isa, Sum(Products(y, y)));
    }
    let factor = (1.0 / (squares / x.len() as f64 + f64::from(epsilon)).sqrt()) as f32;
    dispatch(
        isa,
        Affine {
            factor,
            gain,
            bias: bias.unwrap_or_default(),
            y,
        },
    );
}

unary! {
    Deviation { mean } |isa, x| isa.sub(x, mean);
    HalfDeviation { mean } |isa, x| isa.sub(isa.mul(x, constant!(isa, 0.5)), mean);
}

/// `y · factor · gain + bias` in place; no bias is one of zeros.
struct Affine<'a> {
    factor: f32,
    gain: &'a [f32],
    bias: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Affine<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let factor = isa.splat(self.factor);
        let whole = self.y.len() / I::LANES * I::LANES;
        let (y, tail) = self.y.split_at_mut(whole);
        let mut at = 0;
        for y in y.chunks_exact_mut(I::LANES) {
            let bias = if self.bias.is_empty() {
                isa.splat(0.0)
            } else {
                isa.load(&self.bias[at..])
            };
            let value = isa.mul(isa.load(y), factor);
            isa.store(isa.mul_add(value, isa.load(&self.gain[at..]), bias), y);
            at += I::LANES;
        }
        let value = isa.mul(isa.load_first(tail, 0.0), factor);
        let gain = isa.load_first(&self.gain[whole..], 0.0);
        let bias = isa.load_first(self.bias.get(whole..).unwrap_or_default(), 0.0);
        isa.store_first(isa.mul_add(value, gain, bias), tail);
    }
}

/// The norm of columns; NaN where a sum exceeds the numbers of `f32`.
#[derive(Clone, Copy)]
struct SideBySide<'a> {
    epsilon: f32,
    gain: &'a [f32],
    bias: Option<&'a [f32]>,
}

impl OfColumns for SideBySide<'_> {
    #[inline(always)]
    fn eval<I: Isa>(self, isa: I, x: &[f32], y: &mut [f32]) {
        let cols = isa.splat(self.gain.len() as f32);
        let mut mean = isa.splat(0.0);
        if self.bias.is_some() {
            mean = isa.div(sum_vectors(isa, Values(x)), cols);
        }
        for (x, y) in x.chunks_exact(I::LANES).zip(y.chunks_exact_mut(I::LANES)) {
            isa.store(isa.sub(isa.load(x), mean), y);
        }
        let squares = sum_vectors(isa, Products(y, y));
        let variance = isa.add(isa.div(squares, cols), isa.splat(self.epsilon));
        let factor = isa.div(isa.splat(1.0), isa.sqrt(variance));
        let finite = isa.lt(squares, isa.splat(f32::INFINITY));
        let factor = isa.select(finite, factor, isa.splat(f32::NAN));
        for (j, y) in y.chunks_exact_mut(I::LANES).enumerate() {
            let value = isa.mul(isa.load(y), factor);
            let bias = isa.splat(self.bias.map_or(0.0, |bias| bias[j]));
            isa.store(isa.mul_add(value, isa.splat(self.gain[j]), bias), y);
        }
    }
}

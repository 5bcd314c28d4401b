//! Layer and RMS norm of rows.

use super::InstructionSet;
use super::elementwise::{Unary, map, unary};
use super::isa::{Isa, Kernel, dispatch};
use super::reduce::{Products, Sum, mean};

/// Each row of as many values as `gain` has, divided by the root of its mean square and `epsilon`,
/// times `gain`; around the row's mean, and with the bias added, where there is one.
pub(super) fn norm(
    isa: InstructionSet,
    bias: Option<&[f32]>,
    epsilon: f32,
    [x, gain]: [&[f32]; 2],
    y: &mut [f32],
) {
    // No values are no rows, whatever their length.
    let cols = gain.len().max(1);
    for (x, y) in x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
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
        let factor = (1.0 / (squares / cols as f64 + f64::from(epsilon)).sqrt()) as f32;
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
}

unary! {
    Deviation { mean } |isa, x| isa.sub(x, mean);
    HalfDeviation { mean } |isa, x| isa.sub(isa.mul(x, isa.constant(&0.5)), mean);
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

//! Loads quantised weights into a lane's right fragments.

use super::{Block, DEPTH};
use crate::build::{ALL_LANES, Builder};
use crate::inst::{Op, Reg};
use crate::kernels::common::WARP;
use crate::kernels::fragments::rounded_pairs;
use crate::kernels::quantize::QuantFormat;
use crate::kernels::quantize::direct::Span;
use crate::kernels::quantize::spans::{RUN, Scale, Unpacking, Words};
use crate::types::PtxType::{B32, F32};

/// The part of a row's span that is loaded while the previous one is multiplied: the first tile's
/// words, and the scales of runs `2t` and `2t + 1`.
pub(super) struct Head {
    words: Words,
    scales: [Vec<Scale>; 2],
}

impl Head {
    /// Loads the head of a span; `exist` states whether its runs `2t` and `2t + 1` exist.
    pub(super) fn load(
        k: &mut Builder,
        span: &Span,
        format: QuantFormat,
        unpacking: &Unpacking,
        exist: [Reg; 2],
    ) -> Self {
        let mut words = Words::default();
        for step in 0..DEPTH / 16 {
            words.load(k, span, format, place(0, step));
        }
        let scales = format.scales(k, span, unpacking, exist);
        Head { words, scales }
    }

    /// Puts the next span's in the place of this one's.
    pub(super) fn assign(&self, k: &mut Builder, next: &Head) {
        self.words.assign(k, &next.words);
        for (scale, next) in self
            .scales
            .iter()
            .flatten()
            .zip(next.scales.iter().flatten())
        {
            k.assign(scale.scale, next.scale);
            if let (Some(minimum), Some(next)) = (scale.minimum, next.minimum) {
                k.assign(minimum, next);
            }
        }
    }
}

/// This lane's part of a row's span.
pub(super) struct Weights {
    span: Span,
    format: QuantFormat,
    words: Words,
    /// The scales of runs `2t` and `2t + 1`.
    scales: [Vec<Scale>; 2],
    /// The scales of the current run, by part.
    of_run: Vec<Scale>,
}

/// The run, and which half of it, that step `step` of tile `tile` multiplies.
fn place(tile: u32, step: u32) -> [u32; 2] {
    [tile * (DEPTH / RUN) + step / 2, step % 2]
}

impl Weights {
    pub(super) fn new(span: Span, format: QuantFormat, head: &Head) -> Self {
        Weights {
            span,
            format,
            words: head.words.clone(),
            scales: head.scales.clone(),
            of_run: Vec::new(),
        }
    }

    /// Loads the words of weights that a tile needs.
    pub(super) fn load(&mut self, k: &mut Builder, tile: u32) {
        for step in 0..DEPTH / 16 {
            self.words
                .load(k, &self.span, self.format, place(tile, step));
        }
    }

    /// Sixteen of `k` as a right fragment, rounded to the type of `x`.
    pub(super) fn fragment(
        &mut self,
        k: &mut Builder,
        block: &Block,
        tile: u32,
        step: u32,
    ) -> Vec<Reg> {
        let [run, half] = place(tile, step);
        if half == 0 {
            self.of_run = self.shared(k, block.lane, run);
        }
        let bytes = self
            .words
            .weights(k, &self.span, self.format, [run, half], false);
        let offset = match self.format {
            QuantFormat::Q4K | QuantFormat::Q5K => 0.0,
            _ => 128.0,
        };
        let scale = &self.of_run[half as usize % self.of_run.len()];
        let number = |i: u32| {
            // 2²³ + a byte has the byte as its lowest bits.
            let upper = k.value(B32, 0x4b00_0000);
            let select = [bytes.into(), upper.into(), (0x7440 | i).into()];
            let number = k.op(Op::Prmt, B32, F32, &select);
            let number = k.sub(number, 8_388_608.0 + offset);
            match scale.minimum {
                Some(minimum) => k.fma(number, scale.scale, minimum),
                None => k.mul(number, scale.scale),
            }
        };
        let numbers: Vec<Reg> = (0..4).map(number).collect();
        rounded_pairs(k, block.ty, &numbers)
    }

    /// A run's scales, and its minimum negated, from the lane that has them.
    fn shared(&self, k: &mut Builder, lane: Reg, run: u32) -> Vec<Scale> {
        let first = k.and(lane, WARP - 4);
        let from = k.offset(first, run / 2);
        let mut of = |value: Reg| {
            let operands = [value.into(), from.into(), 31.into(), ALL_LANES.into()];
            k.op(Op::ShflIdx, B32, F32, &operands)
        };
        let mut scales = Vec::new();
        for scale in &self.scales[run as usize % 2] {
            let minimum = scale.minimum.map(&mut of);
            scales.push((of(scale.scale), minimum));
        }
        let negated = |(scale, minimum): (Reg, Option<Reg>)| Scale {
            scale,
            minimum: minimum.map(|minimum| k.neg(minimum)),
        };
        scales.into_iter().map(negated).collect()
    }
}

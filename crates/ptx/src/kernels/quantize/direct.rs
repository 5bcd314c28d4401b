//! Spans of quantised weights in global memory. Each lane loads the weights that it multiplies.

use super::QuantFormat;
use super::spans::{RUN, SPAN};
use super::window::{Bytes, Place};
use crate::build::Builder;
use crate::inst::{Op, Operand, Reg};
use crate::types::PtxType::{self, B16, B32, F16, F32, U32};

/// A row's span.
pub(super) struct Span {
    format: QuantFormat,
    /// `4t` beyond where it begins, and `4t`.
    own: Reg,
    beyond: Reg,
    /// Whether each run exists; of blocks as long as a span all do or none.
    exist: Vec<Reg>,
}

impl Span {
    /// The span that begins at `own − beyond`; [`Span::runs`] returns its runs.
    pub(super) fn new(format: QuantFormat, [own, beyond]: [Reg; 2], exist: &[Reg]) -> Self {
        Span {
            format,
            own,
            beyond,
            exist: exist.to_vec(),
        }
    }

    fn begin(&self, k: &mut Builder) -> Reg {
        k.sub(self.own, self.beyond)
    }

    /// Computes which runs exist in a span whose first weight has index `first` of `cols`.
    pub(super) fn runs(k: &mut Builder, format: QuantFormat, first: Reg, cols: Reg) -> Vec<Reg> {
        let whole = format.block().0 == SPAN;
        let count = if whole { 1 } else { SPAN / RUN };
        let exists = |i| {
            let first = k.offset(first, i * RUN);
            k.lt(first, cols)
        };
        (0..count).map(exists).collect()
    }

    /// Returns whether the run of a byte exists.
    fn exists(&self, at: u32) -> Reg {
        match self.exist.as_slice() {
            [all] => *all,
            runs => runs[(at / self.format.block().1) as usize],
        }
    }

    /// A value at a constant place, zero if it does not exist.
    fn load(k: &mut Builder, ty: PtxType, exists: Reg, from: Reg, at: u32) -> Reg {
        let bits = ty.untyped();
        let value = k.value(bits, 0);
        let from = [Operand::At(from, at as i32)];
        k.guarded(exists, true, |k| {
            k.emit(Op::LdGlobal, bits, &[value.into()], &from);
        });
        value
    }

    fn half_at(k: &mut Builder, exists: Reg, from: Reg, at: u32) -> Reg {
        let bits = Self::load(k, F16, exists, from, at);
        k.convert(Op::CvtF32F16, F32, &[bits.into()])
    }
}

impl Bytes for Span {
    fn own_words(&self, k: &mut Builder, [at, half]: Place) -> Vec<(u32, Reg)> {
        let at = at + 16 * half;
        let exists = self.exists(at);
        let word = if self.format.block().1.is_multiple_of(16) {
            Self::load(k, U32, exists, self.own, at)
        } else {
            // Such blocks begin at even addresses.
            let halves = [at, at + 2].map(|at| Self::load(k, B16, exists, self.own, at));
            k.op(Op::Pack, B32, B32, &[halves.as_slice().into()])
        };
        vec![(half, word)]
    }

    fn header(&self, k: &mut Builder) -> Vec<Reg> {
        let words = k.filled(B32, 4, 0);
        let from = [Operand::At(self.begin(k), 0)];
        k.guarded(self.exist[0], true, |k| {
            k.emit(Op::LdGlobal, B32, &[words.as_slice().into()], &from);
        });
        words
    }

    fn half(&self, k: &mut Builder, at: u32) -> Reg {
        let begin = self.begin(k);
        Self::half_at(k, self.exist[0], begin, at)
    }

    fn of_runs(&self, k: &mut Builder, t: Reg, bytes: u32, exist: [Reg; 2]) -> [Reg; 2] {
        let begin = self.begin(k);
        let own = k.at(begin, t, 2 * bytes);
        [0, 1].map(|odd| Self::half_at(k, exist[odd as usize], own, odd * bytes))
    }
}

//! Access to the bytes of a span, in any memory, and its implementation for shared memory.

use super::formats::QuantFormat;
use super::spans::SPAN;
use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::types::PtxType::{B32, F16, F32};

/// The layout of a row's part of a span in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Window {
    /// The size of a span in bytes.
    pub(super) span: u32,
    /// Whether spans begin at multiples of 16 bytes.
    pub(super) exact: bool,
    /// The number of units of 16 bytes that hold a span wherever it begins: an odd number, so that eight rows lie in
    /// different banks.
    pub(super) units: u32,
}

impl Window {
    pub(super) fn of(format: QuantFormat) -> Self {
        let (values, block) = format.block();
        let (span, exact) = (block * SPAN / values, block.is_multiple_of(16));
        // Blocks of an even number of bytes begin at an even address: at most 14 too far.
        let bytes = if exact { span } else { span + 14 };
        Window {
            span,
            exact,
            units: bytes.div_ceil(16) | 1,
        }
    }

    /// Returns the distance in weights between the first weights of consecutive lanes in a run, and
    /// between a lane's first and second four. They are eight consecutive weights if one load can
    /// read them.
    pub(super) fn apart(self) -> [u32; 2] {
        if self.exact { [8, 4] } else { [4, 16] }
    }

    /// The first of the two rows of a tile that lane `4g + t` multiplies, eight of each other. Half
    /// a warp loads eight bytes a lane at once: every other row, which lie in different banks.
    pub(super) fn row(self, k: &mut Builder, g: Reg) -> Reg {
        if !self.exact {
            return g;
        }
        let (pair, odd) = (k.and(g, 3), k.shr(g, 2));
        k.fma(pair, 2, odd)
    }

    /// Bytes from a row to the next.
    pub(super) fn bytes(self) -> u32 {
        self.units * 16
    }
}

/// A position in a span: the even offset of 32 bytes, and the index of a half of them.
pub(super) type Place = [u32; 2];

/// Access to the bytes of a row's span.
pub(super) trait Bytes {
    /// This lane's four bytes of a half of 32, and those of the other half if they come with them; each
    /// with its half.
    fn own_words(&self, k: &mut Builder, place: Place) -> Vec<(u32, Reg)>;

    /// The first four words.
    fn header(&self, k: &mut Builder) -> Vec<Reg>;

    /// The f16 at an even number, as f32.
    fn half(&self, k: &mut Builder, at: u32) -> Reg;

    /// Returns the f16 numbers at the beginnings of runs `2t` and `2t + 1`, as f32. Each run is a block of `bytes`
    /// bytes. A run that does not exist gives zero.
    fn of_runs(&self, k: &mut Builder, t: Reg, bytes: u32, exist: [Reg; 2]) -> [Reg; 2];
}

/// A row's span in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// The address of the span.
    begin: Reg,
    /// The word that it begins in, and the same for this lane's `t`.
    word: Reg,
    own: Reg,
    /// The byte selectors of two words for offsets that are multiples of 4, and for those plus 2;
    /// `None` for spans that start at a word.
    select: Option<[Reg; 2]>,
    /// The offset of all of these in bytes.
    further: i32,
}

impl Row {
    /// The row whose window begins `at` here, if its bytes begin at `from`, counted from a multiple
    /// of 16.
    pub(super) fn new(k: &mut Builder, window: Window, [at, from, t]: [Reg; 3]) -> Self {
        let own = |k: &mut Builder, word| k.fma(t, window.apart()[0], word);
        if window.exact {
            return Row {
                begin: at,
                word: at,
                own: own(k, at),
                select: None,
                further: 0,
            };
        }
        let over = k.and(from, 15);
        let begin = k.add(at, over);
        let word = k.and(begin, !3);
        let odd = k.and(begin, 2);
        let odd = k.ne(odd, 0);
        let mut select = |even: u32, odd_by_2: u32| {
            let even = k.value(B32, even);
            k.select(odd, odd_by_2, even)
        };
        let select = Some([select(0x3210, 0x5432), select(0x5432, 0x7654)]);
        Row {
            begin,
            word,
            own: own(k, word),
            select,
            further: 0,
        }
    }

    /// Returns the span at a further offset.
    pub(super) fn at(&self, k: &mut Builder, further: Reg) -> Self {
        let begin = k.add(self.begin, further);
        let word = match self.select {
            None => begin,
            Some(_) => k.add(self.word, further),
        };
        let own = k.add(self.own, further);
        Row {
            begin,
            word,
            own,
            ..*self
        }
    }

    /// The row eight windows below. All blocks have an even number of bytes, so that eight rows are whole
    /// units: it begins as this one does.
    pub(super) fn eighth(self, window: Window) -> Self {
        let further = self.further + 8 * window.bytes() as i32;
        Row { further, ..self }
    }
}

impl Bytes for Row {
    fn own_words(&self, k: &mut Builder, [at, half]: Place) -> Vec<(u32, Reg)> {
        let Some(select) = self.select else {
            let words = k.ld_vector(Op::LdShared, B32, 2, self.own, at as i32 + self.further);
            return (0..).zip(words).collect();
        };
        let at = at + 16 * half;
        let first = (at & !3) as i32 + self.further;
        let words = [first, first + 4].map(|at| k.ld_shared(B32, self.own, at));
        let select = select[at as usize / 2 % 2];
        let from = [words[0].into(), words[1].into(), select.into()];
        vec![(half, k.op(Op::Prmt, B32, B32, &from))]
    }

    fn header(&self, k: &mut Builder) -> Vec<Reg> {
        k.ld_vector(Op::LdShared, B32, 4, self.word, self.further)
    }

    fn half(&self, k: &mut Builder, at: u32) -> Reg {
        self.half_at(k, self.begin, at)
    }

    fn of_runs(&self, k: &mut Builder, t: Reg, bytes: u32, exist: [Reg; 2]) -> [Reg; 2] {
        let own = k.fma(t, 2 * bytes, self.begin);
        [0, 1].map(|odd| {
            let half = self.half_at(k, own, odd * bytes);
            // What follows a row may be NaN.
            k.select(exist[odd as usize], half, 0.0f32)
        })
    }
}

impl Row {
    fn half_at(&self, k: &mut Builder, begin: Reg, at: u32) -> Reg {
        let bits = k.ld_shared(F16, begin, at as i32 + self.further);
        k.convert(Op::CvtF32F16, F32, &[bits.into()])
    }
}

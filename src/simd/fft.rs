//! Fourier transforms of rows whose lengths are powers of two.
//!
//! Panels hold [`WIDTH`] transforms side by side, with real and imaginary parts apart, so that all steps work on whole
//! vectors. A short row is one lane of a panel. A long row is a matrix (Bailey, 1990): its columns are transformed,
//! multiplied by roots and transposed, and transformed again. Transforms of columns are Stockham's, by steps of radix 4.

mod roots;

use super::InstructionSet;
use super::isa::{Isa, Kernel, dispatch};
use crate::alloc::scratch::Scratch;
use crate::error::Result;
use roots::{LongRoots, Roots, long_roots, roots};

/// The number of transforms in a panel: a multiple of the lanes of every instruction set.
const WIDTH: usize = 16;

/// The length from which a row is a matrix of at least [`WIDTH`] rows and columns.
const LONG: usize = WIDTH * WIDTH;

/// Transforms each row of `len` complex numbers.
///
/// # Errors
/// `OutOfMemory` if there is no memory for a panel, for a long row or for roots of unity.
pub(super) fn fft_rows(isa: InstructionSet, x: &[f32], len: usize, out: &mut [f32]) -> Result<()> {
    if len < LONG {
        return short_rows(isa, x, len, out);
    }
    let mut long = LongRow::new(isa, len)?;
    for (x, out) in x.chunks(2 * len).zip(out.chunks_mut(2 * len)) {
        long.transform(x, out);
    }
    Ok(())
}

/// Transforms rows as the lanes of panels.
fn short_rows(isa: InstructionSet, x: &[f32], len: usize, out: &mut [f32]) -> Result<()> {
    let mut panel = Panel::new(isa, len)?;
    let roots = roots(len)?;
    let size = 2 * len * WIDTH;
    for (x, out) in x.chunks(size).zip(out.chunks_mut(size)) {
        let [re, im] = &mut panel.from;
        for (lane, row) in x.chunks(2 * len).enumerate() {
            for (at, pair) in row.chunks_exact(2).enumerate() {
                re[at * WIDTH + lane] = pair[0];
                im[at * WIDTH + lane] = pair[1];
            }
        }
        panel.transform(roots, len);
        let [re, im] = &panel.from;
        for (lane, row) in out.chunks_mut(2 * len).enumerate() {
            for (at, pair) in row.chunks_exact_mut(2).enumerate() {
                pair[0] = re[at * WIDTH + lane];
                pair[1] = im[at * WIDTH + lane];
            }
        }
    }
    Ok(())
}

/// Transforms side by side: element `i` of transform `j` is at `i · WIDTH + j`.
struct Panel {
    isa: InstructionSet,
    from: [Scratch; 2],
    to: [Scratch; 2],
}

impl Panel {
    fn new(isa: InstructionSet, len: usize) -> Result<Self> {
        let part = || Scratch::new(len * WIDTH);
        Ok(Self {
            isa,
            from: [part()?, part()?],
            to: [part()?, part()?],
        })
    }

    /// Transforms the panel's columns of `len` elements.
    fn transform(&mut self, roots: &Roots, len: usize) {
        let mut step = 1;
        while step < len {
            let [from_re, from_im] = &self.from;
            let [to_re, to_im] = &mut self.to;
            let pass = Pass {
                roots,
                from: [from_re, from_im],
                to: [to_re, to_im],
                len,
                step,
            };
            dispatch(self.isa, pass);
            std::mem::swap(&mut self.from, &mut self.to);
            step *= if len / step == 2 { 2 } else { 4 };
        }
    }
}

/// A step of Stockham's algorithm: `step` is the product of the radices of the steps before.
struct Pass<'a> {
    roots: &'a Roots,
    from: [&'a [f32]; 2],
    to: [&'a mut [f32]; 2],
    len: usize,
    step: usize,
}

impl Kernel for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let left = self.len / self.step;
        if left == 2 {
            self.halves(isa);
            return;
        }
        for p in 0..left / 4 {
            self.quarters(isa, p);
        }
    }
}

/// A vector of complex numbers.
type Pair<I> = [<I as Isa>::F32; 2];

impl Pass<'_> {
    /// Combines the halves of all columns.
    #[inline(always)]
    fn halves<I: Isa>(self, isa: I) {
        let half = self.step * WIDTH;
        let [to_re, to_im] = self.to;
        for (from, to) in self.from.into_iter().zip([to_re, to_im]) {
            let (first, second) = from.split_at(half);
            let (sums, differences) = to.split_at_mut(half);
            for at in (0..half).step_by(I::LANES) {
                let [a, b] = [isa.load(&first[at..]), isa.load(&second[at..])];
                isa.store(isa.add(a, b), &mut sums[at..]);
                isa.store(isa.sub(a, b), &mut differences[at..]);
            }
        }
    }

    /// Combines the elements `p` of the quarters of what is left of each column.
    #[inline(always)]
    fn quarters<I: Isa>(&mut self, isa: I, p: usize) {
        let run = self.step * WIDTH;
        let quarter = self.len / 4 * WIDTH;
        let factors = [1, 2, 3].map(|k| self.roots.at(isa, k * p * self.step));
        for at in (0..run).step_by(I::LANES) {
            let load = |k: usize| {
                let from = p * run + k * quarter + at;
                [
                    isa.load(&self.from[0][from..]),
                    isa.load(&self.from[1][from..]),
                ]
            };
            let [a, b, c, d] = [load(0), load(1), load(2), load(3)];
            let (even, odd) = (add(isa, a, c), sub(isa, a, c));
            let (sum, [re, im]) = (add(isa, b, d), sub(isa, b, d));
            // Minus and plus i times the difference.
            let first = [isa.add(odd[0], im), isa.sub(odd[1], re)];
            let third = [isa.sub(odd[0], im), isa.add(odd[1], re)];
            let results = [
                add(isa, even, sum),
                times(isa, first, factors[0]),
                times(isa, sub(isa, even, sum), factors[1]),
                times(isa, third, factors[2]),
            ];
            for (k, [re, im]) in results.into_iter().enumerate() {
                let to = (4 * p + k) * run + at;
                isa.store(re, &mut self.to[0][to..]);
                isa.store(im, &mut self.to[1][to..]);
            }
        }
    }
}

#[inline(always)]
fn add<I: Isa>(isa: I, a: Pair<I>, b: Pair<I>) -> Pair<I> {
    [isa.add(a[0], b[0]), isa.add(a[1], b[1])]
}

#[inline(always)]
fn sub<I: Isa>(isa: I, a: Pair<I>, b: Pair<I>) -> Pair<I> {
    [isa.sub(a[0], b[0]), isa.sub(a[1], b[1])]
}

#[inline(always)]
fn times<I: Isa>(isa: I, a: Pair<I>, b: Pair<I>) -> Pair<I> {
    [
        isa.neg_mul_add(a[1], b[1], isa.mul(a[0], b[0])),
        isa.mul_add(a[0], b[1], isa.mul(a[1], b[0])),
    ]
}

impl Roots {
    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, index: usize) -> Pair<I> {
        [isa.splat(self.re[index]), isa.splat(self.im[index])]
    }
}

/// A row as a matrix of `rows × cols` elements.
struct LongRow {
    isa: InstructionSet,
    rows: usize,
    cols: usize,
    panel: Panel,
    /// The transformed columns, transposed.
    turned: [Scratch; 2],
    of_rows: &'static Roots,
    of_cols: &'static Roots,
    between: &'static LongRoots,
}

impl LongRow {
    fn new(isa: InstructionSet, len: usize) -> Result<Self> {
        let cols = 1 << (len.ilog2() / 2);
        let rows = len / cols;
        Ok(Self {
            isa,
            rows,
            cols,
            panel: Panel::new(isa, rows)?,
            turned: [Scratch::new(len)?, Scratch::new(len)?],
            of_rows: roots(rows)?,
            of_cols: roots(cols)?,
            between: long_roots(rows, cols)?,
        })
    }

    fn transform(&mut self, x: &[f32], out: &mut [f32]) {
        let (rows, cols) = (self.rows, self.cols);
        for first in (0..cols).step_by(WIDTH) {
            let [re, im] = &mut self.panel.from;
            for row in 0..rows {
                let from = &x[2 * (row * cols + first)..][..2 * WIDTH];
                let to = row * WIDTH..(row + 1) * WIDTH;
                apart(from, &mut re[to.clone()], &mut im[to]);
            }
            self.panel.transform(self.of_rows, rows);
            self.turn(first);
        }
        for first in (0..rows).step_by(WIDTH) {
            for (panel, turned) in self.panel.from.iter_mut().zip(&self.turned) {
                for (to, from) in panel.chunks_exact_mut(WIDTH).zip(turned.chunks_exact(rows)) {
                    to.copy_from_slice(&from[first..first + WIDTH]);
                }
            }
            self.panel.transform(self.of_cols, cols);
            let [re, im] = &self.panel.from;
            for col in 0..cols {
                let from = col * WIDTH..(col + 1) * WIDTH;
                let to = &mut out[2 * (col * rows + first)..][..2 * WIDTH];
                together(&re[from.clone()], &im[from], to);
            }
        }
    }

    /// Multiplies transformed columns by roots, and transposes them.
    fn turn(&mut self, first: usize) {
        let [re, im] = &mut self.panel.from;
        let [turned_re, turned_im] = &mut self.turned;
        let turn = Turn {
            roots: self.between,
            panel: [re, im],
            turned: [turned_re, turned_im],
            rows: self.rows,
            first,
        };
        dispatch(self.isa, turn);
    }
}

struct Turn<'a> {
    roots: &'a LongRoots,
    panel: [&'a mut [f32]; 2],
    turned: [&'a mut [f32]; 2],
    rows: usize,
    /// The first column of the panel.
    first: usize,
}

impl Kernel for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self {
            roots,
            panel: [re, im],
            turned: [turned_re, turned_im],
            rows,
            first,
        } = self;
        for row in 0..rows {
            let base = roots.firsts.at(isa, first / WIDTH * rows + row);
            for at in (row * WIDTH..(row + 1) * WIDTH).step_by(I::LANES) {
                let lanes = [
                    isa.load(&roots.lanes.re[at..]),
                    isa.load(&roots.lanes.im[at..]),
                ];
                let x = [isa.load(&re[at..]), isa.load(&im[at..])];
                let [x, y] = times(isa, x, times(isa, base, lanes));
                isa.store(x, &mut re[at..]);
                isa.store(y, &mut im[at..]);
            }
        }
        for (panel, turned) in [(re, turned_re), (im, turned_im)] {
            let turned = &mut turned[first * rows..][..WIDTH * rows];
            for row in (0..rows).step_by(4) {
                for col in (0..WIDTH).step_by(4) {
                    let from = &panel[row * WIDTH + col..][..3 * WIDTH + 4];
                    let to = &mut turned[col * rows + row..][..3 * rows + 4];
                    // SAFETY: four rows of four lie within both slices.
                    unsafe { isa.transpose4(from.as_ptr(), WIDTH, to.as_mut_ptr(), rows) };
                }
            }
        }
    }
}

fn apart(from: &[f32], re: &mut [f32], im: &mut [f32]) {
    for ((pair, re), im) in from.chunks_exact(2).zip(re).zip(im) {
        *re = pair[0];
        *im = pair[1];
    }
}

fn together(re: &[f32], im: &[f32], to: &mut [f32]) {
    for ((pair, re), im) in to.chunks_exact_mut(2).zip(re).zip(im) {
        pair[0] = *re;
        pair[1] = *im;
    }
}

//! Long rows, as matrices whose columns are transformed, multiplied by roots, transposed, and transformed again.

use super::pass::{load, store, times};
use super::roots::{LongRoots, Roots, long_roots, roots};
use super::{Panel, WIDTH};
use crate::alloc::scratch::{LINE, Scratch};
use crate::error::Result;
use crate::simd::InstructionSet;
use crate::simd::isa::{Isa, Kernel, dispatch};

/// A row as a matrix of `rows × cols` elements.
pub(super) struct LongRow {
    isa: InstructionSet,
    rows: usize,
    cols: usize,
    panel: Panel,
    /// The transformed columns, transposed: a row of real parts for each, then one of imaginary parts.
    turned: Scratch,
    /// The distance of these rows, which is no power of two: rows would compete for the same lines of a cache.
    stride: usize,
    of_rows: &'static Roots,
    of_cols: &'static Roots,
    between: &'static LongRoots,
}

impl LongRow {
    pub(super) fn new(isa: InstructionSet, len: usize) -> Result<Self> {
        let cols = 1 << (len.ilog2() / 2);
        let rows = len / cols;
        let stride = rows + LINE;
        Ok(Self {
            isa,
            rows,
            cols,
            panel: Panel::new(isa, rows)?,
            turned: Scratch::new(2 * cols * stride)?,
            stride,
            of_rows: roots(rows)?,
            of_cols: roots(cols)?,
            between: long_roots(rows, cols)?,
        })
    }

    pub(super) fn transform(&mut self, x: &[f32], out: &mut [f32]) {
        let (rows, cols) = (self.rows, self.cols);
        for first in (0..cols).step_by(WIDTH) {
            let panel = &mut self.panel.from[..2 * WIDTH * rows];
            let x = &x[2 * first..];
            dispatch(self.isa, Apart { x, cols, panel });
            self.panel.transform(self.of_rows, rows);
            let turn = Turn {
                roots: self.between,
                panel: &mut self.panel.from[..2 * WIDTH * rows],
                turned: &mut self.turned[2 * first * self.stride..][..2 * WIDTH * self.stride],
                stride: self.stride,
                first,
            };
            dispatch(self.isa, turn);
        }
        for first in (0..rows).step_by(WIDTH) {
            let columns = TurnedColumns {
                turned: &self.turned[first..],
                stride: self.stride,
                panel: &mut self.panel.from[..2 * WIDTH * cols],
            };
            dispatch(self.isa, columns);
            self.panel.transform(self.of_cols, cols);
            let panel = &self.panel.from[..2 * WIDTH * cols];
            let out = &mut out[2 * first..];
            dispatch(self.isa, Together { panel, out, rows });
        }
    }
}

/// Copies some columns of a matrix of complex numbers to a panel.
struct Apart<'a> {
    x: &'a [f32],
    cols: usize,
    panel: &'a mut [f32],
}

impl Kernel for Apart<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let rows = self.x.chunks(2 * self.cols);
        for (x, to) in rows.zip(self.panel.chunks_exact_mut(2 * WIDTH)) {
            // The next panel's elements, which processors do not expect.
            isa.prefetch(x.as_ptr().wrapping_add(2 * WIDTH));
            isa.prefetch(x.as_ptr().wrapping_add(3 * WIDTH));
            let (x, (re, im)) = (&x[..2 * WIDTH], to.split_at_mut(WIDTH));
            for at in 0..WIDTH {
                re[at] = x[2 * at];
                im[at] = x[2 * at + 1];
            }
        }
    }
}

/// Copies some columns of the transposed matrix to a panel.
struct TurnedColumns<'a> {
    turned: &'a [f32],
    stride: usize,
    panel: &'a mut [f32],
}

impl Kernel for TurnedColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let rows = self.turned.chunks(self.stride);
        for (from, to) in rows.zip(self.panel.chunks_exact_mut(WIDTH)) {
            isa.prefetch(from.as_ptr().wrapping_add(WIDTH));
            for at in (0..WIDTH).step_by(I::LANES) {
                isa.store(isa.load(&from[at..]), &mut to[at..]);
            }
        }
    }
}

/// Copies a panel to some columns of a matrix of complex numbers.
struct Together<'a> {
    panel: &'a [f32],
    out: &'a mut [f32],
    rows: usize,
}

impl Kernel for Together<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        let rows = self.out.chunks_mut(2 * self.rows);
        for (out, from) in rows.zip(self.panel.chunks_exact(2 * WIDTH)) {
            let (out, (re, im)) = (&mut out[..2 * WIDTH], from.split_at(WIDTH));
            for at in 0..WIDTH {
                out[2 * at] = re[at];
                out[2 * at + 1] = im[at];
            }
        }
    }
}

/// Multiplies transformed columns by roots, and transposes them.
struct Turn<'a> {
    roots: &'a LongRoots,
    panel: &'a mut [f32],
    turned: &'a mut [f32],
    stride: usize,
    /// The first column of the panel.
    first: usize,
}

impl Kernel for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self {
            roots,
            panel,
            turned,
            stride,
            first,
        } = self;
        let rows = panel.len() / (2 * WIDTH);
        for row in 0..rows {
            let base = roots.firsts.at(isa, first / WIDTH * rows + row);
            for lane in (0..WIDTH).step_by(I::LANES) {
                let lanes = row * WIDTH + lane;
                let lanes = [
                    isa.load(&roots.lanes.re[lanes..]),
                    isa.load(&roots.lanes.im[lanes..]),
                ];
                let at = 2 * row * WIDTH + lane;
                let product = times(isa, load(isa, panel, at), times(isa, base, lanes));
                store(isa, product, panel, at);
            }
        }
        for row in (0..rows).step_by(4) {
            for col in (0..WIDTH).step_by(4) {
                for part in 0..2 {
                    let from = &panel[(2 * row + part) * WIDTH + col..][..6 * WIDTH + 4];
                    let to = &mut turned[(2 * col + part) * stride + row..][..6 * stride + 4];
                    // SAFETY: four rows of four lie within both slices.
                    unsafe {
                        isa.transpose4(from.as_ptr(), 2 * WIDTH, to.as_mut_ptr(), 2 * stride);
                    }
                }
            }
        }
    }
}

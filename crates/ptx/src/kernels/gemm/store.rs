//! Stores rows of accumulators of tensor cores to `C`. Of four lanes, lane `t` has columns `8j + 2t` and
//! `8j + 2t + 1`.

use super::Product;
use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::kernels::fragments::{rounded_pairs, transpose_words};
use crate::types::PtxType::B32;

/// The position of a row's accumulators in `C`.
pub(super) struct Row {
    pub(super) number: Reg,
    /// The number of rows of `C` before this matmul's rows, if any.
    pub(super) before: Option<Reg>,
    /// The first column, of all four lanes.
    pub(super) col: Reg,
    pub(super) t: Reg,
}

impl Row {
    /// Stores accumulators by `j` without exchange. With several blocks on a multiprocessor, the
    /// stores are hidden.
    pub(super) fn store(&self, k: &mut Builder, p: &Product, sums: &[[Reg; 2]]) {
        let in_rows = k.lt(self.number, p.m);
        k.when(in_rows, |k| {
            let first = k.fma(self.t, 2, self.col);
            let c = self.address(k, p, first);
            for (j, sums) in (0..).zip(sums) {
                let col = k.offset(first, 8 * j);
                // n is a multiple of 8, or of 4 for f32: both columns are within or neither.
                let in_cols = k.lt(col, p.n);
                k.when(in_cols, |k| {
                    let offset = (8 * j * p.c_bytes) as i32;
                    p.finish.store(k, sums, c, offset, col);
                });
            }
        });
    }

    /// Stores groups of four `j`: lanes exchange 16-bit elements, so that each stores 16 bytes
    /// instead of 4.
    pub(super) fn store_wide(&self, k: &mut Builder, p: &Product, sums: &[[Reg; 2]]) {
        if p.c_bytes == 2 {
            self.store_exchanged(k, p, sums);
        } else {
            self.store(k, p, sums);
        }
    }

    fn store_exchanged(&self, k: &mut Builder, p: &Product, sums: &[[Reg; 2]]) {
        let in_rows = k.lt(self.number, p.m);
        let [pair, eight] = [2, 8].map(|cols| k.fma(self.t, cols, self.col));
        let [read, written] = [pair, eight].map(|col| self.address(k, p, col));
        let inside = |k: &mut Builder, col: Reg| {
            let in_cols = k.lt(col, p.n);
            k.and(in_rows, in_cols)
        };
        for (four, sums) in (0..).zip(sums.chunks_exact(4)) {
            let words = [0, 1, 2, 3].map(|j| {
                let from = 32 * four + 8 * j;
                let col = k.offset(pair, from);
                let inside = inside(k, col);
                let (offset, sums) = ((from * p.c_bytes) as i32, &sums[j as usize]);
                let values = p
                    .finish
                    .finished(k, sums, [read, col], offset, Some(inside));
                let rounded = rounded_pairs(k, p.finish.output, &values);
                k.op(Op::Mov, B32, B32, &[rounded[0].into()])
            });
            let words = transpose_words(k, self.t, words);
            let col = k.offset(eight, 32 * four);
            let inside = inside(k, col);
            k.when(inside, |k| {
                let offset = (32 * four * p.c_bytes) as i32;
                k.st_global(B32, written, offset, words.as_slice());
            });
        }
    }

    /// Computes the address of column `col` of this row.
    fn address(&self, k: &mut Builder, p: &Product, col: Reg) -> Reg {
        let row = self
            .before
            .map_or(self.number, |before| k.add(self.number, before));
        k.at_2d(p.c, row, p.pitch, col, p.c_bytes)
    }
}

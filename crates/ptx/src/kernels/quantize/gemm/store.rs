//! Stores of the accumulators of a quantised matmul.

use super::{Block, THREADS};
use crate::build::Builder;
use crate::inst::Reg;
use crate::kernels::gemm::narrow;
use crate::types::PtxType::F32;

impl Block {
    /// Lane `4g + t` holds columns `2t` and the next of rows `g` and `g + 8` of each fragment.
    pub(super) fn store(&self, k: &mut Builder, sums: &[Vec<Vec<Reg>>], y: Reg) {
        let row = k.add(self.first_row, self.warp_row);
        let row = k.add(row, self.g);
        let col = k.add(self.first_col, self.warp_col);
        let col = k.fma(self.t, 2, col);
        for (i, sums) in (0..).zip(sums) {
            for half in 0..2u32 {
                let row = k.offset(row, 16 * i + 8 * half);
                let in_rows = k.lt(row, self.m);
                k.when(in_rows, |k| {
                    let to = k.at_2d(y, row, self.n, col, 2);
                    for (j, sums) in (0..).zip(sums) {
                        self.store_pair(k, &sums[2 * half as usize..][..2], to, 8 * j, col);
                    }
                });
            }
        }
    }

    /// Stores two values: with one instruction if rows begin at whole words.
    fn store_pair(&self, k: &mut Builder, sums: &[Reg], to: Reg, further: u32, col: Reg) {
        let col = k.offset(col, further);
        let next = k.add(col, 1);
        let both = k.lt(next, self.n);
        let odd = k.and(self.n, 1);
        let even = k.eq(odd, 0);
        let together = k.and(both, even);
        let values: Vec<Reg> = sums.iter().map(|&sum| narrow(k, self.ty, sum)).collect();
        let at = (2 * further) as i32;
        k.when_else(
            together,
            |k| k.st_global(self.ty, to, at, values.as_slice()),
            |k| {
                for (i, (&value, col)) in values.iter().zip([col, next]).enumerate() {
                    let inside = k.lt(col, self.n);
                    let at = at + 2 * i as i32;
                    k.guarded(inside, true, |k| k.st_global(self.ty, to, at, value));
                }
            },
        );
    }

    /// Adds up the sums of warps that shared `k`, through shared memory.
    pub(super) fn store_shared(&self, k: &mut Builder, sums: &[Vec<Vec<Reg>>], y: Reg) {
        let (rows, cols) = (self.shares.rows, self.shares.cols());
        k.barrier();
        let row = k.fma(self.share, rows, self.g);
        let col = k.fma(self.t, 2, self.warp_col);
        let to = k.fma(row, cols, col);
        let to = k.fma(to, 4, self.stages);
        for (i, sums) in (0..).zip(sums) {
            for (j, sums) in (0..).zip(sums) {
                for half in 0..2 {
                    let at = 4 * ((16 * i + 8 * half) * cols + 8 * j);
                    let pair = &sums[2 * half as usize..][..2];
                    k.st_shared(F32, to, at as i32, pair);
                }
            }
        }
        k.barrier();
        let from = k.fma(self.thread, 4, self.stages);
        for pass in 0..rows * cols / THREADS {
            let index = k.offset(self.thread, pass * THREADS);
            let (row, col) = (k.div(index, cols), k.rem(index, cols));
            let (row, col) = (k.add(self.first_row, row), k.add(self.first_col, col));
            let (in_rows, in_cols) = (k.lt(row, self.m), k.lt(col, self.n));
            let total = k.value(F32, 0.0f32);
            for share in 0..self.shares.warps[2] {
                let at = 4 * (share * rows * cols + pass * THREADS);
                let part = k.ld_shared(F32, from, at as i32);
                k.add_assign(total, part);
            }
            let value = narrow(k, self.ty, total);
            let inside = k.and(in_rows, in_cols);
            k.when(inside, |k| {
                let to = k.at_2d(y, row, self.n, col, 2);
                k.st_global(self.ty, to, 0, value);
            });
        }
    }
}

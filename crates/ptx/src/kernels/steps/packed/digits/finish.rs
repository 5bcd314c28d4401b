//! The end of a tile: the sums of all warps, and the columns of `y`.

use super::{ROWS, RUNS, Sizes, Tiles, Tokens, Warp, sums_bytes};
use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::kernels::common::{Combine, over_lanes};
use crate::kernels::gemm::activate;
use crate::kernels::steps::packed::Params;
use crate::types::PtxType::{F32, U32};

/// The sums of warps for the rows of a tile, in two arrays that tiles alternate between.
pub(super) struct Finish {
    /// The address of this lane's sum.
    to: Reg,
    /// The address of the sums that this thread adds up.
    from: Reg,
    /// The thread's row of `x` in the block and among all, and its column in a tile.
    pub(super) row: Reg,
    token: Reg,
    col: Reg,
    /// Whether the thread has a column of a row that exists.
    pub(super) has_col: Reg,
    first: Reg,
    /// The offset of the array for the current tile.
    turn: Reg,
    sizes: Sizes,
}

impl Finish {
    pub(super) fn new(
        k: &mut Builder,
        tiles: &Tiles,
        tokens: &Tokens,
        warp: &Warp,
        [thread, parts]: [Reg; 2],
        sizes: Sizes,
    ) -> Self {
        let place = k.fma(warp.g, sizes.warps, warp.number);
        // Of one row, threads with a column have its number.
        let (row, col, has_col) = if sizes.tokens == 1 {
            let has_col = k.lt(thread, tiles.cols_of_tile);
            (k.value(U32, 0), thread, has_col)
        } else {
            let row = k.shr(thread, tiles.cols_of_tile.trailing_zeros());
            let has_col = k.lt(row, tokens.count);
            (row, k.and(thread, tiles.cols_of_tile - 1), has_col)
        };
        let from = k.fma(row, ROWS, col);
        Self {
            sizes,
            to: k.fma(place, 4, parts),
            from: k.fma(from, 4 * sizes.warps, parts),
            row,
            token: if sizes.tokens == 1 {
                tokens.first
            } else {
                k.add(tokens.first, row)
            },
            col,
            has_col,
            first: k.eq(warp.t, 0),
            turn: k.value(U32, 0),
        }
    }

    /// Adds up the lanes of each row, then warps; a thread stores a column of a row of `y`.
    pub(super) fn tile(
        &self,
        k: &mut Builder,
        params: &Params,
        tiles: &Tiles,
        [tile, factor]: [Reg; 2],
        sums: &[Reg],
    ) {
        let to = k.add(self.to, self.turn);
        let half_bytes = 2 * ROWS * self.sizes.warps;
        for (half, &sum) in (0u32..).zip(sums) {
            let sum = over_lanes(k, Combine::Sum, sum, RUNS);
            k.guarded(self.first, true, |k| {
                k.st_shared(F32, to, (half * half_bytes) as i32, sum);
            });
        }
        k.barrier();
        let col = k.fma(tile, tiles.cols_of_tile, self.col);
        let exists = k.lt(col, tiles.cols[0]);
        let stores = k.and(self.has_col, exists);
        k.when(stores, |k| {
            let result = self.of_warps(k, 0);
            let result = k.mul(result, factor);
            let result = match tiles.gate {
                None => result,
                Some(activation) => {
                    let gate = activate(k, activation, result);
                    let value = self.of_warps(k, half_bytes);
                    let value = k.mul(value, factor);
                    k.mul(gate, value)
                }
            };
            params.store_scaled(k, result, [self.token, col]);
        });
        let other = k.xor(self.turn, sums_bytes(self.sizes));
        k.assign(self.turn, other);
    }

    /// Adds up the sums of warps for a row.
    fn of_warps(&self, k: &mut Builder, further: u32) -> Reg {
        let from = k.add(self.from, self.turn);
        let sum = k.value(F32, 0.0f32);
        for four in 0..self.sizes.warps / 4 {
            let at = (further + 16 * four) as i32;
            for value in k.ld_vector(Op::LdShared, F32, 4, from, at) {
                k.add_assign(sum, value);
            }
        }
        sum
    }
}

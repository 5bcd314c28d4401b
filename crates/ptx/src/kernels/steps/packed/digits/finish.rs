//! The end of a tile: the sums of all warps, and the columns of `y`.

use super::{ROWS, RUNS, Tiles, Warp, sum_bytes};
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
    /// The address of the sums that this thread adds up, and its column in a tile.
    from: Reg,
    col: Reg,
    has_col: Reg,
    first: Reg,
    /// The offset of the array for the current tile.
    turn: Reg,
    warps: u32,
}

impl Finish {
    pub(super) fn new(
        k: &mut Builder,
        tiles: &Tiles,
        warp: &Warp,
        [thread, parts]: [Reg; 2],
        warps: u32,
    ) -> Self {
        let place = k.fma(warp.g, warps, warp.number);
        Self {
            warps,
            to: k.fma(place, 4, parts),
            from: k.fma(thread, 4 * warps, parts),
            col: thread,
            has_col: k.lt(thread, tiles.cols_of_tile),
            first: k.eq(warp.t, 0),
            turn: k.value(U32, 0),
        }
    }

    /// Adds up the lanes of each row, then warps; a thread stores a column.
    pub(super) fn tile(
        &self,
        k: &mut Builder,
        params: &Params,
        tiles: &Tiles,
        [tile, token, factor]: [Reg; 3],
        sums: &[Reg],
    ) {
        let to = k.add(self.to, self.turn);
        for (half, &sum) in sums.iter().enumerate() {
            let sum = over_lanes(k, Combine::Sum, sum, RUNS);
            let offset = (half as u32 * 2 * ROWS * self.warps) as i32;
            k.guarded(self.first, true, |k| k.st_shared(F32, to, offset, sum));
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
                    let value = self.of_warps(k, 2 * ROWS * self.warps);
                    let value = k.mul(value, factor);
                    k.mul(gate, value)
                }
            };
            params.store_scaled(k, result, [token, col]);
        });
        let other = k.xor(self.turn, sum_bytes(self.warps));
        k.assign(self.turn, other);
    }

    /// Adds up the sums of warps for a row.
    fn of_warps(&self, k: &mut Builder, further: u32) -> Reg {
        let from = k.add(self.from, self.turn);
        let sum = k.value(F32, 0.0f32);
        for four in 0..self.warps / 4 {
            let at = (further + 16 * four) as i32;
            for value in k.ld_vector(Op::LdShared, F32, 4, from, at) {
                k.add_assign(sum, value);
            }
        }
        sum
    }
}

//! Products of f32, which tensor cores read as tf32.
//!
//! Of 32-bit types `wgmma` reads rows along `k` only, and `B` lies along `n`. So the transposed
//! product is computed, `Cᵀ = Bᵀ · Aᵀ`: the left matrix, here `Bᵀ`, may come from registers,
//! which are loaded from shared memory in any order, and `A` lies as the right one has to. Each
//! group of four warps has 64 columns and all rows of the tile of `C`.
//!
//! While the tensor cores multiply one half of a stage, the next half is loaded. `B` is rounded to tf32 when it is
//! loaded; of `A` the tensor cores ignore the bits that tf32 does not have.

use super::super::{GemmKernel, Product};
use super::block::{Block, Inputs, Ring, Work};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Operand, Reg};
use crate::kernel::PtxKernel;
use crate::kernels::hopper::{Place, SWIZZLE, descriptor, wait};
use crate::types::PtxType::{B32, F32, U32};
use crate::types::Target;

/// The number of rows of the tile of `C`: the most columns of one `wgmma`. The tile has 64 columns for each group.
pub(in super::super) const ROWS: u32 = 256;
pub(in super::super) const COLS: u32 = 128;

pub(in super::super) fn build(gemm: &GemmKernel, target: Target) -> Result<PtxKernel> {
    let ring = Ring {
        ty: F32,
        rows: ROWS,
        cols: COLS,
        stages: 4,
        inputs: Inputs::Plain,
    };
    super::divided(gemm, target, ring, false, Block::consume_tf32)
}

/// Computes the addresses of a lane's four elements of `Bᵀ` in a stage: columns `g` and `g + 8` of
/// its warp and rows `t` and `t + 4` of `k`, in the order of `wgmma`'s left fragment.
fn values(k: &mut Builder, block: &Block, group: Reg) -> [Reg; 4] {
    let lane = k.and(block.thread, 31);
    let (g, t) = (k.shr(lane, 2), k.and(lane, 3));
    let warp = k.shr(block.thread, 5);
    let warp = k.and(warp, 3);
    let in_group = k.fma(warp, 16, g);
    let col = k.fma(group, 64, in_group);
    let across = block.ring.depth();
    let (boxes, in_box) = (k.div(col, across), k.rem(col, across));
    let base = k.fma(boxes, block.ring.box_bytes(), block.ring.a_bytes());
    let (unit, in_unit) = (k.shr(in_box, 2), k.and(in_box, 3));
    [(0, 0), (0, 8), (4, 0), (4, 8)].map(|(further_k, further_col)| {
        // Units of four values change places by the row's number in groups of eight.
        let row = k.offset(t, further_k);
        let unit = k.offset(unit, further_col / 4);
        let unit = k.xor(unit, row);
        let unit = k.fma(unit, 4, in_unit);
        let at = k.fma(row, across, unit);
        k.fma(at, 4, base)
    })
}

impl Block {
    fn consume_tf32(&self, k: &mut Builder, p: &Product, group: Reg) {
        let place = Place::first(k);
        let lane = k.and(self.thread, 31);
        let speaks = k.eq(lane, 0);
        let values = values(k, self, group);
        let sums = k.filled(F32, ROWS as usize / 2, 0.0f32);
        self.each(k, p, |k, work| {
            let before = k.value(U32, 0);
            k.for_range(0, work.steps, 1, |k, step| {
                wait(k, self.full, &place, place.parity);
                let later = k.gt(step, 0);
                self.half(k, &place, &values, 0, &sums, later);
                // The stage before is done when only this half is under way.
                k.act(Op::WgmmaWait, &[1.into()]);
                self.free(k, before, [later, speaks]);
                let always = k.ge(step, 0);
                self.half(k, &place, &values, 1, &sums, always);
                k.act(Op::WgmmaWait, &[1.into()]);
                k.assign(before, place.stage);
                place.advance(k, self.ring.stages);
            });
            self.drain(k, work.steps, before, speaks);
            self.store_tf32(k, p, group, &sums, &work);
        });
    }

    /// Loads the left fragments of half a stage, 16 of `k`, and starts their products.
    fn half(
        &self,
        k: &mut Builder,
        place: &Place,
        values: &[Reg; 4],
        half: u32,
        sums: &[Reg],
        adds: Reg,
    ) {
        let stage = k.fma(place.stage, self.ring.stage_bytes(), self.stages);
        let from = values.map(|value| k.add(value, stage));
        let fragments = [0, 1].map(|part| {
            // Eight rows of a box.
            let offset = (2 * half + part) * SWIZZLE;
            from.map(|from| {
                let value = k.ld_shared(F32, from, offset as i32);
                k.convert(Op::CvtTf32F32, B32, &[value.into()])
            })
        });
        let rows = descriptor(k, stage, 16, SWIZZLE);
        let always = k.ge(place.stage, 0);
        k.act(Op::WgmmaFence, &[]);
        for (part, fragment) in (0..).zip(&fragments) {
            // Eight values of k are 32 bytes of A's rows; addresses are in 16 bytes.
            let rows = k.add(rows, i64::from((2 * half + part) * 2));
            let adds = if part == 0 { adds } else { always };
            let from: [Operand; 5] = [
                fragment.as_slice().into(),
                rows.into(),
                adds.into(),
                1.into(),
                1.into(),
            ];
            k.emit(Op::WgmmaTf32Regs, B32, &[sums.into()], &from);
        }
        k.act(Op::WgmmaCommit, &[]);
    }

    /// Lane `4g + t` of warp `w` holds rows `8j + 2t` and the next of columns `16w + g` and
    /// `16w + g + 8`: eight lanes store 32 bytes of a row.
    fn store_tf32(&self, k: &mut Builder, p: &Product, group: Reg, sums: &[Reg], work: &Work) {
        let lane = k.and(self.thread, 31);
        let (g, t) = (k.shr(lane, 2), k.and(lane, 3));
        let warp = k.shr(self.thread, 5);
        let warp = k.and(warp, 3);
        let in_group = k.fma(warp, 16, g);
        let col = k.fma(group, 64, in_group);
        let col = k.add(col, work.col);
        let row = k.fma(t, 2, work.row);
        let cols = [0, 8].map(|further| k.offset(col, further));
        let in_cols = cols.map(|col| k.lt(col, p.n));
        let pitch = k.widen(p.n);
        let pitch = k.mul(pitch, 4);
        let eight = k.mul(pitch, 8);
        let pair = k.at_2d(p.c, row, p.n, col, 4);
        for (j, sums) in (0..).zip(sums.chunks_exact(4)) {
            for odd in 0..2 {
                let row = k.offset(row, 8 * j + odd);
                let c = if odd == 0 { pair } else { k.add(pair, pitch) };
                let in_rows = k.lt(row, p.m);
                for half in 0..2 {
                    let inside = k.and(in_rows, in_cols[half]);
                    k.when(inside, |k| {
                        let sum = sums[2 * half + odd as usize];
                        p.finish.store(k, &[sum], c, 32 * half as i32, cols[half]);
                    });
                }
            }
            // Eight rows further.
            k.add_assign(pair, eight);
        }
    }
}

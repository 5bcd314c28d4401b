//! Products on Hopper's tensor cores: four warps together multiply from shared memory
//! (`wgmma`), which the tensor memory accelerator fills.
//!
//! `block` has the code around them: one warp loads tiles, and one block for each multiprocessor takes tiles of `C` in
//! turn. Here two times four warps multiply those of 16-bit types, 64 × `cols` each; `tf32` does it with f32. Sources:
//! PTX ISA 9.0, sections on `wgmma` and `cp.async.bulk.tensor`; the division of labour is that of CUTLASS's cooperative
//! kernels.

mod block;
mod planes;
mod tf32;

use block::{Block, Inputs, Ring, Work};
pub use planes::PlanesMatmulKernel;
pub(super) use tf32::build as build_tf32;

use super::store::Row;
use super::{GemmKernel, Product};
use crate::build::Builder;
use crate::error::{Error, Result};
use crate::inst::{Op, Operand, Reg};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::along_x;
use crate::kernels::hopper::{GROUP, Place, SWIZZLE, descriptor, wait};
use crate::kernels::values;
use crate::types::PtxType::{self, BF16, F32, U32};
use crate::types::Target;

/// The number of rows of `C` per block: 64 for each group of four warps that multiply.
const ROWS: u32 = 128;

/// The division of a matmul into tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// The number of columns of a tile.
    pub(super) cols: u32,
    /// Whether `k` is split, too. Each part then writes a matrix of partial results.
    pub(super) split: bool,
}

pub(super) fn build(gemm: &GemmKernel, target: Target, shape: Shape) -> Result<PtxKernel> {
    let (Shape { cols, split }, [ty, _]) = (shape, gemm.types);
    values::check_half(ty)?;
    if !matches!(cols, 128 | 256) {
        return Err(Error::invalid("cols", cols.to_string(), "128 or 256"));
    }
    let ring = Ring::of_halves(ty, cols, Inputs::Plain);
    divided(gemm, target, ring, split, Block::consume)
}

/// Begins a persistent kernel; returns it and the tensor maps of `A` and `B`.
fn begun(name: String, target: Target, ring: Ring) -> (Builder, [Reg; 2]) {
    let launch = Launch::new(3 * GROUP, along_x(Extent::Multiprocessors(1))).overlapping(target);
    let mut k = Builder::new(name, target, launch);
    let [a, b] = ring.tensors();
    let maps = [k.tensor_map("a", a), k.tensor_map("b", b)];
    (k, maps)
}

/// Builds the kernel around `consume`, which multiplies the stages that have arrived. The last argument of `consume` is
/// the number of its group, 0 or 1.
fn divided(
    gemm: &GemmKernel,
    target: Target,
    ring: Ring,
    split: bool,
    consume: fn(&Block, &mut Builder, &Product, Reg),
) -> Result<PtxKernel> {
    let (mut k, [a, b]) = begun(gemm.name(), target, ring);
    let p = if split {
        Product::declare_sums(&mut k, a, b)
    } else {
        Product::declare_with(&mut k, gemm, a, b)
    };
    let splits = split.then(|| k.scalar("splits", U32));
    let block = Block::new(&mut k, &p, ring, [splits, None]);
    block.run(k, &p, consume)
}

impl Ring {
    /// A ring for 16-bit types. The number of columns is 128 or 256.
    fn of_halves(ty: PtxType, cols: u32, inputs: Inputs) -> Self {
        Self {
            ty,
            rows: ROWS,
            cols,
            stages: if cols == 256 { 4 } else { 6 },
            inputs,
        }
    }
}

impl Block {
    /// Divides the work among the groups of four warps, and ends the kernel.
    fn run(
        &self,
        mut k: Builder,
        p: &Product,
        consume: fn(&Block, &mut Builder, &Product, Reg),
    ) -> Result<PtxKernel> {
        self.start(&mut k);
        k.wait_for_grid();
        let group = k.shr(self.thread, 7);
        let produces = k.eq(group, 0);
        k.when_else(
            produces,
            |k| {
                k.act(Op::SetMaxRegDec, &[40.into()]);
                self.produce(k, p);
            },
            |k| {
                k.act(Op::SetMaxRegInc, &[232.into()]);
                let group = k.sub(group, 1);
                consume(self, k, p, group);
            },
        );
        k.finish()
    }

    /// Multiplies the tiles of every step. Each stage is released one step later, when its products are done.
    fn consume(&self, k: &mut Builder, p: &Product, group: Reg) {
        let place = Place::first(k);
        let lane = k.and(self.thread, 31);
        let speaks = k.eq(lane, 0);
        // The first products overwrite these; without any they are the result.
        let sums = k.filled(F32, self.ring.cols as usize / 2, 0.0f32);
        self.each(k, p, |k, work| {
            if self.parts.is_some() {
                // A part without steps has the sums of the tile before.
                for &sum in &sums {
                    k.assign(sum, 0.0f32);
                }
            }
            let before = k.value(U32, 0);
            k.for_range(0, work.steps, 1, |k, step| {
                wait(k, self.full, &place, place.parity);
                self.multiply(k, &place, group, &sums, step);
                // The products before these are done when only these are under way.
                k.act(Op::WgmmaWait, &[1.into()]);
                let later = k.gt(step, 0);
                self.free(k, before, [later, speaks]);
                k.assign(before, place.stage);
                place.advance(k, self.ring.stages);
            });
            self.drain(k, work.steps, before, speaks);
            self.store(k, p, group, &sums, &work);
        });
    }

    /// Starts the products of one stage.
    fn multiply(&self, k: &mut Builder, place: &Place, group: Reg, sums: &[Reg], step: Reg) {
        let stage = k.fma(place.stage, self.ring.stage_bytes(), self.stages);
        let a = k.fma(group, 64 * 128, stage);
        let b = k.add(stage, self.ring.a_bytes());
        // Rows of A follow each other in groups of eight; so do those of B along k, and boxes
        // of B's columns are a box apart. Rows of a transposed B lie as those of A.
        let a = descriptor(k, a, 16, SWIZZLE);
        let plain = self.ring.inputs == Inputs::Plain;
        let leading = if plain { self.ring.box_bytes() } else { 16 };
        let b = descriptor(k, b, leading, SWIZZLE);
        let (later, always) = (k.gt(step, 0), k.ge(step, 0));
        let op = if self.ring.ty == BF16 {
            Op::WgmmaBf16
        } else {
            Op::WgmmaF16
        };
        k.act(Op::WgmmaFence, &[]);
        for part in 0..self.ring.depth() / 16 {
            // 16 values of k are 32 bytes of A's rows, and 16 rows of B or 32 bytes of its rows; addresses are in 16 bytes.
            let a = k.add(a, i64::from(part * 2));
            let b = k.add(b, i64::from(part * if plain { 16 * 128 / 16 } else { 2 }));
            let adds = if part == 0 { later } else { always };
            let scale = [1, 1, 0, i32::from(plain)].map(Operand::from);
            let from = [[a.into(), b.into(), adds.into()].as_slice(), &scale].concat();
            k.emit(op, PtxType::B32, &[sums.into()], &from);
        }
        k.act(Op::WgmmaCommit, &[]);
    }

    /// Lane `4g + t` of warp `w` holds its columns of rows `16w + g` and `16w + g + 8`.
    fn store(&self, k: &mut Builder, p: &Product, group: Reg, sums: &[Reg], work: &Work) {
        let lane = k.and(self.thread, 31);
        let warp = k.shr(self.thread, 5);
        let warp = k.and(warp, 3);
        let in_group = k.shr(lane, 2);
        let in_warp = k.fma(warp, 16, in_group);
        let row = k.fma(group, 64, work.row);
        let row = k.add(row, in_warp);
        let t = k.and(lane, 3);
        for half in 0..2 {
            let of_half = |sums: &[Reg]| [sums[2 * half], sums[2 * half + 1]];
            let sums: Vec<[Reg; 2]> = sums.chunks_exact(4).map(of_half).collect();
            let row = Row {
                number: k.offset(row, 8 * half as u32),
                before: work.rows_before,
                col: work.col,
                t,
            };
            row.store_wide(k, p, &sums);
        }
    }
}

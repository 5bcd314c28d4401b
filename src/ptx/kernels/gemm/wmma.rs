//! Products on the tensor cores of any GPU since Volta, through WMMA: f16 inputs, f32 sums.
//!
//! Two warps by two share a tile of 64 × 64, each with 2 × 2 fragments of 16 × 16. Sizes are
//! free: what lies beyond the matrices is zero in shared memory.

use super::{GemmKernel, Product};
use crate::ptx::build::Builder;
use crate::ptx::error::Result;
use crate::ptx::inst::{Op, Operand, Reg, Special};
use crate::ptx::kernel::{Extent, Launch, PtxKernel};
use crate::ptx::kernels::Kernel;
use crate::ptx::types::PtxType::{self, B32, F16, F32};
use crate::ptx::types::Target;

/// Rows and columns of a block's tile.
const SIDE: u32 = 64;
/// How much of `k` lies in shared memory at once.
const DEPTH: u32 = 32;
const THREADS: u32 = 128;
/// Values from row to row in shared memory: a multiple of 8, as WMMA asks, with a gap that
/// spreads rows over the banks.
const A_STRIDE: u32 = DEPTH + 8;
const B_STRIDE: u32 = SIDE + 8;
const C_STRIDE: u32 = SIDE + 8;

pub(super) fn build(gemm: &GemmKernel, target: Target) -> Result<PtxKernel> {
    let grid = [
        Extent::Tiles("n", SIDE),
        Extent::Tiles("m", SIDE),
        Extent::Fixed(1),
    ];
    let mut k = Builder::new(gemm.name(), target, Launch::new(THREADS, grid));
    let p = Product::declare(&mut k, gemm);
    let block = Block::new(&mut k);
    let sums = block.multiply(&mut k, &p);
    block.store(&mut k, &p, &sums);
    k.finish()
}

struct Block {
    thread: Reg,
    /// The warp's row and column of warps.
    warp_row: Reg,
    warp_col: Reg,
    first_row: Reg,
    first_col: Reg,
    a_tile: Reg,
    b_tile: Reg,
    c_tile: Reg,
}

impl Block {
    fn new(k: &mut Builder) -> Self {
        let thread = k.special(Special::TidX);
        let (x, y) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
        let warp = k.shr(thread, 5);
        Block {
            thread,
            warp_row: k.shr(warp, 1),
            warp_col: k.and(warp, 1),
            first_row: k.mul(y, SIDE),
            first_col: k.mul(x, SIDE),
            a_tile: k.shared("a_tile", F16, SIDE * A_STRIDE),
            b_tile: k.shared("b_tile", F16, DEPTH * B_STRIDE),
            c_tile: k.shared("c_tile", F32, SIDE * C_STRIDE),
        }
    }

    /// Fragments of a warp: 2 × 2, each 8 sums a lane.
    fn multiply(&self, k: &mut Builder, p: &Product) -> Vec<Vec<Reg>> {
        let sums: Vec<Vec<Reg>> = (0..4).map(|_| k.filled(F32, 8, 0.0f32)).collect();
        let row = k.mul(self.warp_row, 32 * A_STRIDE * 2);
        let a_from = k.add(row, self.a_tile);
        let b_from = k.fma(self.warp_col, 32 * 2, self.b_tile);
        k.for_range(0, p.k, DEPTH, |k, depth| {
            let a = Share {
                tile: self.a_tile,
                stride: A_STRIDE,
                rows: SIDE,
                cols: DEPTH,
                origin: [self.first_row, depth],
                shape: [p.m, p.k],
                from: p.a,
            };
            let b = Share {
                tile: self.b_tile,
                stride: B_STRIDE,
                rows: DEPTH,
                cols: SIDE,
                origin: [depth, self.first_col],
                shape: [p.k, p.n],
                from: p.b,
            };
            a.copy(k, self.thread);
            b.copy(k, self.thread);
            k.barrier();
            for step in 0..DEPTH / 16 {
                let a: Vec<_> = (0..2)
                    .map(|i| {
                        let at = (i * 16 * A_STRIDE + step * 16) * 2;
                        fragment(k, Op::WmmaLoadA, a_from, at, A_STRIDE)
                    })
                    .collect();
                for j in 0..2 {
                    let at = (step * 16 * B_STRIDE + j * 16) * 2;
                    let b = fragment(k, Op::WmmaLoadB, b_from, at, B_STRIDE);
                    for (i, a) in a.iter().enumerate() {
                        let sums: Operand = sums[i * 2 + j as usize].as_slice().into();
                        let from = [a.as_slice().into(), b.as_slice().into(), sums.clone()];
                        k.emit(Op::WmmaMma, B32, &[sums], &from);
                    }
                }
            }
            k.barrier();
        });
        sums
    }

    /// Which lane holds which sum is not specified, so they go through shared memory.
    fn store(&self, k: &mut Builder, p: &Product, sums: &[Vec<Reg>]) {
        let row = k.mul(self.warp_row, 32 * C_STRIDE * 4);
        let to = k.fma(self.warp_col, 32 * 4, row);
        let to = k.add(to, self.c_tile);
        for (i, sums) in sums.iter().enumerate() {
            let (row, col) = (i as u32 / 2 * 16, i as u32 % 2 * 16);
            let at = Operand::At(to, ((row * C_STRIDE + col) * 4) as i32);
            let from = [at, sums.as_slice().into(), C_STRIDE.into()];
            k.emit(Op::WmmaStore, F32, &[], &from);
        }
        k.barrier();
        let in_col = k.and(self.thread, SIDE - 1);
        let in_row = k.shr(self.thread, 6);
        let col = k.add(in_col, self.first_col);
        let from = k.fma(in_row, C_STRIDE, in_col);
        let from = k.fma(from, 4, self.c_tile);
        let in_cols = k.lt(col, p.n);
        k.when(in_cols, |k| {
            k.for_range(in_row, SIDE, THREADS / SIDE, |k, i| {
                let row = k.add(i, self.first_row);
                let in_rows = k.lt(row, p.m);
                k.when(in_rows, |k| {
                    let sum = k.ld_shared(F32, from, 0);
                    let c = k.at_2d(p.c, row, p.n, col, p.c_bytes);
                    p.finish.store(k, &[sum], c, 0, col);
                });
                k.add_assign(from, THREADS / SIDE * C_STRIDE * 4);
            });
        });
    }
}

/// A tile of a matrix that a block copies to shared memory.
struct Share {
    tile: Reg,
    stride: u32,
    rows: u32,
    cols: u32,
    origin: [Reg; 2],
    shape: [Reg; 2],
    from: Reg,
}

impl Share {
    /// Consecutive threads copy consecutive columns; all loads come before the first store.
    fn copy(&self, k: &mut Builder, thread: Reg) {
        let per_pass = THREADS / self.cols;
        let in_col = k.and(thread, self.cols - 1);
        let in_row = k.shr(thread, self.cols.trailing_zeros());
        let col = k.add(in_col, self.origin[1]);
        let row = k.add(in_row, self.origin[0]);
        let in_cols = k.lt(col, self.shape[1]);
        let mut values = Vec::new();
        for pass in 0..self.rows / per_pass {
            let row = k.offset(row, pass * per_pass);
            let in_rows = k.lt(row, self.shape[0]);
            let inside = k.and(in_rows, in_cols);
            let at = k.at_2d(self.from, row, self.shape[1], col, 2);
            let value = k.value(PtxType::B16, 0);
            k.guarded(inside, true, |k| {
                k.emit(
                    Op::LdGlobalNc,
                    PtxType::B16,
                    &[value.into()],
                    &[Operand::At(at, 0)],
                );
            });
            values.push(value);
        }
        let to = k.fma(in_row, self.stride, in_col);
        let to = k.fma(to, 2, self.tile);
        for (pass, value) in values.into_iter().enumerate() {
            let offset = pass as u32 * per_pass * self.stride * 2;
            k.st_shared(PtxType::B16, to, offset as i32, value);
        }
    }
}

fn fragment(k: &mut Builder, op: Op, base: Reg, at: u32, stride: u32) -> Vec<Reg> {
    let to = k.regs(B32, 8);
    let from = [Operand::At(base, at as i32), stride.into()];
    k.emit(op, F16, &[to.as_slice().into()], &from);
    to
}

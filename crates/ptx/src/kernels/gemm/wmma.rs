//! Products on the tensor cores of any GPU since Volta, through WMMA: f16 inputs, f32 sums.
//!
//! Eight warps share a tile of 128 × 128, each 64 × 32 as 4 × 2 fragments of 16 × 16. While a
//! block multiplies one pair of tiles, its threads load the next into registers.

use super::{GemmKernel, Product};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Operand, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::WARP;
use crate::types::PtxType::{B16, B32, F16, F32, U32, U64};
use crate::types::Target;

/// The number of rows, and of columns, of a block's tile.
const SIDE: u32 = 128;
/// The extent of `k` in shared memory.
const DEPTH: u32 = 32;
const THREADS: u32 = 256;
/// The row stride in shared memory in elements: a multiple of 8, as WMMA requires, with padding
/// that avoids bank conflicts.
const A_STRIDE: u32 = DEPTH + 8;
const B_STRIDE: u32 = SIDE + 8;
/// The row stride in shared memory of a fragment of accumulators.
const C_STRIDE: u32 = 16 + 4;
/// The number of bytes of a buffer: its tile of `A`, then its tile of `B`.
const A_BYTES: u32 = SIDE * A_STRIDE * 2;
const BUFFER: u32 = A_BYTES + DEPTH * B_STRIDE * 2;

/// `width` values are loaded at once: 8 if `n` and `k` are multiples of that, or 1.
pub(super) fn build(gemm: &GemmKernel, target: Target, width: u32) -> Result<PtxKernel> {
    let grid = [
        Extent::Tiles("n", SIDE),
        Extent::Tiles("m", SIDE),
        gemm.products(),
    ];
    let mut launch = Launch::new(THREADS, grid);
    // Single values on their way take more registers.
    launch.min_blocks = if width == 8 { 2 } else { 1 };
    let mut k = Builder::new(gemm.name(), target, launch);
    let p = Product::declare(&mut k, gemm);
    let block = Block::new(&mut k, width);
    let sums = block.multiply(&mut k, &p);
    block.store(&mut k, &p, &sums);
    k.finish()
}

struct Block {
    width: u32,
    thread: Reg,
    lane: Reg,
    warp: Reg,
    first_row: Reg,
    first_col: Reg,
    /// The warp's first row and column in the tile.
    warp_row: Reg,
    warp_col: Reg,
    buffers: Reg,
    sums: Reg,
}

/// One thread's share in copying a tile.
struct Copy {
    width: u32,
    from: Vec<Reg>,
    /// Bytes from one tile to the next.
    step: Operand<'static>,
    /// The index in `k` of each load, or of all of them.
    depth: Vec<Reg>,
    /// The position of the first load in a buffer.
    to: Reg,
    apart: u32,
}

impl Block {
    fn new(k: &mut Builder, width: u32) -> Self {
        let thread = k.special(Special::TidX);
        let (x, y) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
        let warp = k.shr(thread, 5);
        let (row, col) = (k.shr(warp, 2), k.and(warp, 3));
        Block {
            width,
            thread,
            lane: k.and(thread, WARP - 1),
            warp,
            first_row: k.mul(y, SIDE),
            first_col: k.mul(x, SIDE),
            warp_row: k.mul(row, 64),
            warp_col: k.mul(col, 32),
            buffers: k.shared("buffers", U32, 2 * BUFFER / 4),
            sums: k.shared("sums", F32, THREADS / WARP * 16 * C_STRIDE),
        }
    }

    /// Returns the thread's row and column in a tile of `cols` columns, and the number of rows that all threads cover
    /// at once.
    fn share(&self, k: &mut Builder, cols: u32) -> (Reg, Reg, u32) {
        let across = cols / self.width;
        let row = k.shr(self.thread, across.trailing_zeros());
        let col = k.and(self.thread, across - 1);
        (row, k.mul(col, self.width), THREADS / across)
    }

    fn copy_a(&self, k: &mut Builder, p: &Product) -> Copy {
        let (row, col, per_pass) = self.share(k, DEPTH);
        let to = k.fma(row, A_STRIDE, col);
        let to = k.fma(to, 2, self.buffers);
        let row = k.add(row, self.first_row);
        let last = k.sub(p.m, 1);
        let from = |pass| {
            // Rows beyond the last repeat it; their sums are not stored.
            let row = k.offset(row, pass * per_pass);
            let row = k.min(row, last);
            k.at_2d(p.a, row, p.k, col, 2)
        };
        let from: Vec<Reg> = (0..SIDE / per_pass).map(from).collect();
        Copy {
            width: self.width,
            step: (DEPTH * 2).into(),
            depth: vec![k.value(U32, col)],
            from,
            to,
            apart: per_pass * A_STRIDE * 2,
        }
    }

    fn copy_b(&self, k: &mut Builder, p: &Product) -> Copy {
        let (row, col, per_pass) = self.share(k, SIDE);
        let to = k.fma(row, B_STRIDE, col);
        let to = k.fma(to, 2, self.buffers);
        let to = k.add(to, A_BYTES);
        let col = k.add(col, self.first_col);
        let last = k.sub(p.n, self.width);
        let col = k.min(col, last);
        let step = [p.n.into(), (DEPTH * 2).into()];
        let step = k.op(Op::MulWide, U32, U64, &step).into();
        let (mut from, mut depth) = (Vec::new(), Vec::new());
        for pass in 0..DEPTH / per_pass {
            let row = k.offset(row, pass * per_pass);
            from.push(k.at_2d(p.b, row, p.n, col, 2));
            depth.push(k.value(U32, row));
        }
        Copy {
            width: self.width,
            from,
            step,
            depth,
            to,
            apart: per_pass * B_STRIDE * 2,
        }
    }

    /// The warp's sums: 4 × 2 fragments of 8 registers.
    fn multiply(&self, k: &mut Builder, p: &Product) -> Vec<Vec<Reg>> {
        let (a, b) = (self.copy_a(k, p), self.copy_b(k, p));
        let sums: Vec<Vec<Reg>> = (0..8).map(|_| k.filled(F32, 8, 0.0f32)).collect();
        let row = k.mul(self.warp_row, A_STRIDE * 2);
        let a_from = k.add(row, self.buffers);
        let b_from = k.fma(self.warp_col, 2, self.buffers);
        let (x, y) = (a.load(k, p.k), b.load(k, p.k));
        let buffer = k.value(U32, 0);
        a.store(k, &x, buffer);
        b.store(k, &y, buffer);
        k.barrier();
        k.for_range(0, p.k, DEPTH, |k, _| {
            let (x, y) = (a.load(k, p.k), b.load(k, p.k));
            let (a_now, b_now) = (k.add(a_from, buffer), k.add(b_from, buffer));
            for step in 0..DEPTH / 16 {
                step_of(k, &sums, a_now, b_now, step);
            }
            // 0 and the buffer's size in turn.
            let other = k.sub(BUFFER, buffer);
            k.assign(buffer, other);
            a.store(k, &x, buffer);
            b.store(k, &y, buffer);
            k.barrier();
        });
        sums
    }

    /// Stores the accumulators. The layout of WMMA fragments is unspecified, so they go through
    /// shared memory, where each lane reads half a row.
    fn store(&self, k: &mut Builder, p: &Product, sums: &[Vec<Reg>]) {
        let own = k.fma(self.warp, 16 * C_STRIDE * 4, self.sums);
        let (in_row, half) = (k.shr(self.lane, 1), k.and(self.lane, 1));
        let start = k.mul(half, 8);
        let from = k.fma(in_row, C_STRIDE, start);
        let from = k.fma(from, 4, own);
        let row = k.add(self.first_row, self.warp_row);
        let row = k.add(row, in_row);
        let col = k.add(self.first_col, self.warp_col);
        let col = k.add(col, start);
        for (i, sums) in sums.iter().enumerate() {
            let at = Operand::At(own, 0);
            let operands = [at, sums.as_slice().into(), C_STRIDE.into()];
            k.emit(Op::WmmaStore, F32, &[], &operands);
            k.act(Op::BarWarpSync, &[u32::MAX.into()]);
            let row = k.offset(row, i as u32 / 2 * 16);
            let col = k.offset(col, i as u32 % 2 * 16);
            let in_rows = k.lt(row, p.m);
            k.when(in_rows, |k| match self.width {
                1 => store_each(k, p, [row, col], from),
                _ => store_half_row(k, p, [row, col], from),
            });
            k.act(Op::BarWarpSync, &[u32::MAX.into()]);
        }
    }
}

/// Stores eight values, four at a time: `n` is a multiple of 8.
fn store_half_row(k: &mut Builder, p: &Product, [row, col]: [Reg; 2], from: Reg) {
    let in_cols = k.lt(col, p.n);
    k.when(in_cols, |k| {
        let c = k.at_2d(p.c, row, p.n, col, p.c_bytes);
        for part in 0..2 {
            let values = k.ld_vector(Op::LdShared, F32, 4, from, 16 * part as i32);
            let col = k.offset(col, 4 * part);
            let offset = (4 * part * p.c_bytes) as i32;
            p.finish.store(k, &values, c, offset, col);
        }
    });
}

/// Stores as many of eight values as lie in the matrix, one by one.
fn store_each(k: &mut Builder, p: &Product, [row, col]: [Reg; 2], from: Reg) {
    let c = k.at_2d(p.c, row, p.n, col, p.c_bytes);
    let (from, beyond) = (k.value(U32, from), k.add(col, 8));
    let end = k.min(beyond, p.n);
    k.for_range(col, end, 1, |k, col| {
        let value = k.ld_shared(F32, from, 0);
        p.finish.store(k, &[value], c, 0, col);
        k.add_assign(from, 4);
        k.add_assign(c, i64::from(p.c_bytes));
    });
}

/// Multiplies 16 of `k`.
fn step_of(k: &mut Builder, sums: &[Vec<Reg>], a: Reg, b: Reg, step: u32) {
    let left: Vec<Vec<Reg>> = (0..4)
        .map(|i| {
            let at = (i * 16 * A_STRIDE + step * 16) * 2;
            fragment(k, Op::WmmaLoadA, a, at, A_STRIDE)
        })
        .collect();
    for j in 0..2 {
        let at = A_BYTES + (step * 16 * B_STRIDE + j * 16) * 2;
        let right = fragment(k, Op::WmmaLoadB, b, at, B_STRIDE);
        for (i, left) in left.iter().enumerate() {
            let sums: Operand = sums[i * 2 + j as usize].as_slice().into();
            let from = [left.as_slice().into(), right.as_slice().into(), sums];
            k.emit(Op::WmmaMma, B32, &[sums], &from);
        }
    }
}

fn fragment(k: &mut Builder, op: Op, base: Reg, at: u32, stride: u32) -> Vec<Reg> {
    let to = k.regs(B32, 8);
    let from = [Operand::At(base, at as i32), stride.into()];
    k.emit(op, F16, &[to.as_slice().into()], &from);
    to
}

impl Copy {
    /// Loads this thread's share, with zeros beyond `end` along `k`, and moves to the next tile.
    fn load(&self, k: &mut Builder, end: Reg) -> Vec<Vec<Reg>> {
        let mut loads = Vec::new();
        let inside: Vec<Reg> = self.depth.iter().map(|&depth| k.lt(depth, end)).collect();
        for (&from, &inside) in self.from.iter().zip(inside.iter().cycle()) {
            let (ty, count) = if self.width == 8 { (B32, 4) } else { (B16, 1) };
            let values = k.filled(ty, count, 0);
            let to = match values.as_slice() {
                [one] => (*one).into(),
                many => Operand::from(many),
            };
            k.guarded(inside, true, |k| {
                k.emit(Op::LdGlobalNc, ty, &[to], &[Operand::At(from, 0)]);
            });
            k.add_assign(from, self.step);
            loads.push(values);
        }
        for &depth in &self.depth {
            k.add_assign(depth, DEPTH);
        }
        loads
    }

    fn store(&self, k: &mut Builder, loads: &[Vec<Reg>], buffer: Reg) {
        let to = k.add(self.to, buffer);
        for (i, values) in loads.iter().enumerate() {
            let at = i as i32 * self.apart as i32;
            match values.as_slice() {
                [one] => k.st_shared(B16, to, at, *one),
                many => k.st_shared(B32, to, at, many),
            }
        }
    }
}

//! Products on the tensor cores of any GPU since Ampere: `mma.sync`, fed by `cp.async` and
//! `ldmatrix`.
//!
//! Eight warps share a tile of 128 × 128, each 64 × 32 as 4 × 4 fragments of 16 × 8. Tiles are copied 16 bytes at a
//! time through a ring of three stages. In shared memory their 16-byte units change places by row, so that the eight
//! rows an `ldmatrix` reads lie in different banks.
//!
//! Elements of f32 are rounded to tf32; a unit and a stage then have half the number of elements. `ldmatrix` moves them
//! as pairs of 16 bits, but transposes none: right fragments are loaded one by one.

use super::store::Row;
use super::{GemmKernel, Product};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Operand, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::fragments::{load_matrices, multiply};
use crate::kernels::values;
use crate::types::PtxType::{self, B32, F32, U32};
use crate::types::Target;

/// The number of rows, and of columns, of a block's tile.
const SIDE: u32 = 128;
/// The number of bytes along `k` that a stage holds.
const DEPTH_BYTES: u32 = 64;
const STAGES: u32 = 3;
const THREADS: u32 = 256;
/// Bytes of a stage's part of `A`, and of a whole stage.
const A_BYTES: u32 = SIDE * DEPTH_BYTES;
const STAGE: u32 = 2 * A_BYTES;
/// The number of units of 16 bytes of a row of A's tile: one copy, one row of a small matrix.
const A_UNITS: u32 = DEPTH_BYTES / 16;

pub(super) fn build(gemm: &GemmKernel, target: Target) -> Result<PtxKernel> {
    let [ty, _] = gemm.types;
    // Of f32 the tensor cores take tf32, of all others what they are.
    values::check(ty)?;
    let grid = [
        Extent::Tiles("n", SIDE),
        Extent::Tiles("m", SIDE),
        gemm.products(),
    ];
    let mut launch = Launch::new(THREADS, grid);
    launch.min_blocks = 2;
    let mut k = Builder::new(gemm.name(), target, launch);
    let p = Product::declare(&mut k, gemm);
    let block = Block::new(&mut k, ty);
    let sums = block.multiply(&mut k, &p);
    block.store(&mut k, &p, &sums);
    k.finish()
}

struct Block {
    ty: PtxType,
    thread: Reg,
    lane: Reg,
    first_row: Reg,
    first_col: Reg,
    /// The warp's first row and column in the tile.
    warp_row: Reg,
    warp_col: Reg,
    stages: Reg,
}

/// One thread's share of copying a tile: two units.
struct Copy {
    from: [Reg; 2],
    /// Bytes from one stage's tile to the next.
    step: Operand<'static>,
    /// The index in `k` of each unit, which decides whether it is copied.
    depth: [Reg; 2],
    /// Whether the units are inside the matrix along the other axis.
    exists: Reg,
    to: [Reg; 2],
}

/// Computes the swizzled position of unit `unit` of row `row` in a tile with rows of four units;
/// two rows take 128 bytes.
fn swizzled_a(k: &mut Builder, row: Reg, unit: Reg) -> Reg {
    let pair = k.shr(row, 1);
    let turn = k.and(pair, A_UNITS - 1);
    let unit = k.xor(unit, turn);
    let index = k.fma(row, A_UNITS, unit);
    k.mul(index, 16)
}

impl Block {
    /// Returns the number of elements in 16 bytes.
    fn unit(&self) -> u32 {
        16 / self.ty.bytes()
    }

    /// Returns the extent of `k` in a stage.
    fn depth(&self) -> u32 {
        DEPTH_BYTES / self.ty.bytes()
    }

    /// Computes the swizzled position of unit `unit` of row `row` in a tile of `B`. For tf32, lanes
    /// read pairs of units of four rows.
    fn swizzled_b(&self, k: &mut Builder, row: Reg, unit: Reg) -> Reg {
        let turn = if self.ty == F32 {
            let turn = k.and(row, 3);
            k.shl(turn, 1)
        } else {
            k.and(row, 7)
        };
        let unit = k.xor(unit, turn);
        let index = k.fma(row, SIDE / self.unit(), unit);
        k.mul(index, 16)
    }

    fn new(k: &mut Builder, ty: PtxType) -> Self {
        let thread = k.special(Special::TidX);
        let (x, y) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
        let warp = k.shr(thread, 5);
        let (row, col) = (k.shr(warp, 2), k.and(warp, 3));
        Block {
            ty,
            thread,
            lane: k.and(thread, 31),
            first_row: k.mul(y, SIDE),
            first_col: k.mul(x, SIDE),
            warp_row: k.mul(row, 64),
            warp_col: k.mul(col, 32),
            stages: k.shared("stages", U32, STAGES * STAGE / 4),
        }
    }

    fn copy_a(&self, k: &mut Builder, p: &Product) -> Copy {
        let (row, unit) = (k.shr(self.thread, 2), k.and(self.thread, A_UNITS - 1));
        let col = k.mul(unit, self.unit());
        let last = k.sub(p.m, 1);
        let rows = [0, 64].map(|further| k.offset(row, further));
        let from = rows.map(|row| {
            // Rows beyond the last repeat it; their sums are not stored.
            let row = k.add(row, self.first_row);
            let row = k.min(row, last);
            k.at_2d(p.a, row, p.k, col, self.ty.bytes())
        });
        let always = k.ge(row, 0);
        Copy {
            from,
            step: DEPTH_BYTES.into(),
            depth: [k.value(U32, col), k.value(U32, col)],
            exists: always,
            to: rows.map(|row| swizzled_a(k, row, unit)),
        }
    }

    fn copy_b(&self, k: &mut Builder, p: &Product) -> Copy {
        let across = SIDE / self.unit();
        let row = k.shr(self.thread, across.trailing_zeros());
        let unit = k.and(self.thread, across - 1);
        let col = k.fma(unit, self.unit(), self.first_col);
        let inside = k.lt(col, p.n);
        let rows = [0, THREADS / across].map(|further| k.offset(row, further));
        let from = rows.map(|row| k.at_2d(p.b, row, p.n, col, self.ty.bytes()));
        let step = [p.n.into(), DEPTH_BYTES.into()];
        let step = k.op(Op::MulWide, U32, PtxType::U64, &step);
        let to = rows.map(|row| {
            let at = self.swizzled_b(k, row, unit);
            k.add(at, A_BYTES)
        });
        Copy {
            from,
            step: step.into(),
            depth: rows.map(|row| k.value(U32, row)),
            exists: inside,
            to,
        }
    }

    /// The warp's sums: 4 × 4 fragments of 4 registers.
    fn multiply(&self, k: &mut Builder, p: &Product) -> Vec<Vec<Reg>> {
        let (a, b) = (self.copy_a(k, p), self.copy_b(k, p));
        let sums: Vec<Vec<Reg>> = (0..16).map(|_| k.filled(F32, 4, 0.0f32)).collect();
        let (filled, read) = (k.value(U32, 0), k.value(U32, 0));
        let fill = |k: &mut Builder| {
            let stage = k.add(self.stages, filled);
            a.start(k, p, stage, self.depth());
            b.start(k, p, stage, self.depth());
            k.act(Op::CpAsyncCommit, &[]);
            next_stage(k, filled);
        };
        for _ in 1..STAGES {
            fill(k);
        }
        let columns = (self.ty == F32).then(|| self.columns(k));
        k.for_range(0, p.k, self.depth(), |k, _| {
            // All but the last stage asked for have come, and all have read the one before.
            k.act(Op::CpAsyncWait, &[(STAGES - 2).into()]);
            k.barrier();
            fill(k);
            let stage = k.add(self.stages, read);
            for step in 0..DEPTH_BYTES / 32 {
                let a = self.left(k, stage, step);
                match &columns {
                    Some(columns) => self.step_tf32(k, &sums, &a, columns, stage, step),
                    None => self.step(k, &sums, &a, stage, step),
                }
            }
            next_stage(k, read);
        });
        k.act(Op::CpAsyncWait, &[0.into()]);
        sums
    }

    /// The warp's left fragments of 32 bytes of `k`.
    fn left(&self, k: &mut Builder, stage: Reg, step: u32) -> Vec<Vec<Reg>> {
        // Lane 8i + j names row j of matrix i: below each other, then side by side.
        let (low, high) = (k.and(self.lane, 15), k.shr(self.lane, 4));
        let unit = k.offset(high, step * 2);
        let row = k.add(self.warp_row, low);
        let fragment = |i| {
            let row = k.offset(row, 16 * i);
            let at = swizzled_a(k, row, unit);
            let at = k.add(at, stage);
            let values = load_matrices(k, Op::LdMatrix4, at, 0);
            match self.ty {
                F32 => values.into_iter().map(|x| rounded(k, x)).collect(),
                _ => values,
            }
        };
        (0..4u32).map(fragment).collect()
    }

    /// Multiplies 16 of `k`.
    fn step(&self, k: &mut Builder, sums: &[Vec<Reg>], a: &[Vec<Reg>], stage: Reg, step: u32) {
        let (low, high) = (k.and(self.lane, 15), k.shr(self.lane, 4));
        let row = k.offset(low, step * 16);
        let first = k.shr(self.warp_col, 3);
        let unit = k.add(first, high);
        for pair in 0..2 {
            let unit = k.offset(unit, 2 * pair);
            let at = self.swizzled_b(k, row, unit);
            let at = k.add(at, stage);
            let b = load_matrices(k, Op::LdMatrix4Trans, at, A_BYTES);
            for (i, a) in a.iter().enumerate() {
                for (half, b) in b.chunks_exact(2).enumerate() {
                    let sums = &sums[i * 4 + pair as usize * 2 + half];
                    multiply(k, self.ty, sums, a, b);
                }
            }
        }
    }

    /// Computes the address of this lane's first element of each of the warp's right tf32
    /// fragments: lane `4g + t` holds rows `t` and `t + 4` of column `g`.
    fn columns(&self, k: &mut Builder) -> [Reg; 4] {
        let (g, t) = (k.shr(self.lane, 2), k.and(self.lane, 3));
        let col = k.add(self.warp_col, g);
        let (unit, in_unit) = (k.shr(col, 2), k.and(col, 3));
        [0, 1, 2, 3].map(|j| {
            let unit = k.offset(unit, 2 * j);
            let at = self.swizzled_b(k, t, unit);
            let at = k.fma(in_unit, 4, at);
            k.add(at, A_BYTES)
        })
    }

    /// Multiplies 8 of `k`.
    fn step_tf32(
        &self,
        k: &mut Builder,
        sums: &[Vec<Reg>],
        a: &[Vec<Reg>],
        columns: &[Reg; 4],
        stage: Reg,
        step: u32,
    ) {
        for (j, &column) in columns.iter().enumerate() {
            let at = k.add(column, stage);
            // Rows that are four apart change places alike.
            let b = [0, 4].map(|row| {
                let offset = (step * 8 + row) * SIDE * 4;
                let value = k.ld_shared(B32, at, offset as i32);
                rounded(k, value)
            });
            for (i, a) in a.iter().enumerate() {
                multiply(k, self.ty, &sums[i * 4 + j], a, &b);
            }
        }
    }

    /// Lane `4g + t` holds its columns of rows `g` and `g + 8` of each fragment.
    fn store(&self, k: &mut Builder, p: &Product, sums: &[Vec<Reg>]) {
        let (g, t) = (k.shr(self.lane, 2), k.and(self.lane, 3));
        let row = k.add(self.first_row, self.warp_row);
        let row = k.add(row, g);
        let col = k.add(self.first_col, self.warp_col);
        for (i, sums) in (0..).zip(sums.chunks_exact(4)) {
            for half in 0..2 {
                let of_half = |sums: &Vec<Reg>| [sums[2 * half], sums[2 * half + 1]];
                let sums: Vec<[Reg; 2]> = sums.iter().map(of_half).collect();
                let row = Row {
                    number: k.offset(row, 16 * i + 8 * half as u32),
                    before: None,
                    col,
                    t,
                };
                row.store(k, p, &sums);
            }
        }
    }
}

fn next_stage(k: &mut Builder, stage: Reg) {
    k.add_assign(stage, STAGE);
    let over = k.eq(stage, STAGES * STAGE);
    k.guarded(over, true, |k| k.assign(stage, 0));
}

/// The bits of an f32 rounded to tf32.
fn rounded(k: &mut Builder, bits: Reg) -> Reg {
    let value = k.op(Op::Mov, B32, F32, &[bits.into()]);
    k.convert(Op::CvtTf32F32, B32, &[value.into()])
}

impl Copy {
    /// Asks for this thread's two units of the next tile, zeros beyond the matrix.
    fn start(&self, k: &mut Builder, p: &Product, stage: Reg, depth: u32) {
        for i in 0..2 {
            let in_depth = k.lt(self.depth[i], p.k);
            let inside = k.and(in_depth, self.exists);
            let none = k.value(U32, 0);
            let bytes = k.select(inside, 16, none);
            let to = k.add(self.to[i], stage);
            let operands = [
                Operand::At(to, 0),
                Operand::At(self.from[i], 0),
                16.into(),
                bytes.into(),
            ];
            k.act(Op::CpAsync16, &operands);
            k.add_assign(self.from[i], self.step);
            k.add_assign(self.depth[i], depth);
        }
    }
}

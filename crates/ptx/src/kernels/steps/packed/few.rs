//! The product of few rows: a block has some rows of weights, whose units its threads share. The threads read all of a
//! row of `x`, so that they find its mean square on the way. A thread begins to load its first weights before earlier
//! kernels have ended.

use super::{Loaded, PackedFormat, PackedMatmulKernel, Params, Row, divide_by_root, unit};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::common::{Combine, WARP, over_lanes};
use crate::kernels::gemm::activate;
use crate::kernels::{Activation, Kernel};
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

const WARPS: u32 = 4;
const THREADS: u32 = WARPS * WARP;
/// The number of blocks per multiprocessor. While one waits, others compute.
const BLOCKS: u32 = 5;
/// The number of rows of weights per block. They share the loads of `x`.
const ROWS: u32 = 4;
/// The number of gates of a block; each has two rows of weights.
const GATES: u32 = ROWS / 2;

pub(super) fn build(
    kernel: PackedMatmulKernel,
    gate: Option<Activation>,
    target: Target,
) -> Result<PtxKernel> {
    let grid = [
        Extent::Tiles("rows", ROWS),
        Extent::Param("tokens"),
        Extent::Fixed(1),
    ];
    let mut launch = Launch::new(THREADS, grid).overlapping(target);
    launch.min_blocks = BLOCKS;
    let mut k = Builder::new(kernel.name(), target, launch);
    let params = Params::declare(&mut k, kernel.format);
    let normalises = k.scalar("normalises", U32);
    let normalises = k.ne(normalises, 0);
    let epsilon = k.scalar("epsilon", F32);
    let token = k.special(Special::CtaidY);
    let thread = k.special(Special::TidX);
    let columns = Columns::new(&mut k, gate, params.rows);
    let first = columns.first(&mut k);
    let last = k.sub(params.rows, 1);
    let row = |i| {
        let row = columns.row(&mut k, first, i);
        let row = k.min(row, last);
        params.weights.row(&mut k, row)
    };
    let rows: Vec<Row> = (0..ROWS).map(row).collect();
    let parts = k.shared("parts", F32, WARPS * (ROWS + 1));
    let weights = &params.weights;
    let last = k.sub(weights.units, 1);
    let own = k.min(thread, last);
    let loaded: Vec<Loaded> = rows
        .iter()
        .map(|row| weights.load(&mut k, row, own))
        .collect();
    k.wait_for_grid();
    let zero = k.value(U32, 0);
    let x = k.at_2d(params.x, token, params.k, zero, 4);
    // A sum for each row, and that of squares.
    let sums = k.filled(F32, ROWS as usize + 1, 0.0f32);
    let squares = sums[ROWS as usize];
    k.for_range(thread, weights.units, THREADS, |k, i| {
        let x = unit(k, kernel.format, x, i);
        for &value in &x {
            k.fma_assign(squares, value, value);
        }
        k.when(normalises, |k| {
            for (&x, gain) in x.iter().zip(unit(k, kernel.format, params.gain, i)) {
                k.mul_assign(x, gain);
            }
        });
        // Floats have no offset.
        let whole = (kernel.format != PackedFormat::Floats).then(|| add_up(k, &x));
        for (loaded, &sum) in loaded.iter().zip(&sums) {
            let w = weights.numbers(k, loaded);
            let Some(([scale, offset], whole)) = loaded.group.zip(whole) else {
                multiply(k, sum, &x, &w);
                continue;
            };
            let dot = k.mul(x[0], w[0]);
            multiply(k, dot, &x[1..], &w[1..]);
            k.fma_assign(sum, scale, dot);
            k.fma_assign(sum, offset, whole);
        }
        let next = k.add(i, THREADS);
        let more = k.lt(next, weights.units);
        k.when(more, |k| {
            for (row, loaded) in rows.iter().zip(&loaded) {
                let next = weights.load(k, row, next);
                loaded.assign(k, &next);
            }
        });
    });
    share(&mut k, &sums, thread, parts);
    // A thread adds up the warps' parts of a column.
    let first = columns.first(&mut k);
    let column = k.add(first, thread);
    let own = k.lt(thread, columns.of_block);
    let exists = k.lt(column, columns.all);
    let writes = k.and(own, exists);
    k.when(writes, |k| {
        let factor = k.value(F32, params.scale);
        k.when(normalises, |k| {
            let squares = k.value(U32, ROWS);
            let sum = of_warps(k, parts, squares);
            divide_by_root(k, factor, sum, [params.k, epsilon]);
        });
        let result = columns.result(k, parts, thread, factor);
        params.store_scaled(k, result, [token, column]);
    });
    k.finish()
}

/// The columns of `y` that a block computes, each by a row of weights or by two, whose first one gives a gate.
struct Columns {
    gate: Option<Activation>,
    of_block: u32,
    /// The columns of all blocks.
    all: Reg,
}

impl Columns {
    fn new(k: &mut Builder, gate: Option<Activation>, rows: Reg) -> Self {
        let (of_block, all) = match gate {
            None => (ROWS, rows),
            Some(_) => (GATES, k.shr(rows, 1)),
        };
        Self {
            gate,
            of_block,
            all,
        }
    }

    /// The first column, in a separate register, so that no register holds it through the loop.
    fn first(&self, k: &mut Builder) -> Reg {
        let block = k.special(Special::CtaidX);
        k.mul(block, self.of_block)
    }

    /// The row of weights of the block's `i`-th sum. Rows that gates multiply come after all gates.
    fn row(&self, k: &mut Builder, first: Reg, i: u32) -> Reg {
        let column = k.offset(first, i % self.of_block);
        if i < self.of_block {
            column
        } else {
            k.add(column, self.all)
        }
    }

    /// The result of the block's column of this number.
    fn result(&self, k: &mut Builder, parts: Reg, number: Reg, factor: Reg) -> Reg {
        let product = of_warps(k, parts, number);
        let product = k.mul(product, factor);
        let Some(activation) = self.gate else {
            return product;
        };
        let gate = activate(k, activation, product);
        let passes = k.offset(number, GATES);
        let passes = of_warps(k, parts, passes);
        let passes = k.mul(passes, factor);
        k.mul(gate, passes)
    }
}

/// Leaves each warp's sums in shared memory: for each sum those of all warps.
fn share(k: &mut Builder, sums: &[Reg], thread: Reg, parts: Reg) {
    let (warp, lane) = (k.shr(thread, 5), k.and(thread, WARP - 1));
    let first_lane = k.eq(lane, 0);
    let own = k.fma(warp, 4, parts);
    for (i, &sum) in (0..).zip(sums) {
        let sum = over_lanes(k, Combine::Sum, sum, WARP);
        k.guarded(first_lane, true, |k| {
            k.st_shared(F32, own, i * (4 * WARPS) as i32, sum);
        });
    }
    k.barrier();
}

/// Adds up the parts of a sum.
fn of_warps(k: &mut Builder, parts: Reg, sum: Reg) -> Reg {
    let at = k.fma(sum, 4 * WARPS, parts);
    let parts = k.ld_vector(Op::LdShared, F32, WARPS as usize, at, 0);
    add_up(k, &parts)
}

/// Adds the products of two vectors to a sum.
fn multiply(k: &mut Builder, sum: Reg, x: &[Reg], w: &[Reg]) {
    for (&x, &w) in x.iter().zip(w) {
        k.fma_assign(sum, x, w);
    }
}

fn add_up(k: &mut Builder, values: &[Reg]) -> Reg {
    let sum = k.add(values[0], values[1]);
    for &value in &values[2..] {
        k.add_assign(sum, value);
    }
    sum
}

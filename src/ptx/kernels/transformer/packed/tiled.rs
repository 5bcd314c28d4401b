//! The product of many rows: a block computes a tile of 32 rows of `x` and 32 rows of weights, a thread four by four of
//! it. Slabs of 32 columns of both lie in shared memory.

use super::{PackedMatmulKernel, Params, unit};
use crate::ptx::build::Builder;
use crate::ptx::error::Result;
use crate::ptx::inst::{Op, Reg, Special};
use crate::ptx::kernel::{Extent, Launch, PtxKernel};
use crate::ptx::kernels::Kernel;
use crate::ptx::types::PtxType::{F32, U32};
use crate::ptx::types::Target;

const THREADS: u32 = 64;
/// Rows of a tile, along both sides.
const TILE: u32 = 32;
/// Threads along each side, which have every eighth row from their own on.
const ACROSS: u32 = 8;
const OWN: u32 = TILE / ACROSS;
/// Columns of a slab, and vectors of four of them.
const DEPTH: u32 = 32;
const VECTORS: u32 = DEPTH / 4;
/// Bytes from a row of a slab to the next: an odd number of 16 bytes keeps rows in different banks.
const PITCH: u32 = 16 * (VECTORS + 1);

pub(super) fn build(kernel: PackedMatmulKernel, target: Target) -> Result<PtxKernel> {
    let grid = [
        Extent::Tiles("rows", TILE),
        Extent::Tiles("tokens", TILE),
        Extent::Fixed(1),
    ];
    let launch = Launch::new(THREADS, grid).overlapping(target);
    let mut k = Builder::new(kernel.name(), target, launch);
    let params = Params::declare(&mut k, kernel.format);
    let slabs = ["x_slab", "w_slab"].map(|name| k.shared(name, F32, TILE * PITCH / 4));
    let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
    let down_blocks = k.special(Special::CtaidY);
    let (first_row, first_token) = (k.mul(block, TILE), k.mul(down_blocks, TILE));
    let (down, right) = (k.div(thread, ACROSS), k.rem(thread, ACROSS));
    let loads = loads(&mut k, &params, thread, [first_token, first_row]);
    k.wait_for_grid();
    let sums: Vec<Vec<Reg>> = (0..OWN)
        .map(|_| k.filled(F32, OWN as usize, 0.0f32))
        .collect();
    let x_own = k.fma(down, PITCH, slabs[0]);
    let w_own = k.fma(right, PITCH, slabs[1]);
    let units = DEPTH / kernel.format.unit();
    k.for_range(0, params.weights.units, units, |k, slab| {
        for load in &loads {
            load.copy(k, &params, slab, slabs);
        }
        k.barrier();
        for i in 0..VECTORS {
            let vector = |k: &mut Builder, own: Reg, row: u32| {
                let at = row * ACROSS * PITCH + 16 * i;
                k.ld_vector(Op::LdShared, F32, 4, own, at as i32)
            };
            let w: Vec<Vec<Reg>> = (0..OWN).map(|row| vector(k, w_own, row)).collect();
            for (row, sums) in (0..OWN).zip(&sums) {
                let x = vector(k, x_own, row);
                for (&sum, w) in sums.iter().zip(&w) {
                    for (&x, &w) in x.iter().zip(w) {
                        k.fma_assign(sum, x, w);
                    }
                }
            }
        }
        k.barrier();
    });
    for (i, sums) in (0..OWN).zip(&sums) {
        for (j, &sum) in (0..OWN).zip(sums) {
            let token = k.add(first_token, down);
            let token = k.offset(token, i * ACROSS);
            let row = k.add(first_row, right);
            let row = k.offset(row, j * ACROSS);
            let [token_exists, row_exists] = [k.lt(token, params.tokens), k.lt(row, params.rows)];
            let exists = k.and(token_exists, row_exists);
            k.when(exists, |k| params.store(k, sum, [token, row]));
        }
    }
    k.finish()
}

/// A unit of each slab that a thread copies.
struct Load {
    /// The row's addresses; beyond the last row those of the last one, whose products are not stored.
    x: Reg,
    row: super::Row,
    /// The unit in the slab's rows, and its bytes from the slab's beginning.
    unit: Reg,
    to: Reg,
}

impl Load {
    fn copy(&self, k: &mut Builder, params: &Params, slab: Reg, slabs: [Reg; 2]) {
        let i = k.add(slab, self.unit);
        let format = params.weights.format;
        let x = k.filled(F32, format.unit() as usize, 0.0f32);
        let w = k.filled(F32, format.unit() as usize, 0.0f32);
        let exists = k.lt(i, params.weights.units);
        k.when(exists, |k| {
            for (&to, value) in x.iter().zip(unit(k, format, self.x, i)) {
                k.assign(to, value);
            }
            let loaded = params.weights.load(k, &self.row, i);
            let weights = params.weights.numbers(k, &loaded);
            for (&to, weight) in w.iter().zip(weights) {
                let weight = match loaded.group {
                    Some([scale, offset]) => k.fma(weight, scale, offset),
                    None => weight,
                };
                k.assign(to, weight);
            }
        });
        for (slab, values) in slabs.into_iter().zip([x, w]) {
            let to = k.add(self.to, slab);
            for (four, values) in (0..).zip(values.chunks_exact(4)) {
                k.st_shared(F32, to, 16 * four, values);
            }
        }
    }
}

/// The units that a thread copies of each slab.
fn loads(
    k: &mut Builder,
    params: &Params,
    thread: Reg,
    [first_token, first_row]: [Reg; 2],
) -> Vec<Load> {
    let zero = k.value(U32, 0);
    let len = params.weights.format.unit();
    let units = DEPTH / len;
    let unit = k.rem(thread, units);
    let first_line = k.div(thread, units);
    let load = |part: u32| {
        let line = k.offset(first_line, part * THREADS / units);
        let of_tile = |k: &mut Builder, first: Reg, count: Reg| {
            let row = k.add(first, line);
            let last = k.sub(count, 1);
            k.min(row, last)
        };
        let token = of_tile(k, first_token, params.tokens);
        let row = of_tile(k, first_row, params.rows);
        let to = k.mul(line, PITCH);
        Load {
            x: k.at_2d(params.x, token, params.k, zero, 4),
            row: params.weights.row(k, row),
            unit,
            to: k.fma(unit, 4 * len, to),
        }
    };
    (0..TILE * units / THREADS).map(load).collect()
}

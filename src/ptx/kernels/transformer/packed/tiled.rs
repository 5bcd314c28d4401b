//! The product of many rows: a block computes a tile of 32 rows of `x` and 32 rows of weights. Groups of threads take
//! turns with slabs of 32 columns and add up their sums in the end; a thread of a group computes four by four of the tile.
//! A group's slabs lie in shared memory, and its next ones are on their way to registers meanwhile.

use super::{Loaded, PackedMatmulKernel, Params, unit};
use crate::ptx::build::Builder;
use crate::ptx::error::Result;
use crate::ptx::inst::{Op, Reg, Special};
use crate::ptx::kernel::{Extent, Launch, PtxKernel};
use crate::ptx::kernels::Kernel;
use crate::ptx::types::PtxType::{F32, U32};
use crate::ptx::types::Target;

const GROUPS: u32 = 4;
/// Threads of a group.
const THREADS: u32 = 64;
/// Rows of a tile, along both sides.
const TILE: u32 = 32;
/// Threads of a group along each side, which have every eighth row from their own on.
const ACROSS: u32 = 8;
const OWN: u32 = TILE / ACROSS;
/// Columns of a slab, and vectors of four of them.
const DEPTH: u32 = 32;
const VECTORS: u32 = DEPTH / 4;
/// Bytes from a row of a slab to the next: an odd number of 16 bytes keeps rows in different banks.
const PITCH: u32 = 16 * (VECTORS + 1);
const SLAB: u32 = TILE * PITCH;

pub(super) fn build(kernel: PackedMatmulKernel, target: Target) -> Result<PtxKernel> {
    let grid = [
        Extent::Tiles("rows", TILE),
        Extent::Tiles("tokens", TILE),
        Extent::Fixed(1),
    ];
    let launch = Launch::new(GROUPS * THREADS, grid).overlapping(target);
    let mut k = Builder::new(kernel.name(), target, launch);
    let params = Params::declare(&mut k, kernel.format);
    let tile = Tile::new(&mut k);
    let loads = loads(&mut k, &params, &tile);
    k.wait_for_grid();
    let units = DEPTH / kernel.format.unit();
    let own = k.mul(tile.group, units);
    for load in &loads {
        load.fetch(&mut k, &params, own);
    }
    let sums = k.filled(F32, (OWN * OWN) as usize, 0.0f32);
    k.for_range(0, params.weights.units, GROUPS * units, |k, slab| {
        for load in &loads {
            load.store(k, &params, tile.slabs);
        }
        k.barrier();
        let next = k.add(slab, GROUPS * units);
        let next = k.add(next, own);
        for load in &loads {
            load.fetch(k, &params, next);
        }
        tile.multiply(k, &sums);
        k.barrier();
    });
    tile.add_groups(&mut k, &sums);
    let first = k.eq(tile.group, 0);
    k.when(first, |k| tile.store(k, &params, &sums));
    k.finish()
}

/// A thread's part of a block's tile.
struct Tile {
    first_row: Reg,
    first_token: Reg,
    group: Reg,
    /// The thread in its group, and its first row of `x` and of weights in the tile.
    thread: Reg,
    down: Reg,
    right: Reg,
    /// The slabs of `x` and of weights of all groups, and those of the group.
    shared: [Reg; 2],
    slabs: [Reg; 2],
}

impl Tile {
    fn new(k: &mut Builder) -> Self {
        let (block, down_blocks) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
        let thread = k.special(Special::TidX);
        let group = k.div(thread, THREADS);
        let thread = k.rem(thread, THREADS);
        let shared = ["x_slabs", "w_slabs"].map(|name| k.shared(name, F32, GROUPS * SLAB / 4));
        Self {
            first_row: k.mul(block, TILE),
            first_token: k.mul(down_blocks, TILE),
            group,
            thread,
            down: k.div(thread, ACROSS),
            right: k.rem(thread, ACROSS),
            shared,
            slabs: shared.map(|slabs| k.fma(group, SLAB, slabs)),
        }
    }

    /// Adds the products of the group's slabs.
    fn multiply(&self, k: &mut Builder, sums: &[Reg]) {
        let [x_slab, w_slab] = self.slabs;
        let x_own = k.fma(self.down, PITCH, x_slab);
        let w_own = k.fma(self.right, PITCH, w_slab);
        for i in 0..VECTORS {
            let vector = |k: &mut Builder, own: Reg, row: u32| {
                let at = row * ACROSS * PITCH + 16 * i;
                k.ld_vector(Op::LdShared, F32, 4, own, at as i32)
            };
            let w: Vec<Vec<Reg>> = (0..OWN).map(|row| vector(k, w_own, row)).collect();
            for (row, sums) in (0..).zip(sums.chunks_exact(OWN as usize)) {
                let x = vector(k, x_own, row);
                for (&sum, w) in sums.iter().zip(&w) {
                    for (&x, &w) in x.iter().zip(w) {
                        k.fma_assign(sum, x, w);
                    }
                }
            }
        }
    }

    /// Adds the sums of the other groups to those of the first one, by way of the slabs.
    fn add_groups(&self, k: &mut Builder, sums: &[Reg]) {
        let bytes = 4 * THREADS * OWN * OWN;
        let own = k.fma(self.thread, 4, self.shared[0]);
        let of_group = k.fma(self.group, bytes, own);
        let place = |i: usize| (i as u32 * 4 * THREADS) as i32;
        for (i, &sum) in sums.iter().enumerate() {
            k.st_shared(F32, of_group, place(i), sum);
        }
        k.barrier();
        for group in 1..GROUPS {
            for (i, &sum) in sums.iter().enumerate() {
                let more = k.ld_shared(F32, own, place(i) + (group * bytes) as i32);
                k.add_assign(sum, more);
            }
        }
    }

    fn store(&self, k: &mut Builder, params: &Params, sums: &[Reg]) {
        let first_token = k.add(self.first_token, self.down);
        let first_row = k.add(self.first_row, self.right);
        for (i, &sum) in (0..).zip(sums) {
            let token = k.offset(first_token, i / OWN * ACROSS);
            let row = k.offset(first_row, i % OWN * ACROSS);
            let [token_exists, row_exists] = [k.lt(token, params.tokens), k.lt(row, params.rows)];
            let exists = k.and(token_exists, row_exists);
            k.when(exists, |k| params.store(k, sum, [token, row]));
        }
    }
}

/// A unit of each slab that a thread copies.
struct Load {
    /// The row's addresses; beyond the last row those of the last one, whose products are not stored.
    x: Reg,
    row: super::Row,
    /// The unit in the slab's rows, and its bytes from the slab's beginning.
    unit: Reg,
    to: Reg,
    /// The elements of `x` and the weights that were fetched last.
    elements: Vec<Reg>,
    weights: Loaded,
}

impl Load {
    /// Loads the unit of the slab that begins with unit `slab`. Beyond the end of a row elements of `x` are 0, so that
    /// the weights do not count.
    fn fetch(&self, k: &mut Builder, params: &Params, slab: Reg) {
        let weights = &params.weights;
        let i = k.add(slab, self.unit);
        let exists = k.lt(i, weights.units);
        k.when_else(
            exists,
            |k| {
                let elements = unit(k, weights.format, self.x, i);
                for (&to, value) in self.elements.iter().zip(elements) {
                    k.assign(to, value);
                }
                let loaded = weights.load(k, &self.row, i);
                self.weights.assign(k, &loaded);
            },
            |k| {
                for &to in &self.elements {
                    k.assign(to, 0.0f32);
                }
            },
        );
    }

    /// Stores what was fetched to the slabs.
    fn store(&self, k: &mut Builder, params: &Params, [x_slab, w_slab]: [Reg; 2]) {
        let numbers = params.weights.numbers(k, &self.weights);
        let weight = |number| match self.weights.group {
            Some([scale, offset]) => k.fma(number, scale, offset),
            None => number,
        };
        let weights: Vec<Reg> = numbers.into_iter().map(weight).collect();
        for (slab, values) in [(x_slab, &self.elements), (w_slab, &weights)] {
            let to = k.add(self.to, slab);
            for (four, values) in (0..).zip(values.chunks_exact(4)) {
                k.st_shared(F32, to, 16 * four, values);
            }
        }
    }
}

/// The units that a thread copies of each slab.
fn loads(k: &mut Builder, params: &Params, tile: &Tile) -> Vec<Load> {
    let zero = k.value(U32, 0);
    let len = params.weights.format.unit();
    let units = DEPTH / len;
    let unit = k.rem(tile.thread, units);
    let first_line = k.div(tile.thread, units);
    let load = |part: u32| {
        let line = k.offset(first_line, part * THREADS / units);
        let of_tile = |k: &mut Builder, first: Reg, count: Reg| {
            let row = k.add(first, line);
            let last = k.sub(count, 1);
            k.min(row, last)
        };
        let token = of_tile(k, tile.first_token, params.tokens);
        let row = of_tile(k, tile.first_row, params.rows);
        let to = k.mul(line, PITCH);
        Load {
            x: k.at_2d(params.x, token, params.k, zero, 4),
            row: params.weights.row(k, row),
            unit,
            to: k.fma(unit, 4 * len, to),
            elements: k.filled(F32, len as usize, 0.0f32),
            weights: params.weights.zeros(k),
        }
    };
    (0..TILE * units / THREADS).map(load).collect()
}

//! The product of many rows: a block computes a tile of 32 rows of `x` and 32 rows of weights. Groups of threads take
//! turns with slabs of 32 columns and add up their sums in the end; a thread of a group computes four by four of the
//! tile. A group's slabs are in shared memory. Meanwhile its next slabs are loaded into registers.

use super::slab::{Loads, Shape};
use super::{PackedMatmulKernel, Params};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::types::PtxType::F32;
use crate::types::Target;

const GROUPS: u32 = 4;
/// The number of threads of a group.
const THREADS: u32 = 64;
/// The number of rows of a tile, along both sides.
const TILE: u32 = 32;
/// The number of threads of a group along each side. A thread has every eighth row from its own on.
const ACROSS: u32 = 8;
const OWN: u32 = TILE / ACROSS;
/// The number of columns of a slab.
const DEPTH: u32 = 32;
/// The number of vectors of four of them.
const VECTORS: u32 = DEPTH / 4;
/// The number of bytes from a row of a slab to the next: an odd number of 16 bytes keeps rows in different banks.
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
    let shape = Shape {
        groups: GROUPS,
        threads: THREADS,
        lines: [TILE, TILE],
        depth: DEPTH,
        bytes: 4,
        pitch: PITCH,
        place: |k, row, byte| k.fma(row, PITCH, byte),
    };
    let firsts = [tile.first_token, tile.first_row];
    let loads = Loads::new(&mut k, &params, &shape, [tile.group, tile.thread], firsts);
    let sums = k.filled(F32, (OWN * OWN) as usize, 0.0f32);
    let store = |k: &mut Builder, side: usize, (place, further): (Reg, u32), numbers: &[Reg]| {
        let to = k.add(place, tile.slabs[side]);
        for (four, numbers) in (0..).zip(numbers.chunks_exact(4)) {
            k.st_shared(F32, to, (further + 16 * four) as i32, numbers);
        }
    };
    loads.sweep(&mut k, &params, store, |k| tile.multiply(k, &sums));
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

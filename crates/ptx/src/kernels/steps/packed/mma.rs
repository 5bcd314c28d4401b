//! The product of many rows on tensor cores: a block of eight warps computes a tile of 64 rows of `x` and 32 or 64 rows of
//! weights. Groups of warps take turns with slabs of 32 columns and add up their sums in the end; each warp of a group has
//! 32 rows of both.
//!
//! A number is the sum of two bf16. Slabs have the upper parts and the lower parts apart. Of the four products of parts
//! that of the lower ones is left out.

use super::slab::{Loads, Shape};
use super::{PackedMatmulKernel, Params};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::WARP;
use crate::kernels::fragments::{bf16_parts, load_matrices, multiply_parts};
use crate::types::PtxType::{B32, F32};
use crate::types::Target;

const WARPS: u32 = 8;
const THREADS: u32 = WARPS * WARP;
/// The number of rows of `x` in a tile.
const TOKENS: u32 = 64;
/// The number of rows of `x`, and of weights, per warp.
const SIDE: u32 = 32;
/// The number of columns of a slab.
const DEPTH: u32 = 32;
/// The number of bytes of a row of a slab.
const PITCH: u32 = 2 * DEPTH;

/// The division of a block's work.
#[derive(Clone, Copy)]
struct Division {
    /// The number of rows of weights in a tile.
    rows: u32,
}

impl Division {
    /// Warps of a group.
    fn warps(self) -> u32 {
        TOKENS / SIDE * self.rows / SIDE
    }

    fn groups(self) -> u32 {
        WARPS / self.warps()
    }

    /// Bytes of a part's slab of `x` and of weights.
    fn slabs(self) -> [u32; 2] {
        [TOKENS * PITCH, self.rows * PITCH]
    }

    /// Bytes of a group's slabs.
    fn group_bytes(self) -> u32 {
        2 * (self.slabs()[0] + self.slabs()[1])
    }

    /// Bytes from a row of a group's sums to the next, which keeps the rows of four lanes in different banks, and of
    /// all rows.
    fn sums_bytes(self) -> [u32; 2] {
        let pitch = 4 * (self.rows + 8);
        [pitch, TOKENS * pitch]
    }

    fn shared_bytes(self) -> u32 {
        self.groups() * self.group_bytes().max(self.sums_bytes()[1])
    }
}

pub(super) fn build(kernel: PackedMatmulKernel, wide: bool, target: Target) -> Result<PtxKernel> {
    let rows = if wide { 2 * SIDE } else { SIDE };
    let division = Division { rows };
    let grid = [
        Extent::Tiles("rows", rows),
        Extent::Tiles("tokens", TOKENS),
        Extent::Fixed(1),
    ];
    let mut launch = Launch::new(THREADS, grid).overlapping(target);
    // Narrow tiles are for GPUs with hardly more multiprocessors than tiles.
    launch.min_blocks = if wide { 2 } else { 1 };
    let mut k = Builder::new(kernel.name(), target, launch);
    let params = Params::declare(&mut k, kernel.format);
    let tile = Tile::new(&mut k, division);
    let shape = Shape {
        groups: division.groups(),
        threads: division.warps() * WARP,
        lines: [TOKENS, rows],
        depth: DEPTH,
        bytes: 2,
        pitch: PITCH,
        place: swizzled,
    };
    let in_group = k.rem(tile.thread, shape.threads);
    let firsts = [tile.first_token, tile.first_row];
    let loads = Loads::new(&mut k, &params, &shape, [tile.group, in_group], firsts);
    let sums: Vec<Vec<Reg>> = (0..8).map(|_| k.filled(F32, 4, 0.0f32)).collect();
    let store = |k: &mut Builder, side: usize, (place, further): (Reg, u32), numbers: &[Reg]| {
        let to = k.add(place, tile.slabs[side]);
        store_parts(k, numbers, to, [further, division.slabs()[side]]);
    };
    loads.sweep(&mut k, &params, store, |k| tile.multiply(k, &sums));
    tile.store(&mut k, &params, &sums);
    k.finish()
}

/// Returns the place in a slab of a byte of a row. Four units of 16 bytes change places by row, so that the eight rows
/// that an `ldmatrix` reads lie in different banks.
fn swizzled(k: &mut Builder, row: Reg, byte: Reg) -> Reg {
    let pair = k.shr(row, 1);
    let turn = k.and(pair, 3);
    let turn = k.shl(turn, 4);
    let byte = k.xor(byte, turn);
    k.fma(row, PITCH, byte)
}

/// Stores the upper parts of numbers `further` bytes from an address on, and the lower ones `apart` bytes after them.
fn store_parts(k: &mut Builder, numbers: &[Reg], to: Reg, [further, apart]: [u32; 2]) {
    let [uppers, lowers] = bf16_parts(k, numbers);
    for (pairs, apart) in [(uppers, 0), (lowers, apart)] {
        for (unit, pairs) in (0..).zip(pairs.chunks(4)) {
            let to = if unit == 0 { to } else { k.xor(to, 16 * unit) };
            k.st_shared(B32, to, (further + apart) as i32, pairs);
        }
    }
}

/// A warp's part of a block's tile.
struct Tile {
    division: Division,
    first_row: Reg,
    first_token: Reg,
    thread: Reg,
    group: Reg,
    lane: Reg,
    /// The warp's first row of `x` and of weights in the tile.
    warp_token: Reg,
    warp_row: Reg,
    /// All shared memory, and the group's slabs of the upper parts of `x` and of weights.
    shared: Reg,
    slabs: [Reg; 2],
}

impl Tile {
    fn new(k: &mut Builder, division: Division) -> Self {
        let (block, down) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
        let thread = k.special(Special::TidX);
        let warp = k.div(thread, WARP);
        let (group, warp) = (k.div(warp, division.warps()), k.rem(warp, division.warps()));
        let (token, row) = (k.and(warp, 1), k.shr(warp, 1));
        let shared = k.dynamic_shared("slabs", division.shared_bytes());
        let x = k.fma(group, division.group_bytes(), shared);
        Self {
            division,
            first_row: k.mul(block, division.rows),
            first_token: k.mul(down, TOKENS),
            thread,
            group,
            lane: k.and(thread, WARP - 1),
            warp_token: k.mul(token, SIDE),
            warp_row: k.mul(row, SIDE),
            shared,
            slabs: [x, k.offset(x, 2 * division.slabs()[0])],
        }
    }

    /// Adds the products of the group's slabs to 2 × 4 fragments of 16 rows of `x` and 8 rows of weights.
    fn multiply(&self, k: &mut Builder, sums: &[Vec<Reg>]) {
        // Lane 8i + j names row j of matrix i. Matrices of `x` are below each other, then side by side, those of weights
        // side by side first.
        let (low, high) = (k.and(self.lane, 15), k.shr(self.lane, 4));
        let row = k.add(self.warp_token, low);
        let byte = k.mul(high, 16);
        let place = swizzled(k, row, byte);
        let x = k.add(place, self.slabs[0]);
        let (in_matrix, matrix) = (k.and(self.lane, 7), k.shr(self.lane, 3));
        let row = k.fma(high, 8, in_matrix);
        let row = k.add(row, self.warp_row);
        let side = k.and(matrix, 1);
        let byte = k.mul(side, 16);
        let place = swizzled(k, row, byte);
        let w = k.add(place, self.slabs[1]);
        let load = |k: &mut Builder, from: Reg, at: u32| load_matrices(k, Op::LdMatrix4, from, at);
        let [x_lower, w_lower] = self.division.slabs();
        for step in 0..DEPTH / 16 {
            // Two units further.
            let [x, w] = [x, w].map(|from| k.xor(from, 32 * step));
            let weights = [0, w_lower]
                .map(|part| [0, 16].map(|rows| load(k, w, rows * PITCH + part)).concat());
            for (i, sums) in (0..).zip(sums.chunks_exact(4)) {
                let x = [0, x_lower].map(|part| load(k, x, i * 16 * PITCH + part));
                multiply_parts(k, sums, &x, &weights);
            }
        }
    }

    /// Adds up the sums of the groups, by way of shared memory, and stores them.
    fn store(&self, k: &mut Builder, params: &Params, sums: &[Vec<Reg>]) {
        // Lane 4g + t has columns 2t and the next of rows g and g + 8 of each fragment.
        let (g, t) = (k.shr(self.lane, 2), k.and(self.lane, 3));
        let row = k.add(self.warp_token, g);
        let [pitch, bytes] = self.division.sums_bytes();
        let to = k.fma(self.group, bytes, self.shared);
        let to = k.fma(row, pitch, to);
        let to = k.fma(self.warp_row, 4, to);
        let to = k.fma(t, 8, to);
        for (i, sums) in (0..).zip(sums) {
            for (half, pair) in (0..).zip(sums.chunks_exact(2)) {
                let at = (i / 4 * 16 + 8 * half) * pitch + i % 4 * 32;
                k.st_shared(F32, to, at as i32, pair);
            }
        }
        k.barrier();
        // A warp has neighbouring columns of a row.
        let rows = self.division.rows;
        let (line, col) = (k.div(self.thread, rows), k.rem(self.thread, rows));
        let from = k.fma(line, pitch, self.shared);
        let from = k.fma(col, 4, from);
        let row = k.add(self.first_row, col);
        let row_exists = k.lt(row, params.rows);
        let first_token = k.add(self.first_token, line);
        for further in (0..TOKENS).step_by((THREADS / rows) as usize) {
            let token = k.offset(first_token, further);
            let token_exists = k.lt(token, params.tokens);
            let exists = k.and(token_exists, row_exists);
            k.when(exists, |k| {
                let at = |group: u32| (group * bytes + further * pitch) as i32;
                let sum = k.ld_shared(F32, from, at(0));
                for group in 1..self.division.groups() {
                    let more = k.ld_shared(F32, from, at(group));
                    k.add_assign(sum, more);
                }
                params.store(k, sum, [token, row]);
            });
        }
    }
}

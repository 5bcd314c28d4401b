//! Tiles of numbers in shared memory, from which tensor cores load matrices.

use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::kernels::fragments::{bf16_parts, load_matrices};
use crate::types::PtxType::B32;

/// Rows of bf16 in shared memory, the upper parts and then the lower ones.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub(super) first: Reg,
    /// The number of bytes from a row to the next: an odd number of 16 bytes keeps rows in different banks.
    pub(super) pitch: u32,
    /// The number of bytes of all rows of a part.
    part: u32,
}

impl Tile {
    pub(super) fn new(
        shared: Reg,
        used: &mut u32,
        k: &mut Builder,
        [rows, cols]: [u32; 2],
    ) -> Self {
        let pitch = 2 * cols + 16;
        let tile = Self {
            first: k.offset(shared, *used),
            pitch,
            part: rows * pitch,
        };
        *used += 2 * tile.part;
        tile
    }

    /// Stores four numbers of a row from a column on.
    pub(super) fn store(&self, k: &mut Builder, [row, col]: [Reg; 2], numbers: &[Reg]) {
        let row = k.fma(row, self.pitch, self.first);
        let to = k.fma(col, 2, row);
        for (part, pairs) in (0..).zip(bf16_parts(k, numbers)) {
            k.st_shared(B32, to, part * self.part as i32, pairs.as_slice());
        }
    }

    /// Loads both parts of four 8 × 8 matrices at an address, `further` bytes beyond it.
    pub(super) fn load(&self, k: &mut Builder, op: Op, at: Reg, further: u32) -> [Vec<Reg>; 2] {
        [0, self.part].map(|part| load_matrices(k, op, at, further + part))
    }
}

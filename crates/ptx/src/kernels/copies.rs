//! Copies of f32 tiles from global to shared memory through registers: loads overlap with the
//! previous tile's multiplication, stores follow it.

use crate::build::Builder;
use crate::inst::{Op, Operand, Reg};
use crate::types::PtxType::F32;

/// One thread's share of copying tiles.
pub(super) struct Copy {
    width: usize,
    /// The address of each load.
    pub(super) from: Vec<Reg>,
    step: Operand<'static>,
    /// The index of each load, or of all loads, along the direction of the tiles.
    pub(super) depth: Vec<Reg>,
    deeper: u32,
    /// The address in the first buffer to which each load is stored.
    pub(super) to: Vec<Reg>,
    stride: i32,
}

impl Copy {
    /// Creates a share of loads of `width` elements that are stored `stride` elements apart. Tiles
    /// advance by `deeper` indices and `step` bytes.
    pub(super) fn new(width: u32, deeper: u32, step: Operand<'static>, stride: u32) -> Self {
        Copy {
            width: width as usize,
            from: Vec::new(),
            step,
            depth: Vec::new(),
            deeper,
            to: Vec::new(),
            stride: (stride * 4) as i32,
        }
    }

    /// Loads this thread's share, with zeros beyond `end`, and advances to the next tile.
    pub(super) fn load(&self, k: &mut Builder, end: Reg) -> Vec<Vec<Reg>> {
        let mut loads = Vec::new();
        let inside: Vec<Reg> = self.depth.iter().map(|&depth| k.lt(depth, end)).collect();
        for (&from, &inside) in self.from.iter().zip(inside.iter().cycle()) {
            let values = k.filled(F32, self.width, 0.0f32);
            let to = match values.as_slice() {
                [one] => (*one).into(),
                many => Operand::from(many),
            };
            k.guarded(inside, true, |k| {
                k.emit(Op::LdGlobalNc, F32, &[to], &[Operand::At(from, 0)]);
            });
            k.add_assign(from, self.step);
            loads.push(values);
        }
        for &depth in &self.depth {
            k.add_assign(depth, self.deeper);
        }
        loads
    }

    /// Stores the share to the buffer at offset `buffer`.
    pub(super) fn store(&self, k: &mut Builder, loads: &[Vec<Reg>], buffer: Reg) {
        for (values, &to) in loads.iter().zip(&self.to) {
            let to = k.add(to, buffer);
            if self.stride == 4 && values.len() == 4 {
                k.st_shared(F32, to, 0, values.as_slice());
                continue;
            }
            for (i, &value) in values.iter().enumerate() {
                k.st_shared(F32, to, i as i32 * self.stride, value);
            }
        }
    }
}

/// Loads `n` elements at `address` in groups of four that are `apart` bytes apart.
pub(super) fn fours(k: &mut Builder, address: Reg, at: u32, n: usize, apart: u32) -> Vec<Reg> {
    let four = |i| k.ld_vector(Op::LdShared, F32, 4, address, (at + i * apart) as i32);
    (0..n as u32 / 4).flat_map(four).collect()
}

/// Adds the outer product of a column and a row to the accumulators.
pub(super) fn outer(k: &mut Builder, sums: &[Vec<Reg>], column: &[Reg], row: &[Reg]) {
    for (sums, &x) in sums.iter().zip(column) {
        for (&sum, &y) in sums.iter().zip(row) {
            k.fma_assign(sum, x, y);
        }
    }
}

/// Switches between two buffers at offsets 0 and `bytes`.
pub(super) fn turn(k: &mut Builder, buffer: Reg, bytes: u32) {
    let other = k.sub(bytes, buffer);
    k.assign(buffer, other);
}

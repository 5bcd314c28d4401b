//! Tiles of f32 on their way from global to shared memory, through registers: loads while the tile
//! before is multiplied, stores after it.

use crate::ptx::build::Builder;
use crate::ptx::inst::{Op, Operand, Reg};
use crate::ptx::types::PtxType::F32;

/// One thread's share in copying tiles.
pub(super) struct Copy {
    width: usize,
    /// Where each load reads next, and how many bytes further the tile after that lies.
    pub(super) from: Vec<Reg>,
    step: Operand<'static>,
    /// The index of each load, or of all of them, along which tiles follow each other, and how much
    /// further the next tile lies.
    pub(super) depth: Vec<Reg>,
    deeper: u32,
    /// Where each load is stored in the first buffer, and how far apart its values lie.
    pub(super) to: Vec<Reg>,
    stride: i32,
}

impl Copy {
    /// Loads of `width` values that are stored `stride` values apart, of tiles that are `deeper` deep
    /// and `step` bytes apart.
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

    /// Loads this thread's share, zeros beyond `end`, and goes on to the next tile.
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

    /// Stores the share into the buffer that begins `buffer` bytes after the first.
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

/// `n` values at `address`, four of them in a row and the next four `apart` bytes further.
pub(super) fn fours(k: &mut Builder, address: Reg, at: u32, n: usize, apart: u32) -> Vec<Reg> {
    let four = |i| k.ld_vector(Op::LdShared, F32, 4, address, (at + i * apart) as i32);
    (0..n as u32 / 4).flat_map(four).collect()
}

/// Adds the products of a column with a row.
pub(super) fn outer(k: &mut Builder, sums: &[Vec<Reg>], column: &[Reg], row: &[Reg]) {
    for (sums, &x) in sums.iter().zip(column) {
        for (&sum, &y) in sums.iter().zip(row) {
            k.fma_assign(sum, x, y);
        }
    }
}

/// Goes on to the other of two buffers, which begin at 0 and after so many bytes.
pub(super) fn turn(k: &mut Builder, buffer: Reg, bytes: u32) {
    let other = k.sub(bytes, buffer);
    k.assign(buffer, other);
}

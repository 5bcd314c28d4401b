//! Asynchronous matmuls of four warps (`wgmma`).
//!
//! A matmul reads shared memory at its wait, the latest time that the hardware allows. So data that
//! is overwritten too early is lost, and use without a wait is a race.

use super::block::Cluster;
use super::copies::swizzle_128;
use super::decode::{Group, Left, Src};
use crate::half::{bf16_to_f32, f16_to_f32};
use crate::types::PtxType;

/// The matmuls of one warpgroup that are in progress.
pub(super) struct Flight {
    /// Committed groups, oldest first, and the open group.
    groups: Vec<Vec<Product>>,
    /// Whether `wgmma.fence` was executed since the registers were last free.
    fenced: bool,
}

impl Default for Flight {
    fn default() -> Self {
        Flight {
            groups: vec![Vec::new()],
            fenced: false,
        }
    }
}

struct Product {
    ty: PtxType,
    sums: Vec<usize>,
    a: Left,
    b: u64,
    add: bool,
    transpose_b: bool,
}

/// The descriptor of a matrix in shared memory.
#[derive(Clone, Copy)]
struct Descriptor {
    start: u64,
    leading: u64,
    stride: u64,
}

impl Descriptor {
    fn new(bits: u64) -> Result<Self, String> {
        if bits >> 62 != 1 || (bits >> 49) & 7 != 0 {
            return Err(format!(
                "descriptor {bits:#x} is not of the 128-byte swizzle"
            ));
        }
        let field = |at: u64| ((bits >> at) & 0x3fff) << 4;
        Ok(Descriptor {
            start: field(0),
            leading: field(16),
            stride: field(32),
        })
    }

    /// Returns the address of byte `byte` of row `row` if `k` is contiguous: groups of eight rows
    /// are `stride` apart.
    fn along_k(self, row: u64, byte: u64) -> u64 {
        swizzle_128(self.start + row / 8 * self.stride + row % 8 * 128 + byte)
    }

    /// Returns the address of element `k` of column `col` if columns are contiguous: a row of the
    /// box holds 64 columns, boxes are `leading` apart, and groups of eight `k` are `stride` apart.
    fn across_k(self, col: u64, k: u64) -> u64 {
        let base = self.start + col / 64 * self.leading + k / 8 * self.stride;
        swizzle_128(base + k % 8 * 128 + col % 64 * 2)
    }
}

impl Cluster<'_> {
    /// Executes an instruction of the warpgroup that begins with thread `first`.
    pub(super) fn group(&mut self, first: usize, group: &Group) -> Result<(), String> {
        let flight = &mut self.flight[first / 128];
        match group {
            Group::Fence => flight.fenced = true,
            Group::Commit => {
                flight.groups.push(Vec::new());
                flight.fenced = false;
            }
            Group::Wait(left) => {
                let done = (flight.groups.len() - 1).saturating_sub(*left);
                let done: Vec<Vec<Product>> = flight.groups.drain(..done).collect();
                for product in done.into_iter().flatten() {
                    self.multiply(first, &product)?;
                }
            }
            Group::Mma {
                ty,
                sums,
                a,
                b,
                add,
                transpose_b,
            } => {
                if !flight.fenced {
                    return Err("there is no wgmma.fence before this group of products".to_owned());
                }
                let uniform = |src: Src| {
                    let value = self.value(first, src);
                    let same = (first..first + 128).all(|t| self.value(t, src) == value);
                    same.then_some(value)
                        .ok_or("threads disagree on a descriptor")
                };
                let product = Product {
                    ty: *ty,
                    sums: sums.clone(),
                    a: match a {
                        Left::Descriptor(src) => Left::Descriptor(Src::Imm(uniform(*src)?)),
                        Left::Regs(regs) => Left::Regs(*regs),
                    },
                    b: uniform(*b)?,
                    add: uniform(Src::Reg(*add))? == 1,
                    transpose_b: *transpose_b,
                };
                if let Some(open) = self.flight[first / 128].groups.last_mut() {
                    open.push(product);
                }
            }
        }
        Ok(())
    }

    fn multiply(&mut self, first: usize, product: &Product) -> Result<(), String> {
        let columns = product.sums.len() * 2;
        let b = Descriptor::new(product.b)?;
        let left = self.left(first, product)?;
        let size = u64::from(product.ty.bytes());
        let mut right = vec![[0f64; 16]; columns];
        for (col, values) in right.iter_mut().enumerate() {
            for (k, value) in values.iter_mut().take(32 / size as usize).enumerate() {
                let (col, k) = (col as u64, k as u64);
                let address = if product.transpose_b {
                    b.across_k(col, k)
                } else {
                    b.along_k(col, k * size)
                };
                *value = self.operand(address, product.ty, first)?;
            }
        }
        for thread in 0..128 {
            let (warp, lane) = (thread / 32, thread % 32);
            for (i, &reg) in product.sums.iter().enumerate() {
                // The first pair of registers belongs to row 16 w + lane/4, the second pair to the
                // row 8 below.
                let row = 16 * warp + lane / 4 + i % 4 / 2 * 8;
                let col = i / 4 * 8 + lane % 4 * 2 + i % 2;
                let old = f32::from_bits(self.get(first + thread, reg) as u32);
                let start = if product.add { f64::from(old) } else { 0.0 };
                let pairs = left[row].iter().zip(&right[col]);
                let sum = pairs.fold(start, |sum, (x, y)| sum + x * y);
                self.set(first + thread, reg, (sum as f32).to_bits().into());
            }
        }
        Ok(())
    }

    /// Returns the 64 × 16 elements of the left matrix; for 32-bit types the second half is zeros.
    fn left(&mut self, first: usize, product: &Product) -> Result<Vec<[f64; 16]>, String> {
        let mut left = vec![[0f64; 16]; 64];
        let size = u64::from(product.ty.bytes());
        match product.a {
            Left::Descriptor(src) => {
                let a = Descriptor::new(self.value(first, src))?;
                for (row, values) in left.iter_mut().enumerate() {
                    for (k, value) in values.iter_mut().take(32 / size as usize).enumerate() {
                        let address = a.along_k(row as u64, k as u64 * size);
                        *value = self.operand(address, product.ty, first + row / 16 * 32)?;
                    }
                }
            }
            Left::Regs(regs) => {
                for thread in 0..128 {
                    let (warp, lane) = (thread / 32, thread % 32);
                    for (i, reg) in regs.into_iter().enumerate() {
                        let word = self.get(first + thread, reg);
                        let row = 16 * warp + lane / 4 + i % 2 * 8;
                        // Each lane holds one word along k, and the word four further on.
                        let (k, word) = (lane % 4 + i / 2 * 4, word as u32);
                        if size == 4 {
                            left[row][k] = number(product.ty, word);
                        } else {
                            left[row][2 * k] = number(product.ty, word);
                            left[row][2 * k + 1] = number(product.ty, word >> 16);
                        }
                    }
                }
            }
        }
        Ok(left)
    }

    fn operand(&mut self, address: u64, ty: PtxType, thread: usize) -> Result<f64, String> {
        let size = ty.bytes() as usize;
        let address = self.place(self.rank(thread), address);
        let bytes = self.shared.read_by_hardware(address, size, thread)?;
        let bits = bytes
            .iter()
            .rev()
            .fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        Ok(number(ty, bits))
    }
}

/// Interprets the lowest bits as a number of this type.
fn number(ty: PtxType, bits: u32) -> f64 {
    f64::from(match ty {
        PtxType::F16 => f16_to_f32(bits as u16),
        PtxType::TF32 => f32::from_bits(bits & !0x1fff),
        _ => bf16_to_f32(bits as u16),
    })
}

//! `B` packed once, for any number of products.

use super::pack;
use super::panel::{KC, Panel, Panels, Part};
use super::tile::VECTORS;
use super::{Matrix, multiply, pieces};
use crate::alloc::scratch::Scratch;
use crate::error::Result;
use crate::ops::shape::check_matrix;
use crate::simd::InstructionSet;
use crate::simd::isa::{Isa, Kernel, dispatch};
use crate::simd::threads::Cpu;
use crate::tensor::Plane;

/// A `k × n` matrix in the order in which the tiles of an instruction set read it. Each panel has [`KC`] rows of all
/// columns, divided into strips of a tile's width. A strip is stored row by row.
pub(crate) struct Packed {
    isa: InstructionSet,
    k: usize,
    n: usize,
    /// The columns, rounded up to whole strips.
    padded: usize,
    values: Scratch,
}

impl Packed {
    /// Packs a matrix in `data` with any strides, within which it must stay.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn new(isa: InstructionSet, data: &[f32], b: Plane) -> Result<Self> {
        let isa = isa.or_best();
        let values = data.get(b.offset..b.end()).unwrap_or_default();
        let transposed = Matrix {
            values: values.as_ptr(),
            row: b.col_stride,
            col: b.row_stride,
        };
        // A plane beyond its data is none.
        let missing = values.is_empty() && b.rows.min(b.cols) > 0;
        let (k, n) = if missing { (0, 0) } else { (b.rows, b.cols) };
        dispatch(
            isa,
            Pack {
                isa,
                k,
                n,
                transposed,
            },
        )
    }

    /// The bytes that the packed values take.
    pub(crate) fn bytes(&self) -> usize {
        self.padded * self.k * size_of::<f32>()
    }

    /// `C = A · B` of row-major matrices: `m × k` values of `A`, `m × n` of `C`; else nothing is
    /// done.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no memory to pack `A`.
    pub(crate) fn multiply(&self, cpu: Cpu, a: &[f32], c: &mut [f32], m: usize) -> Result<()> {
        let (k, n) = (self.k, self.n);
        // Checked again because the kernels' pointers rely on it.
        check_matrix("a", [m, k], a.len(), " (m × k)")?;
        check_matrix("c", [m, n], c.len(), " (m × n)")?;
        if c.is_empty() {
            return Ok(());
        }
        if k == 0 {
            c.fill(0.0);
            return Ok(());
        }
        let shape = [m, k, n];
        let a = Matrix::new(a, [m, k], false);
        // SAFETY: the lengths are those of the shapes, and the strips are of this instruction
        // set.
        unsafe { multiply(self.isa, pieces(cpu, shape), a, Strips::of(self), shape, c) }
    }
}

/// Builds a [`Packed`] from a transposed matrix: its columns are the matrix's rows.
struct Pack {
    isa: InstructionSet,
    k: usize,
    n: usize,
    transposed: Matrix,
}

impl Kernel for Pack {
    type Output = Result<Packed>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Result<Packed> {
        let Pack { k, n, .. } = self;
        let width = VECTORS * I::LANES;
        // There may be any number of columns of no depth.
        let padded = n.div_ceil(width).wrapping_mul(width);
        let mut values = pack::room(padded, k)?;
        // Without columns there is nothing at any depth.
        for p in (0..k.min(k.saturating_mul(padded))).step_by(KC) {
            let depth = KC.min(k - p);
            let panel = &mut values[p * padded..];
            for col in (0..n).step_by(width) {
                let used = width.min(n - col);
                let widths = [used, used.next_multiple_of(I::LANES)];
                // SAFETY: columns and depths of the matrix.
                unsafe {
                    let strip = self.transposed.from(col, p);
                    pack::strip(isa, strip, widths, depth, &mut panel[col * depth..]);
                }
            }
        }
        Ok(Packed {
            isa: self.isa,
            k,
            n,
            padded,
            values,
        })
    }
}

/// The positions of the strips of a [`Packed`].
#[derive(Clone, Copy)]
struct Strips<'a> {
    values: &'a [f32],
    padded: usize,
}

impl<'a> Strips<'a> {
    fn of(packed: &'a Packed) -> Self {
        Self {
            values: &packed.values,
            padded: packed.padded,
        }
    }
}

impl Panels for Strips<'_> {
    // There is nothing to pack, so that a panel may have all columns. In WebAssembly, which cannot ask for what it is
    // about to add to, so many that few rows of `C` are still in the second-level cache for the next panel.
    const PANEL_COLS: usize = if cfg!(target_family = "wasm") {
        1024
    } else {
        usize::MAX / 2 + 1
    };
    type Room = ();

    #[inline(always)]
    fn room<I: Isa>(self, _: [usize; 3]) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    unsafe fn panel<'r, I: Isa>(self, _: I, part: Part, (): &'r mut ()) -> Panel<'r>
    where
        Self: 'r,
    {
        let start = part.p * self.padded + part.col * part.depth;
        Panel {
            b: Matrix::NONE,
            depth: part.depth,
            in_place: 0,
            packed: &self.values[start..],
        }
    }
}

//! Operands copied to strips, which the innermost loop reads from front to back.

use super::Matrix;
use super::tile::{Strip, VECTORS};
use crate::alloc::scratch::{LINE, Scratch};
use crate::error::Result;
use crate::simd::isa::{Isa, Kernel};

/// The prefetch distance within a row, in elements: rows are read one line each, too short for the
/// hardware prefetcher.
const AHEAD: usize = 4 * LINE;

/// Memory for `width × depth` packed values.
pub(super) fn room(width: usize, depth: usize) -> Result<Scratch> {
    Scratch::new(width.saturating_mul(depth))
}

/// Packs `used` rows of a matrix, `depth` values of each, as a strip of `width` rows. The rows after the used ones are
/// zero.
///
/// # Safety
/// The rows must be readable so far.
#[inline(always)]
pub(super) unsafe fn strip<I: Isa>(
    isa: I,
    matrix: Matrix,
    [used, width]: [usize; 2],
    depth: usize,
    packed: &mut [f32],
) -> Strip {
    let packed = &mut packed[..width * depth];
    let values = packed.as_ptr();
    isa.call(Fill {
        matrix,
        widths: [used, width],
        depth,
        packed,
    });
    Strip {
        values,
        across: 1,
        deep: width,
    }
}

/// Packs one strip. It is a separate function, so that its loops can use all registers.
///
/// The rows are readable so far as [`strip`] says.
struct Fill<'a> {
    matrix: Matrix,
    widths: [usize; 2],
    depth: usize,
    packed: &'a mut [f32],
}

impl Kernel for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let (matrix, depth, packed) = (self.matrix, self.depth, self.packed);
        let [used, width] = self.widths;
        // SAFETY: the caller of `strip` vouches for the rows.
        unsafe {
            if matrix.row == 1 {
                copy(isa, matrix, used, width, packed);
            } else {
                transpose(isa, matrix, used, [width, depth], packed);
            }
        }
    }
}

/// Packs a strip whose rows are adjacent in the matrix.
///
/// # Safety
/// As for [`strip`].
#[inline(always)]
unsafe fn copy<I: Isa>(isa: I, matrix: Matrix, used: usize, width: usize, packed: &mut [f32]) {
    for (p, packed) in packed.chunks_exact_mut(width).enumerate() {
        // SAFETY: depth `p` of `used` rows.
        let from = unsafe { std::slice::from_raw_parts(matrix.at(0, p), used) };
        isa.prefetch(from.as_ptr().wrapping_add(AHEAD));
        let mut vector = |at: usize| isa.store(isa.load(&from[at..]), &mut packed[at..]);
        match used.checked_sub(I::LANES) {
            // Most are so wide, and need no loop.
            Some(last) if last == (VECTORS - 1) * I::LANES => {
                (0..VECTORS).for_each(|j| vector(j * I::LANES));
            }
            // The last vector starts early enough to be a whole one.
            Some(last) => (0..used)
                .step_by(I::LANES)
                .for_each(|at| vector(at.min(last))),
            None => packed[..used].copy_from_slice(from),
        }
        if used < width {
            packed[used..].fill(0.0);
        }
    }
}

/// Packs a strip whose rows are at any stride.
///
/// # Safety
/// As for [`strip`].
#[inline(always)]
unsafe fn transpose<I: Isa>(
    isa: I,
    matrix: Matrix,
    used: usize,
    [width, depth]: [usize; 2],
    packed: &mut [f32],
) {
    if used < width {
        packed.fill(0.0);
    }
    // Four by four where rows are contiguous, the last four of them again where some are left.
    let squares = if matrix.col == 1 && used >= 4 {
        depth / 4 * 4
    } else {
        0
    };
    for i in (0..used).step_by(4) {
        for p in (0..squares).step_by(4) {
            let i = i.min(used - 4);
            let to = &mut packed[p * width + i..][..3 * width + 4];
            // One line of the next strip, a row of four after the other; there may be none.
            let next = (i + width + p / 4 % 4)
                .wrapping_mul(matrix.row)
                .wrapping_add(p / LINE * LINE);
            isa.prefetch(matrix.values.wrapping_add(next));
            // SAFETY: four rows and depths of the matrix, and as many at a stride of `width`.
            unsafe { isa.transpose4(matrix.at(i, p), matrix.row, to.as_mut_ptr(), width) };
        }
    }
    for i in 0..used {
        for p in squares..depth {
            // SAFETY: row `i` at depth `p`.
            packed[p * width + i] = unsafe { *matrix.at(i, p) };
        }
    }
}

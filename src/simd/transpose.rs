//! Transposition, in blocks that fill whole cache lines.

use super::InstructionSet;
use super::isa::{Isa, Kernel, dispatch};

/// The number of rows, and of columns, of a block: one cache line of `f32` each way.
const BLOCK: usize = 16;

/// Transposes a row-major `rows × cols` matrix.
pub(super) fn transpose(isa: InstructionSet, x: &[f32], y: &mut [f32], rows: usize, cols: usize) {
    // Checked again because the kernel's pointers rely on it.
    if x.len() != y.len() || rows.checked_mul(cols) != Some(x.len()) {
        return;
    }
    if rows <= 1 || cols <= 1 {
        y.copy_from_slice(x);
    } else {
        dispatch(isa, Transpose { x, y, rows, cols });
    }
}

/// `x` and `y` have `rows × cols` values each.
pub(super) struct Transpose<'a> {
    pub(super) x: &'a [f32],
    pub(super) y: &'a mut [f32],
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl Kernel for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let [rows, cols] = [self.rows, self.cols].map(|side| side.div_ceil(BLOCK));
        for place in 0..rows * cols {
            // Along the longer side, so that one of the matrices is gone through in order.
            let (row, col) = if self.rows > self.cols {
                (place % rows, place / rows)
            } else {
                (place / cols, place % cols)
            };
            self.block(isa, row * BLOCK, col * BLOCK);
        }
    }
}

impl Transpose<'_> {
    #[inline(always)]
    fn block<I: Isa>(&mut self, isa: I, row: usize, col: usize) {
        let row_end = self.rows.min(row + BLOCK);
        let col_end = self.cols.min(col + BLOCK);
        let whole_rows = row + (row_end - row) / 4 * 4;
        let whole_cols = col + (col_end - col) / 4 * 4;
        for j in (col..whole_cols).step_by(4) {
            for i in (row..whole_rows).step_by(4) {
                // SAFETY: four rows and columns from (i, j) lie within the `rows × cols` values
                // of `x`, and transposed within those of `y`.
                unsafe {
                    let from = self.x.as_ptr().add(i * self.cols + j);
                    let to = self.y.as_mut_ptr().add(j * self.rows + i);
                    isa.transpose4(from, self.cols, to, self.rows);
                }
            }
        }
        self.scalar(row..whole_rows, whole_cols..col_end);
        self.scalar(whole_rows..row_end, col..col_end);
    }

    #[inline(always)]
    fn scalar(&mut self, rows: std::ops::Range<usize>, cols: std::ops::Range<usize>) {
        for i in rows {
            for j in cols.clone() {
                self.y[j * self.rows + i] = self.x[i * self.cols + j];
            }
        }
    }
}

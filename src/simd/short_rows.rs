//! Short rows, processed side by side: lane `i` of a vector holds an element of row `i`. Along a
//! short row most lanes would be empty, and the work done once a row would take longer than the
//! work on its elements.

use super::InstructionSet;
use super::isa::{Isa, Kernel, MAX_LANES, dispatch};
use super::transpose::transpose;

/// The length of the longest rows that are faster side by side. With four lanes, rows of 128 take a quarter longer.
const LONGEST: usize = if cfg!(target_arch = "wasm32") {
    64
} else {
    128
};

/// The number of columns that take as long as the work that is saved for a row.
const COLS_PER_ROW: usize = 12;

/// Returns whether `rows` rows of `cols` elements take less time side by side. A thread gets hundreds of such short
/// rows, so the answer holds for each thread.
pub(super) fn gain_side_by_side(rows: usize, cols: usize) -> bool {
    (1..=LONGEST).contains(&cols) && rows > cols.div_ceil(COLS_PER_ROW)
}

/// The function of rows stored as columns: element `j` of the row in lane `i` is at `j · LANES +
/// i`.
pub(super) trait OfColumns: Copy {
    fn eval<I: Isa>(self, isa: I, x: &[f32], y: &mut [f32]);
}

/// A function of each row of `cols` values, which [`gain_side_by_side`].
pub(super) fn short_rows<F: OfColumns>(
    isa: InstructionSet,
    f: F,
    x: &[f32],
    cols: usize,
    y: &mut [f32],
) {
    dispatch(isa, ShortRows { isa, f, x, y, cols });
}

struct ShortRows<'a, F> {
    /// For transpositions, which are separate functions, because inlined they would be most of the kernel's code.
    isa: InstructionSet,
    f: F,
    x: &'a [f32],
    y: &'a mut [f32],
    cols: usize,
}

impl<F: OfColumns> Kernel for ShortRows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let cols = self.cols;
        let len = I::LANES * cols;
        let mut memory = [[0.0; MAX_LANES * LONGEST]; 2];
        let [x_columns, y_columns] = memory.each_mut().map(|memory| &mut memory[..len]);
        for (x, y) in self.x.chunks(len).zip(self.y.chunks_mut(len)) {
            if x.len() == len {
                turn(self.isa, x, x_columns, I::LANES, cols);
            } else {
                // As many rows as there are lanes, the last ones of zeros.
                y_columns.fill(0.0);
                y_columns[..x.len()].copy_from_slice(x);
                turn(self.isa, y_columns, x_columns, I::LANES, cols);
            }
            self.f.eval(isa, x_columns, y_columns);
            if y.len() == len {
                turn(self.isa, y_columns, y, cols, I::LANES);
            } else {
                turn(self.isa, y_columns, x_columns, cols, I::LANES);
                y.copy_from_slice(&x_columns[..y.len()]);
            }
        }
    }
}

/// Transposes `rows × cols` values.
fn turn(isa: InstructionSet, x: &[f32], y: &mut [f32], rows: usize, cols: usize) {
    if rows.min(cols) >= 4 {
        return transpose(isa, x, y, rows, cols);
    }
    for (j, y) in y.chunks_exact_mut(rows).enumerate() {
        for (y, &x) in y.iter_mut().zip(x[j..].iter().step_by(cols)) {
            *y = x;
        }
    }
}

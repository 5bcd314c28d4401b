//! Two-dimensional convolution, directly: no copy of the input in another layout.
//!
//! Where the columns' stride is 1, outputs whose windows lie inside the input's columns are
//! computed in vectors along the row; the others one by one.

use super::InstructionSet;
use super::isa::{Isa, Kernel, dispatch};
use crate::ops::Conv2d;
use std::ops::Range;

/// Vectors of outputs computed side by side.
const VECTORS: usize = 4;

/// Products that one sum gathers before it is added to the total, which bounds the rounding
/// error of large kernels.
const CHAIN: usize = 32;

/// The convolution of `input` with `kernel`, all row-major.
pub(super) fn convolve(
    isa: InstructionSet,
    options: &Conv2d,
    input: &[f32],
    kernel: &[f32],
    out: &mut [f32],
) {
    let (rows, cols) = options.output_shape();
    if out.is_empty() || rows.checked_mul(cols) != Some(out.len()) {
        return;
    }
    let convolution = Convolution {
        options,
        input,
        kernel,
        padding: options.padding_before(),
        out_cols: cols,
    };
    dispatch(isa, Run(convolution, out));
}

struct Run<'a>(Convolution<'a>, &'a mut [f32]);

impl Kernel for Run<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Run(convolution, out) = self;
        let inside = convolution.columns_inside();
        for (row, out) in out.chunks_exact_mut(convolution.out_cols).enumerate() {
            let vectors = if inside.len() >= I::LANES {
                inside.clone()
            } else {
                0..0
            };
            convolution.row(isa, row, vectors.clone(), out);
            convolution.one_by_one(row, 0..vectors.start, out);
            convolution.one_by_one(row, vectors.end..convolution.out_cols, out);
        }
    }
}

struct Convolution<'a> {
    options: &'a Conv2d,
    input: &'a [f32],
    kernel: &'a [f32],
    padding: (usize, usize),
    out_cols: usize,
}

impl<'a> Convolution<'a> {
    /// The output columns whose windows lie inside the input, at stride 1.
    #[inline(always)]
    fn columns_inside(&self) -> Range<usize> {
        let Conv2d {
            input_cols,
            kernel_cols,
            stride_cols,
            ..
        } = *self.options;
        if stride_cols != 1 || kernel_cols > input_cols {
            return 0..0;
        }
        let start = self.padding.1;
        start..self.out_cols.min(start + input_cols - kernel_cols + 1)
    }

    /// The rows of the kernel that meet the input at an output row, each with the input's row.
    #[inline(always)]
    fn rows(&self, row: usize) -> impl Iterator<Item = (&'a [f32], &'a [f32])> {
        let options = self.options;
        let (input, kernel) = (self.input, self.kernel);
        // The window's first row, counted from the first row of padding.
        let first = row * options.stride_rows;
        let padding = self.padding.0;
        let start = padding.saturating_sub(first);
        let end = (options.input_rows + padding)
            .saturating_sub(first)
            .min(options.kernel_rows);
        (start..end).map(move |kernel_row| {
            let input_row = first + kernel_row - padding;
            (
                &kernel[kernel_row * options.kernel_cols..][..options.kernel_cols],
                &input[input_row * options.input_cols..][..options.input_cols],
            )
        })
    }

    /// One row of outputs at `cols`, in vectors; there are at least `LANES` of them.
    #[inline(always)]
    fn row<I: Isa>(&self, isa: I, row: usize, cols: Range<usize>, out: &mut [f32]) {
        let mut col = cols.start;
        while cols.end - col >= VECTORS * I::LANES {
            self.vectors::<I, VECTORS>(isa, row, col, out);
            col += VECTORS * I::LANES;
        }
        while cols.end - col >= I::LANES {
            self.vectors::<I, 1>(isa, row, col, out);
            col += I::LANES;
        }
        if col < cols.end {
            // Some columns a second time, to end in a whole vector.
            self.vectors::<I, 1>(isa, row, cols.end - I::LANES, out);
        }
    }

    /// `N` vectors of outputs from (`row`, `col`) on, whose windows lie inside the input.
    #[inline(always)]
    fn vectors<I: Isa, const N: usize>(&self, isa: I, row: usize, col: usize, out: &mut [f32]) {
        let mut totals = [isa.splat(0.0); N];
        for (weights, input) in self.rows(row) {
            let input = &input[col - self.padding.1..];
            for (index, weights) in weights.chunks(CHAIN).enumerate() {
                let input = &input[index * CHAIN..];
                let mut sums = [isa.splat(0.0); N];
                for (&weight, input) in weights.iter().zip(input.windows(N * I::LANES)) {
                    let weight = isa.splat(weight);
                    for (i, sum) in sums.iter_mut().enumerate() {
                        *sum = isa.mul_add(weight, isa.load(&input[i * I::LANES..]), *sum);
                    }
                }
                for (total, sum) in totals.iter_mut().zip(sums) {
                    *total = isa.add(*total, sum);
                }
            }
        }
        for (i, total) in totals.into_iter().enumerate() {
            isa.store(total, &mut out[col + i * I::LANES..]);
        }
    }

    /// One row of outputs at `cols`, with any stride and padding.
    fn one_by_one(&self, row: usize, cols: Range<usize>, out: &mut [f32]) {
        for col in cols {
            let first = col * self.options.stride_cols;
            let skipped = self.padding.1.saturating_sub(first);
            let mut total = 0.0;
            for (weights, input) in self.rows(row) {
                let weights = weights.iter().skip(skipped);
                let input = input.iter().skip((first + skipped) - self.padding.1);
                let products = weights
                    .zip(input)
                    .map(|(&w, &x)| f64::from(w) * f64::from(x));
                total += products.sum::<f64>();
            }
            out[col] = total as f32;
        }
    }
}

//! Two-dimensional convolution, directly and in vectors along the output's rows.
//!
//! Windows that advance by one column inside the input read it as it is. For all others a band
//! of rows at a time is first laid out with its padding, and one phase of the stride after the
//! other, so that neighbouring outputs again read neighbouring values.

mod layout;

use super::InstructionSet;
use super::isa::{Isa, Kernel, dispatch};
use crate::error::Result;
use crate::ops::Conv2d;
use layout::{Layout, Source};

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
) -> Result<()> {
    let (rows, cols) = options.output_shape();
    if out.is_empty() || rows.checked_mul(cols) != Some(out.len()) {
        return Ok(());
    }
    dispatch(
        isa,
        Convolve {
            options,
            input,
            kernel,
            out,
            out_cols: cols,
        },
    )
}

struct Convolve<'a> {
    options: &'a Conv2d,
    input: &'a [f32],
    kernel: &'a [f32],
    out: &'a mut [f32],
    out_cols: usize,
}

impl Kernel for Convolve<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Result<()> {
        let mut layout = Layout::new(self.options, self.out_cols, I::LANES)?;
        let mut row = 0;
        for out in self.out.chunks_mut(layout::BAND * self.out_cols) {
            let source = layout.band(self.input, row);
            for out in out.chunks_exact_mut(self.out_cols) {
                convolve_row(isa, &source, self.kernel, row, out);
                row += 1;
            }
        }
        Ok(())
    }
}

/// One row of outputs.
#[inline(always)]
fn convolve_row<I: Isa>(isa: I, source: &Source, kernel: &[f32], row: usize, out: &mut [f32]) {
    let mut col = 0;
    while out.len() - col >= VECTORS * I::LANES {
        let sums = sums::<I, VECTORS>(isa, source, kernel, row, col);
        for (i, sum) in sums.into_iter().enumerate() {
            isa.store(sum, &mut out[col + i * I::LANES..]);
        }
        col += VECTORS * I::LANES;
    }
    while col < out.len() {
        // The last vector starts early enough to be a whole one, where there is one.
        col = col.min(out.len().saturating_sub(I::LANES));
        let [sum] = sums::<I, 1>(isa, source, kernel, row, col);
        isa.store_first(sum, &mut out[col..]);
        col += I::LANES;
    }
}

/// `N` vectors of outputs from (`row`, `col`) on.
#[inline(always)]
fn sums<I: Isa, const N: usize>(
    isa: I,
    source: &Source,
    kernel: &[f32],
    row: usize,
    col: usize,
) -> [I::F32; N] {
    let mut totals = [isa.splat(0.0); N];
    let mut sums = totals;
    let mut gathered = 0;
    for (weights, input) in source.rows(kernel, row) {
        for (phase, input) in input.chunks_exact(source.phase_len).enumerate() {
            let count = (weights.len() - phase).div_ceil(source.stride());
            for start in (0..count).step_by(CHAIN) {
                let end = count.min(start + CHAIN);
                if gathered + (end - start) > CHAIN {
                    for (total, sum) in totals.iter_mut().zip(&mut sums) {
                        *total = isa.add(*total, *sum);
                        *sum = isa.splat(0.0);
                    }
                    gathered = 0;
                }
                gathered += end - start;
                for j in start..end {
                    let weight = isa.splat(weights[phase + j * source.stride()]);
                    let input = &input[col + j..][..N * I::LANES];
                    for (i, sum) in sums.iter_mut().enumerate() {
                        *sum = isa.mul_add(weight, isa.load(&input[i * I::LANES..]), *sum);
                    }
                }
            }
        }
    }
    for (total, sum) in totals.iter_mut().zip(sums) {
        *total = isa.add(*total, sum);
    }
    totals
}

//! Two-dimensional convolution, directly and in vectors along the output's rows.
//!
//! Windows that advance by one column inside the input read it as it is. For all others a band
//! of rows at a time is first laid out with its padding, and one phase of the stride after the
//! other, so that neighbouring outputs again read neighbouring values.

mod layout;

use super::InstructionSet;
use super::isa::{Isa, Kernel, dispatch};
use super::threads;
use crate::error::Result;
use crate::ops::shape::check_matrix;
use crate::ops::{Conv2d, Padding};
use crate::runtime::NATIVE;
use layout::{Layout, Rows, Source};
use std::ops::Range;

/// The number of vectors of outputs that are computed side by side. Two multiply-adds per cycle need as many
/// accumulators to hide their latency.
const MANY: usize = 8;
/// The number of such vectors for short rows.
const SOME: usize = 4;

/// Whether all kernels have loops for `MANY` and for `SOME`. The download has no room for them: there the usual
/// kernels have one for `MANY`, and all others and short rows share one for `SOME`.
const ALL_LOOPS: bool = cfg!(not(target_family = "wasm"));

/// The number of products that one sum gathers, or sums of a row of the kernel, before it is added to the total, which
/// bounds the rounding error of large kernels.
const CHAIN: usize = 32;

/// The convolution of `input` with `kernel`, all row-major.
pub(super) fn convolve(
    isa: InstructionSet,
    pieces: usize,
    options: &Conv2d,
    input: &[f32],
    kernel: &[f32],
    out: &mut [f32],
) -> Result<()> {
    let options = &if NATIVE {
        along_rows(*options)
    } else {
        *options
    };
    let (rows, cols) = options.output_shape();
    check_matrix("result", [rows, cols], out.len(), "")?;
    if out.is_empty() {
        return Ok(());
    }
    let bands = rows.div_ceil(layout::BAND).div_ceil(pieces);
    let rows = bands * layout::BAND;
    threads::share(
        pieces,
        out.chunks_mut(rows * cols).enumerate(),
        |(piece, out)| {
            let convolve = Convolve {
                options,
                input,
                kernel,
                out,
                first_row: piece * rows,
                out_cols: cols,
            };
            dispatch(isa, convolve)
        },
    )?;
    multiply_padding(options, kernel, cols, out);
    Ok(())
}

/// Treats a single column and its kernel as rows: the elements are stored alike, and vectors of
/// outputs are full.
fn along_rows(options: Conv2d) -> Conv2d {
    if options.input_cols.max(options.kernel_cols) != 1 {
        return options;
    }
    Conv2d {
        input_rows: options.input_cols,
        input_cols: options.input_rows,
        kernel_rows: options.kernel_cols,
        kernel_cols: options.kernel_rows,
        stride_rows: options.stride_cols,
        stride_cols: options.stride_rows,
        ..options
    }
}

/// Writes NaN where an infinite or NaN weight meets the zero padding. The convolution itself skips
/// rows and columns of padding.
fn multiply_padding(options: &Conv2d, kernel: &[f32], cols: usize, out: &mut [f32]) {
    if options.padding == Padding::Valid || kernel.iter().all(|weight| weight.is_finite()) {
        return;
    }
    let (top, left) = options.padding_before();
    for (row, out) in out.chunks_exact_mut(cols).enumerate() {
        for (col, value) in out.iter_mut().enumerate() {
            for (tap, weight) in kernel.iter().enumerate() {
                // Before the input, numbers wrap around to some beyond its end.
                let row = row * options.stride_rows + tap / options.kernel_cols;
                let col = col * options.stride_cols + tap % options.kernel_cols;
                if row.wrapping_sub(top) >= options.input_rows
                    || col.wrapping_sub(left) >= options.input_cols
                {
                    *value += 0.0 * weight;
                }
            }
        }
    }
}

struct Convolve<'a> {
    options: &'a Conv2d,
    input: &'a [f32],
    kernel: &'a [f32],
    /// Rows of the result from `first_row` on.
    out: &'a mut [f32],
    first_row: usize,
    out_cols: usize,
}

impl Kernel for Convolve<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Result<()> {
        let mut layout = Layout::new(self.options, self.out_cols, I::LANES)?;
        let mut row = self.first_row;
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

/// One row of outputs. Kernels of the usual widths have specialised loops.
#[inline(always)]
fn convolve_row<I: Isa>(isa: I, source: &Source, kernel: &[f32], row: usize, out: &mut [f32]) {
    let rows = source.rows(kernel, row);
    let (many, some, cols) = (MANY * I::LANES, SOME * I::LANES, out.len());
    let mut done = 0;
    if cols >= many {
        let rest = cols % many;
        let end = if ALL_LOOPS && rest <= some {
            cols - rest
        } else {
            cols
        };
        done = blocks::<I, MANY>(isa, source, &rows, out, 0..end);
    }
    if cols >= some {
        blocks::<I, SOME>(isa, source, &rows, out, done..cols);
        return;
    }
    for col in (0..cols).step_by(I::LANES) {
        // The last vector starts early enough to be a whole one, where there is one.
        let col = col.min(cols.saturating_sub(I::LANES));
        let [sum] = sums(isa, source, &rows, col);
        isa.store_first(sum, &mut out[col..]);
    }
}

/// Computes outputs of some columns in blocks of `N` vectors; at least one block must fit before their
/// end. Returns the end of the computed columns: the start if there is no loop for `N` vectors.
#[inline(always)]
fn blocks<'a, I: Isa, const N: usize>(
    isa: I,
    source: &Source,
    rows: &impl Rows<'a>,
    out: &mut [f32],
    cols: Range<usize>,
) -> usize {
    let Range { start, end } = cols;
    let usual = (ALL_LOOPS || N == MANY) && source.is_low();
    match source.taps() {
        3 if usual => narrow::<I, N, 3>(isa, rows, out, cols),
        5 if usual => narrow::<I, N, 5>(isa, rows, out, cols),
        7 if usual => narrow::<I, N, 7>(isa, rows, out, cols),
        _ if ALL_LOOPS || N == SOME => {
            each_block(isa, out, cols, |col| sums::<I, N>(isa, source, rows, col));
        }
        _ => return start,
    }
    end
}

/// Blocks by a kernel of `WIDTH` columns and at most `CHAIN` rows. Each row's products are added up
/// by themselves, so that none waits for those of the row before.
#[inline(always)]
fn narrow<'a, I: Isa, const N: usize, const WIDTH: usize>(
    isa: I,
    rows: &impl Rows<'a>,
    out: &mut [f32],
    cols: Range<usize>,
) {
    each_block(isa, out, cols, |col| {
        let mut totals = [isa.splat(0.0); N];
        for (weights, input) in rows.clone() {
            let sums: [I::F32; N] = products(isa, weights, WIDTH, 1, &input[col..], None);
            for (total, sum) in totals.iter_mut().zip(sums) {
                *total = isa.add(*total, sum);
            }
        }
        totals
    });
}

/// Writes blocks of `N` vectors. `sums` returns the vectors from a column on.
#[inline(always)]
fn each_block<I: Isa, const N: usize>(
    isa: I,
    out: &mut [f32],
    cols: Range<usize>,
    sums: impl Fn(usize) -> [I::F32; N],
) {
    let len = N * I::LANES;
    for col in cols.clone().step_by(len) {
        // The last block starts early enough to be a whole one.
        let col = col.min(cols.end - len);
        let out = &mut out[col..col + len];
        for (sum, out) in sums(col).into_iter().zip(out.chunks_exact_mut(I::LANES)) {
            isa.store(sum, out);
        }
    }
}

/// `N` vectors of outputs from column `col` on.
#[inline(always)]
fn sums<'a, I: Isa, const N: usize>(
    isa: I,
    source: &Source,
    rows: &impl Rows<'a>,
    col: usize,
) -> [I::F32; N] {
    let mut sums = Sums {
        totals: [isa.splat(0.0); N],
        chain: [isa.splat(0.0); N],
        gathered: 0,
    };
    for (weights, input) in rows.clone() {
        // A stride of 1 that is known: a third less in browsers, whose download has no room for it
        // where outputs are few.
        let has_room = N > 1 || NATIVE;
        if has_room && source.stride() == 1 {
            sums.add_products(isa, weights, 1, &input[col..]);
            continue;
        }
        for phase in 0..source.phases {
            let input = &input[phase * source.phase_len + col..];
            sums.add_products(isa, &weights[phase..], source.stride(), input);
        }
    }
    sums.next_chain(isa);
    sums.totals
}

/// Sums of products, gathered in chains.
struct Sums<I: Isa, const N: usize> {
    totals: [I::F32; N],
    chain: [I::F32; N],
    /// The number of products in the chain.
    gathered: usize,
}

impl<I: Isa, const N: usize> Sums<I, N> {
    #[inline(always)]
    fn next_chain(&mut self, isa: I) {
        for (total, sum) in self.totals.iter_mut().zip(&mut self.chain) {
            *total = isa.add(*total, *sum);
            *sum = isa.splat(0.0);
        }
        self.gathered = 0;
    }

    /// Makes room for `count` more products in the chain, at most its full length.
    #[inline(always)]
    fn gather(&mut self, isa: I, count: usize) {
        if self.gathered + count > CHAIN {
            self.next_chain(isa);
        }
        self.gathered += count;
    }

    /// Adds the products of every `stride`-th weight with the vectors that start at successive
    /// values of the input.
    #[inline(always)]
    fn add_products(&mut self, isa: I, weights: &[f32], stride: usize, input: &[f32]) {
        let (mut weights, mut input) = (weights, input);
        while !weights.is_empty() {
            let (first, rest) = weights.split_at(weights.len().min(CHAIN.saturating_mul(stride)));
            let count = if stride == 1 {
                first.len()
            } else {
                first.len().div_ceil(stride)
            };
            self.gather(isa, count);
            self.chain = products(isa, first, count, stride, input, Some(self.chain));
            (weights, input) = (rest, &input[count..]);
        }
    }
}

/// Adds `count` products a lane, at least one, to `sums` if there are some.
#[inline(always)]
fn products<I: Isa, const N: usize>(
    isa: I,
    weights: &[f32],
    count: usize,
    stride: usize,
    input: &[f32],
    sums: Option<[I::F32; N]>,
) -> [I::F32; N] {
    assert!((count - 1) * stride < weights.len() && count - 1 + N * I::LANES <= input.len());
    let is_first = |j: usize| j == 0 && sums.is_none();
    let mut sums = sums.unwrap_or([isa.splat(0.0); N]);
    for j in 0..count {
        // SAFETY: `j` is below `count`, so both lie within the slices by the assertion.
        let (weight, input) = unsafe { (*weights.as_ptr().add(j * stride), input.as_ptr().add(j)) };
        let weight = isa.splat(weight);
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the last vector ends at `count − 1 + N · LANES` at most.
            let x = unsafe { isa.load_ptr(input.add(i * I::LANES)) };
            *sum = if is_first(j) {
                isa.mul(weight, x)
            } else {
                isa.mul_add(weight, x, *sum)
            };
        }
    }
    sums
}

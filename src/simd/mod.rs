//! The SIMD back-end: every operation on the CPU's vector instructions.
//!
//! Kernels are generic over the instruction set (`isa`) and written once; the best instruction
//! set is found at run time natively and at compile time in WebAssembly. Elementary functions
//! (`math`) hold the accuracy that the op table states, on every instruction set.
//!
//! The files:
//!
//! - `isa` has the trait that each instruction set implements, `math` the elementary functions.
//! - The others are kernels but for three: `stream` runs operations piece by piece on arrays outside of WebAssembly's memory,
//!   `threads` divides large operations, `jit` generates WebAssembly for expressions.

// Target features reach a kernel only through inlining: see `isa`.
#![allow(clippy::inline_always)]

mod attend;
mod attention;
mod bytes;
mod cached_rows;
mod convolve;
mod elementwise;
mod fft;
mod functions;
mod fused_loop;
mod gather;
mod half;
mod isa;
#[cfg(target_arch = "wasm32")]
pub(crate) mod jit;
mod layer;
mod math;
mod matmul;
mod norm;
mod ranking;
mod rearrange;
mod reduce;
mod reduce_axis;
mod rope;
mod scan;
mod short_rows;
mod softmax;
mod sort;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
mod threads;
mod tiles;
mod transpose;
mod values;

pub(crate) use crate::instruction_set::InstructionSet;
pub(crate) use elementwise::repeat;
pub(crate) use fused_loop::{Other, Swept, is_swept, sweep};
pub(crate) use matmul::multiply_add;
pub(crate) use matmul::multiply_words;
pub(crate) use matmul::{Packed, multiply_planes};
#[cfg(all(feature = "js", target_arch = "wasm32"))]
pub(crate) use threads::pieces_among;
pub(crate) use threads::{Cpu, share_out};
pub(crate) use tiles::Fold;
pub(crate) use values::map_values;
#[cfg(feature = "llm-core")]
pub(crate) use {
    attention::{AttentionShape, attention},
    cached_rows::pack_row,
    matmul::{BlockMatrix, multiply_blocks, multiply_rows},
    rope::rotate,
};

use crate::error::Result;
use crate::ops::{AxisFold, Matmul, Op};
use elementwise::add_bias;
use functions::has_function;
use norm::norm;
pub(crate) use reduce::argmax;
use reduce::{dot, fold, mean, sum};
pub(crate) use softmax::softmax;
use softmax::softmax_rows;

/// Runs an operation whose lengths and parameters were validated: `out.len()` is
/// [`crate::ops::shape::output_len`] of the inputs.
///
/// An instruction set that is not available is replaced by the best one.
///
/// # Errors
/// `OutOfMemory` where there is no memory for packed matrices and padded rows.
pub(crate) fn execute(cpu: Cpu, op: &Op, inputs: &[&[f32]], out: &mut [f32]) -> Result<()> {
    let pieces = cpu.pieces(op, inputs);
    match row_len(op) {
        Some(row) => by_rows(pieces, row.max(1), inputs, out, &|inputs, out| {
            execute_in_pieces(cpu, 1, op, inputs, out)
        }),
        None => execute_in_pieces(cpu, pieces, op, inputs, out),
    }
}

/// Runs an elementwise operation as [`execute`] does. Who needs no others saves their kernels in a download.
#[cfg(feature = "llm-core")]
pub(crate) fn execute_elementwise(
    cpu: Cpu,
    op: &Op,
    inputs: &[&[f32]],
    out: &mut [f32],
) -> Result<()> {
    by_rows(cpu.pieces(op, inputs), 1, inputs, out, &|inputs, out| {
        elementwise(cpu.isa, op, inputs, out);
        Ok(())
    })
}

/// Normalises rows as long as the gain, as [`execute`] does for [`Op::LayerNorm`] with a bias, and for [`Op::RmsNorm`]
/// without one.
#[cfg(feature = "llm-core")]
pub(crate) fn normalise(
    cpu: Cpu,
    x: &[f32],
    (gain, bias, epsilon): (&[f32], Option<&[f32]>, f32),
    out: &mut [f32],
) -> Result<()> {
    let (rows, cols) = (x.len() / gain.len(), gain.len());
    let op = Op::RmsNorm {
        rows,
        cols,
        epsilon,
    };
    let inputs = [x, gain];
    by_rows(
        cpu.pieces(&op, &inputs),
        cols,
        &inputs,
        out,
        &|inputs, out| {
            norm(cpu.isa, bias, epsilon, [inputs[0], inputs[1]], out);
            Ok(())
        },
    )
}

/// Runs an operation on inputs, and writes its result.
type Run<'a> = dyn Fn(&[&[f32]], &mut [f32]) -> Result<()> + Sync + 'a;

/// Runs an operation on pieces of whole rows, in threads. An input that is shorter than the result is shared by all rows.
fn by_rows(
    pieces: usize,
    row: usize,
    inputs: &[&[f32]],
    out: &mut [f32],
    run: &Run<'_>,
) -> Result<()> {
    if pieces <= 1 {
        return run(inputs, out);
    }
    let whole = out.len();
    share_out(pieces, row, out, |at, out| {
        let inputs = inputs.iter().map(|input| {
            let by_row = input.len() == whole;
            if by_row {
                &input[at..at + out.len()]
            } else {
                input
            }
        });
        let inputs: Vec<&[f32]> = inputs.collect();
        run(&inputs, out)
    })
}

/// Returns the length of the rows that an operation computes one by one; `None` if it does not work by rows.
fn row_len(op: &Op) -> Option<usize> {
    if op.is_elementwise() {
        return Some(1);
    }
    op.by_rows().map(|[_, cols]| cols)
}

fn execute_in_pieces(
    cpu: Cpu,
    pieces: usize,
    op: &Op,
    inputs: &[&[f32]],
    out: &mut [f32],
) -> Result<()> {
    let isa = cpu.isa;
    let x = inputs.first().copied().unwrap_or_default();
    let b = inputs.get(1).copied().unwrap_or_default();
    match *op {
        Op::BiasAdd { .. } => add_bias(isa, x, b, out),
        Op::Softmax => softmax(isa, false, x, x.len(), out),
        Op::LogSoftmax => softmax(isa, true, x, x.len(), out),
        Op::SoftmaxRows { cols, .. } => softmax_rows(isa, false, x, cols, out),
        Op::LogSoftmaxRows { cols, .. } => softmax_rows(isa, true, x, cols, out),
        Op::LayerNorm { epsilon, .. } => norm(isa, Some(inputs[2]), epsilon, [x, b], out),
        Op::RmsNorm { epsilon, .. } => norm(isa, None, epsilon, [x, b], out),
        Op::Matmul { m, k, n } => {
            return matmul::matmul(isa, pieces, &Matmul::new(m, k, n), x, b, out);
        }
        Op::MatmulWith { options } => return matmul::matmul(isa, pieces, &options, x, b, out),
        Op::Transpose { rows, cols } => transpose::transpose(isa, x, out, rows, cols),
        Op::Rearrange { ref options } => return rearrange::rearrange(pieces, options, x, out),
        Op::ReduceAxis { ref options } => {
            return reduce_axis::reduce_axis(isa, pieces, options, x, out);
        }
        Op::UnpackBytes { stride } => bytes::unpack(stride, x, out),
        Op::PackBytes { stride } => bytes::pack(stride, x, out),
        Op::ConcatRows { a_cols, b_cols, .. } => {
            return rearrange::concat_rows(pieces, [x, b], [a_cols, b_cols], out);
        }
        Op::GatherRows { rows, cols } => {
            return gather::gather_rows(pieces, [x, b], [rows, cols], out);
        }
        Op::ScatterRows { rows, cols } => {
            return gather::scatter_rows(pieces, [x, b], [rows, cols], out);
        }
        Op::Attention { ref options } => {
            let cpu = Cpu {
                isa,
                threads: pieces,
            };
            return attend::attend(cpu, options, [x, b, inputs[2]], out);
        }
        Op::Rope { ref options } => return rope::rope(pieces, options, x, out),
        Op::TakeAlongRows { cols, k, .. } => {
            return gather::take_along_rows(pieces, [x, b], [cols, k], out);
        }
        Op::ArgmaxRows { cols, .. } => {
            return reduce_axis::reduce_rows(isa, pieces, AxisFold::Argmax, x, cols, out);
        }
        Op::TopKRows { cols, k, .. } => return ranking::top_k_rows(isa, pieces, x, [cols, k], out),
        Op::CumsumRows { cols, .. } => scan::scan_rows(false, x, cols, out),
        Op::CumprodRows { cols, .. } => scan::scan_rows(true, x, cols, out),
        Op::SortRows { cols, .. } => return sort::sort_rows(x, cols, false, out),
        Op::ArgsortRows { cols, .. } => return sort::sort_rows(x, cols, true, out),
        Op::FftRows { len, .. } => return fft::fft_rows(isa, x, len, out),
        Op::Convolve2d { options } => return convolve::convolve(isa, pieces, &options, x, b, out),
        Op::ConvolveLayer { options } => {
            return layer::convolve_layer(isa, pieces, &options, [x, b], out);
        }
        Op::Dot => write(out, dot(isa, x, b)),
        Op::Sum => write(out, sum(isa, x)),
        Op::Max => write(out, fold(isa, functions::Maximum, x)),
        Op::Min => write(out, fold(isa, functions::Minimum, x)),
        Op::Mean => write(out, mean(isa, x)),
        Op::Argmax => write(out, argmax(isa, x) as f32),
        // These two divide their own work.
        Op::MatmulCached(ref call) => return matmul::multiply_cached(cpu, call, x, out),
        Op::CustomReduce(ref call) => return call.run((isa, cpu.threads), x, out),
        Op::Custom(ref call) => call.run(isa, inputs, out),
        has_function!() => elementwise::run(isa, op, inputs, out),
    }
    Ok(())
}

/// Runs an operation that [`Op::is_elementwise`].
pub(crate) fn elementwise(isa: InstructionSet, op: &Op, inputs: &[&[f32]], out: &mut [f32]) {
    if let Op::Custom(call) = op {
        return call.run(isa, inputs, out);
    }
    elementwise::run(isa, op, inputs, out);
}

fn write(out: &mut [f32], value: f32) {
    if let Some(first) = out.first_mut() {
        *first = value;
    }
}

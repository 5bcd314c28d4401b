//! Lowering of operations to dispatches: the kernel, the number of workgroups and the parameters.

use super::axes;
use super::fused::FusedCode;
use super::kernels::{self, Kernel};
use super::recorder::{GpuBuffer, Recorder};
use super::{row_ops, row_steps};
use crate::error::{Error, Result};
use crate::ops::{Attention, Matmul, Op, Rearrange, Rope};

/// The number of invocations of a workgroup, for every kernel with a fixed size of workgroups.
pub(super) const WORKGROUP: usize = 256;
/// The number of vectors of four values that a workgroup of the elementwise kernel computes.
const VECTORS_A_WORKGROUP: usize = 2 * WORKGROUP;
/// The largest number of workgroups of a reduction's first dispatch, so that one workgroup can
/// reduce the rest. Software adapters, whose workgroups have four invocations and run one after the
/// other on each processor, need few, as long as each has no more than this number of elements:
/// llvmpipe ends loops after 65,535 rounds, and long sums lose precision.
const MAX_PARTIALS: usize = 1024;
const MAX_SOFTWARE_PARTIALS: usize = 32;
const MAX_VALUES_PER_SOFTWARE_PARTIAL: usize = 1 << 15;
/// The least number of values per workgroup of a reduction that is worth a second dispatch.
const MIN_VALUES_PER_PARTIAL: usize = 8192;
/// Side of a workgroup's tile of the transpose kernel.
const TRANSPOSE_TILE: usize = 16;
/// The number of elements that a workgroup of the kernels for gathering and rotating writes.
pub(super) const CHUNK: usize = 1024;

/// The kinds of `lib/reduce.wgsl`, each with its identity element.
#[derive(Clone, Copy)]
struct Reduction {
    kind: u32,
    identity: f32,
}

const SUM: Reduction = Reduction {
    kind: 0,
    identity: 0.0,
};
const MAX: Reduction = Reduction {
    kind: 1,
    identity: f32::NEG_INFINITY,
};
const MIN: Reduction = Reduction {
    kind: 2,
    identity: f32::INFINITY,
};

/// Records the dispatches of an operation whose result has at least one value.
pub(super) fn lower(
    recorder: &mut Recorder<'_>,
    op: &Op,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
) -> Result<()> {
    let x = &inputs[0];
    let len = x.len;
    match *op {
        Op::Softmax => row_ops::softmax(recorder, x, output, (1, len), false),
        Op::LogSoftmax => row_ops::softmax(recorder, x, output, (1, len), true),
        Op::SoftmaxRows { rows, cols } => {
            row_ops::softmax(recorder, x, output, (rows, cols), false)
        }
        Op::LogSoftmaxRows { rows, cols } => {
            row_ops::softmax(recorder, x, output, (rows, cols), true)
        }
        Op::LayerNorm {
            rows,
            cols,
            epsilon,
        }
        | Op::RmsNorm {
            rows,
            cols,
            epsilon,
        } => row_ops::norm(recorder, inputs, output, (rows, cols), epsilon),
        Op::Matmul { m, k, n } => matmul(recorder, inputs, output, &Matmul::new(m, k, n)),
        Op::MatmulWith { ref options } => matmul(recorder, inputs, output, options),
        Op::Transpose { rows, cols } => transpose(recorder, x, output, (rows, cols)),
        Op::Rearrange { ref options } => axes::rearrange(recorder, x, output, options),
        Op::ReduceAxis { ref options } => axes::reduce_axis(recorder, x, output, options),
        Op::UnpackBytes { stride } => bytes(recorder, &kernels::UNPACK_BYTES, x, output, stride),
        Op::PackBytes { stride } => bytes(recorder, &kernels::PACK_BYTES, x, output, stride),
        Op::ConcatRows { a_cols, b_cols, .. } => {
            axes::concat_rows(recorder, inputs, output, [a_cols, b_cols])
        }
        Op::GatherRows { rows, cols } => {
            // Every index is of the same table: there is one row of elements.
            gather(recorder, inputs, output, rows, [cols, output.len, 0])
        }
        Op::ScatterRows { cols, .. } => row_steps::scatter(recorder, inputs, output, cols),
        Op::Attention { ref options } => attention(recorder, inputs, output, options),
        Op::Rope { ref options } => rope(recorder, x, output, options),
        Op::TakeAlongRows { cols, k, .. } => gather(recorder, inputs, output, cols, [1, k, cols]),
        Op::ArgmaxRows { cols, .. } => row_ops::top_k(recorder, x, output, [output.len, cols, 1]),
        Op::TopKRows { rows, cols, k } => row_ops::top_k(recorder, x, output, [rows, cols, k]),
        Op::CumsumRows { cols, .. } => row_steps::scan(recorder, x, output, cols, false),
        Op::CumprodRows { cols, .. } => row_steps::scan(recorder, x, output, cols, true),
        Op::SortRows { cols, .. } => {
            let order = recorder.temporary(len)?;
            row_steps::argsort(recorder, x, &order, cols)?;
            let inputs = [x.clone(), order.clone()];
            gather(recorder, &inputs, output, cols, [1, cols, cols])?;
            recorder.give_back(order);
            Ok(())
        }
        Op::ArgsortRows { cols, .. } => row_steps::argsort(recorder, x, output, cols),
        Op::FftRows { len, .. } => row_steps::fft(recorder, x, output, len),
        Op::MatmulCached(ref call) => super::weights::multiply_cached(recorder, call, x, output),
        Op::Convolve2d { ref options } => {
            super::convolve2d::convolve2d(recorder, inputs, output, options)
        }
        Op::ConvolveLayer { ref options } => {
            super::layer::convolve_layer(recorder, inputs, output, options)
        }
        Op::CustomReduce(ref call) => super::tiles::custom_reduce(recorder, call, x, output),
        Op::Dot => dot(recorder, inputs, output),
        Op::Sum => reduce(recorder, x, output, SUM, 1.0),
        Op::Mean => reduce(recorder, x, output, SUM, len as f32),
        Op::Max => reduce(recorder, x, output, MAX, 1.0),
        Op::Min => reduce(recorder, x, output, MIN, 1.0),
        Op::Argmax => argmax(recorder, x, output),
        // Elementwise operations are chains, not kernels.
        _ => Err(Error::Gpu {
            message: format!("there is no kernel for {}", op.name()),
        }),
    }
}

/// Elementwise operations; the first reads `x`.
pub(super) fn elementwise(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    operations: &FusedCode,
    output: &GpuBuffer,
) -> Result<()> {
    let vectors = output.len.div_ceil(4);
    let (params, workgroups) = ([vectors as u32], vectors.div_ceil(VECTORS_A_WORKGROUP));
    recorder.dispatch_with(
        &kernels::ELEMENTWISE,
        operations,
        &params,
        &[x],
        output,
        workgroups,
    )
}

/// Workgroups of a reduction's first dispatch.
fn partials(recorder: &Recorder<'_>, len: usize) -> usize {
    let most = if recorder.gpu.adapter().software {
        MAX_SOFTWARE_PARTIALS.max(len / MAX_VALUES_PER_SOFTWARE_PARTIAL)
    } else {
        MAX_PARTIALS
    };
    // Kernels know workgroups by their place along one side.
    let most = most.min(recorder.gpu.limits.workgroups);
    len.div_ceil(MIN_VALUES_PER_PARTIAL).clamp(1, most)
}

fn reduce(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    reduction: Reduction,
    divisor: f32,
) -> Result<()> {
    let groups = partials(recorder, x.len);
    let params = |len: usize, groups: usize, divisor: f32| {
        let identity = reduction.identity.to_bits();
        [
            len as u32,
            groups as u32,
            reduction.kind,
            identity,
            divisor.to_bits(),
        ]
    };
    if groups == 1 {
        return recorder.dispatch(
            &kernels::REDUCE,
            &params(x.len, 1, divisor),
            &[x],
            output,
            1,
        );
    }
    let folded = recorder.allocate(groups)?;
    let first = params(x.len, groups, 1.0);
    recorder.dispatch(&kernels::REDUCE, &first, &[x], &folded, groups)?;
    recorder.dispatch(
        &kernels::REDUCE,
        &params(groups, 1, divisor),
        &[&folded],
        output,
        1,
    )
}

fn dot(recorder: &mut Recorder<'_>, inputs: &[GpuBuffer], output: &GpuBuffer) -> Result<()> {
    let len = inputs[0].len;
    let groups = partials(recorder, len);
    let folded = recorder.allocate(groups)?;
    let (params, inputs) = ([len as u32, groups as u32], [&inputs[0], &inputs[1]]);
    recorder.dispatch(&kernels::DOT, &params, &inputs, &folded, groups)?;
    reduce(recorder, &folded, output, SUM, 1.0)
}

fn argmax(recorder: &mut Recorder<'_>, x: &GpuBuffer, output: &GpuBuffer) -> Result<()> {
    let groups = partials(recorder, x.len);
    let params = |len: usize, groups: usize, read_pairs: bool, write_pairs: bool| {
        [
            len as u32,
            groups as u32,
            read_pairs.into(),
            write_pairs.into(),
        ]
    };
    if groups == 1 {
        let params = params(x.len, 1, false, false);
        return recorder.dispatch(&kernels::ARGMAX, &params, &[x], output, 1);
    }
    let pairs = recorder.allocate(2 * groups)?;
    let first = params(x.len, groups, false, true);
    recorder.dispatch(&kernels::ARGMAX, &first, &[x], &pairs, groups)?;
    let second = params(groups, 1, true, false);
    recorder.dispatch(&kernels::ARGMAX, &second, &[&pairs], output, 1)
}

/// Elements by index; indices are below `count`. The last parameters are the number of elements for each index, of
/// those that belong to one row of the table, and the distance of its rows.
fn gather(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    count: usize,
    [span, per_row, stride]: [usize; 3],
) -> Result<()> {
    let params = [output.len, count, span, per_row, stride].map(|size| size as u32);
    let workgroups = output.len.div_ceil(CHUNK);
    let inputs = [&inputs[0], &inputs[1]];
    recorder.dispatch(&kernels::GATHER, &params, &inputs, output, workgroups)
}

/// Conversions between bytes and numbers, an invocation for each word.
fn bytes(
    recorder: &mut Recorder<'_>,
    kernel: &'static Kernel,
    x: &GpuBuffer,
    output: &GpuBuffer,
    stride: usize,
) -> Result<()> {
    let params = [x.len.max(output.len), stride].map(|size| size as u32);
    let workgroups = x.len.min(output.len).div_ceil(WORKGROUP);
    recorder.dispatch(kernel, &params, &[x], output, workgroups)
}

/// Attention, a workgroup for each token and head.
fn attention(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    options: &Attention,
) -> Result<()> {
    let (what, gpu) = ("the number of positions on llvmpipe", recorder.gpu);
    gpu.check_on_llvmpipe(what, options.positions, 1 << 14)?;
    let params = [
        options.tokens as u32,
        options.heads as u32,
        options.kv_heads as u32,
        options.head_len as u32,
        options.positions as u32,
        u32::from(options.causal.is_some()),
        options.causal.unwrap_or(0) as u32,
        options
            .window
            .map_or(0, |window| window.min(options.positions)) as u32,
        options.soft_cap.unwrap_or(0.0).to_bits(),
        options.scale.to_bits(),
    ];
    let workgroups = options.tokens * options.heads;
    let inputs = [&inputs[0], &inputs[1], &inputs[2]];
    recorder.dispatch(&kernels::ATTENTION, &params, &inputs, output, workgroups)
}

/// Rotations; the angles are computed on the host, in `f64`.
fn rope(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    options: &Rope,
) -> Result<()> {
    let frequencies = options.frequencies();
    let mut angles = Vec::new();
    for token in 0..options.tokens {
        angles.extend(options.angles(token, &frequencies).flatten());
    }
    let angles = recorder.upload(&angles)?;
    let row = options.heads * options.head_len;
    let params = [output.len, row, options.head_len, options.pairs()].map(|size| size as u32);
    let params = [&params[..], &[options.interleaved.into()]].concat();
    let workgroups = output.len.div_ceil(CHUNK);
    recorder.dispatch(&kernels::ROPE, &params, &[x, &angles], output, workgroups)
}

fn transpose(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    (rows, cols): (usize, usize),
) -> Result<()> {
    // The tiles' barrier costs a software adapter more than reads along columns.
    if recorder.gpu.adapter().software {
        let columns = Rearrange {
            shape: vec![cols, rows],
            strides: vec![1, cols as isize],
            offset: 0,
        };
        return axes::rearrange(recorder, x, output, &columns);
    }
    let across = cols.div_ceil(TRANSPOSE_TILE);
    let tiles = across * rows.div_ceil(TRANSPOSE_TILE);
    let params = [rows, cols, across].map(|dim| dim as u32);
    recorder.dispatch(&kernels::TRANSPOSE, &params, &[x], output, tiles)
}

fn matmul(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    options: &Matmul,
) -> Result<()> {
    let Matmul { m, k, n, .. } = *options;
    let mut row_major = |x: &GpuBuffer, transposed: bool, shape: (usize, usize)| {
        if !transposed || x.len == 0 {
            return Ok(x.clone());
        }
        let y = recorder.allocate(x.len)?;
        transpose(recorder, x, &y, shape).map(|()| y)
    };
    let a = row_major(&inputs[0], options.transpose_a, (k, m))?;
    let b = row_major(&inputs[1], options.transpose_b, (n, k))?;
    super::matmul::matmul(recorder, [&a, &b], output, [m, k, n])
}

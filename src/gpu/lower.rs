//! From operations to dispatches: which kernel, how many workgroups, what parameters.

#[cfg(not(target_arch = "wasm32"))]
use super::context::Limits;
use super::fused::Addition;
use super::kernels::{self, Kernel};
use super::recorder::{GpuBuffer, Recorder};
use crate::error::{Error, Result};
use crate::ops::{Matmul, Op};

/// Invocations in the workgroup of every kernel that has but one size of it.
pub(super) const WORKGROUP: usize = 256;
/// Vectors of four values that a workgroup of the elementwise kernel computes.
const VECTORS_A_WORKGROUP: usize = 2 * WORKGROUP;
/// Most workgroups of a reduction's first dispatch, so that one workgroup can fold the rest.
const MAX_PARTIALS: usize = 1024;
/// Values that a workgroup of a reduction, or of a softmax of long rows, should have at least, to
/// be worth a second dispatch.
const MIN_VALUES_PER_PARTIAL: usize = 8192;
const MIN_VALUES_PER_CHUNK: usize = 2048;
/// The longest row whose softmax is left to one workgroup, unless there are many rows.
const MAX_SINGLE_ROW: usize = 8192;
/// Rows that keep a GPU busy with a workgroup each.
const MANY_ROWS: usize = 128;
/// Side of a workgroup's tile of the transpose kernel.
const TRANSPOSE_TILE: usize = 16;

/// The kinds of `lib/reduce.wgsl`, with the value that changes nothing.
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
#[cfg_attr(relampago_package, optimize(size))]
pub(super) fn lower(
    recorder: &mut Recorder<'_>,
    op: &Op,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
) -> Result<()> {
    let x = &inputs[0];
    let len = x.len;
    match *op {
        Op::Softmax {} => softmax(recorder, x, output, (1, len), false),
        Op::LogSoftmax {} => softmax(recorder, x, output, (1, len), true),
        Op::SoftmaxRows { rows, cols } => softmax(recorder, x, output, (rows, cols), false),
        Op::LogSoftmaxRows { rows, cols } => softmax(recorder, x, output, (rows, cols), true),
        Op::Matmul { m, k, n } => matmul(recorder, inputs, output, &Matmul::new(m, k, n)),
        Op::MatmulWith { ref options } => matmul(recorder, inputs, output, options),
        Op::Transpose { rows, cols } => transpose(recorder, x, output, (rows, cols)),
        Op::Convolve2d { ref options } => {
            super::convolve2d::convolve2d(recorder, inputs, output, options)
        }
        Op::Dot {} => dot(recorder, inputs, output),
        Op::Sum {} => reduce(recorder, x, output, SUM, 1.0),
        Op::Mean {} => reduce(recorder, x, output, SUM, len as f32),
        Op::Max {} => reduce(recorder, x, output, MAX, 1.0),
        Op::Min {} => reduce(recorder, x, output, MIN, 1.0),
        Op::Argmax {} => argmax(recorder, x, output),
        // Elementwise operations are chains, not kernels.
        _ => Err(Error::Gpu {
            message: format!("there is no kernel for {}", op.name()),
        }),
    }
}

/// Elementwise operations, the first of which reads `x`.
pub(super) fn elementwise(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    operations: &Addition,
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
    let widest = recorder.gpu.limits.workgroups;
    len.div_ceil(MIN_VALUES_PER_PARTIAL)
        .clamp(1, MAX_PARTIALS.min(widest))
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

/// One dispatch where there is a workgroup's worth of work in a row or rows enough for all
/// workgroups; else two, with each row cut into at most 256 chunks.
fn softmax(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    (rows, cols): (usize, usize),
    as_log: bool,
) -> Result<()> {
    let (lowest, as_log) = (f32::NEG_INFINITY.to_bits(), u32::from(as_log));
    if let Some((kernel, rows_each)) = softmax_row_kernel(recorder, rows, cols) {
        let params = [rows as u32, cols as u32, lowest, as_log];
        let workgroups = rows.div_ceil(rows_each);
        return recorder.dispatch(kernel, &params, &[x], output, workgroups);
    }
    let chunks = cols.div_ceil(MIN_VALUES_PER_CHUNK).min(WORKGROUP);
    let chunk_len = cols.div_ceil(chunks);
    let params = [rows, cols, chunks, chunk_len].map(|dim| dim as u32);
    let params = [&params[..], &[lowest, as_log]].concat();
    let partials = recorder.allocate(2 * rows * chunks)?;
    recorder.dispatch(
        &kernels::SOFTMAX_PARTIAL,
        &params,
        &[x],
        &partials,
        rows * chunks,
    )?;
    recorder.dispatch(
        &kernels::SOFTMAX_APPLY,
        &params,
        &[x, &partials],
        output,
        rows * chunks,
    )
}

/// The kernel with the smallest workgroup that holds such a row in registers, and how many of them.
#[cfg(not(target_arch = "wasm32"))]
fn held_row_kernel(limits: &Limits, cols: usize) -> Option<(&'static Kernel, usize)> {
    let longest = if limits.subgroups_of_32 {
        &kernels::SOFTMAX_16384_BY_32
    } else {
        &kernels::SOFTMAX_16384
    };
    let held = [
        (64, 4, &kernels::SOFTMAX_1024),
        (256, 1, &kernels::SOFTMAX_4096),
        (1024, 1, longest),
    ];
    let fits = |&(invocations, rows, _): &(usize, usize, _)| {
        cols <= 16 * invocations && rows * invocations <= limits.invocations
    };
    let found = held.into_iter().find(fits);
    let found = found.map(|(_, rows, kernel)| (kernel, rows));
    found.filter(|_| cols.is_multiple_of(4))
}

/// The kernel whose workgroups each do whole rows, if one should, and how many: one that holds them
/// in registers, or one that reads them three times.
#[cfg_attr(target_arch = "wasm32", allow(unused_variables))]
fn softmax_row_kernel(
    recorder: &Recorder<'_>,
    rows: usize,
    cols: usize,
) -> Option<(&'static Kernel, usize)> {
    #[cfg(not(target_arch = "wasm32"))]
    if let Some(kernel) = held_row_kernel(&recorder.gpu.limits, cols) {
        return Some(kernel);
    }
    (cols <= MAX_SINGLE_ROW || rows >= MANY_ROWS).then_some((&kernels::SOFTMAX_ROW, 1))
}

fn transpose(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    (rows, cols): (usize, usize),
) -> Result<()> {
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

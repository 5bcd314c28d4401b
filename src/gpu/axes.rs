//! Strided views, joined rows and reductions along an axis.

use super::kernels;
use super::lower::CHUNK;
use super::recorder::{GpuBuffer, Recorder};
use crate::error::Result;
use crate::ops::axes::{Axis, MAX_AXES};
use crate::ops::{AxisFold, Rearrange, ReduceAxis};

/// The length of a row from which a workgroup computes one result.
const LONG: usize = 64;
/// The length of a column from which a workgroup computes one result. Below it, an invocation computes a whole column,
/// and neighbouring invocations read neighbouring elements.
const LONG_BESIDE: usize = 4096;

/// The number of results of a workgroup in which each invocation computes a whole result.
const RESULTS: usize = 256;

pub(super) fn rearrange(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    options: &Rearrange,
) -> Result<()> {
    let mut axes = options.merged();
    while axes.len() < MAX_AXES {
        axes.push(Axis { len: 1, stride: 0 });
    }
    let mut params = vec![output.len as u32, options.offset as u32];
    params.extend(axes[1..].iter().map(|axis| axis.len as u32));
    params.extend(axes.iter().map(|axis| axis.stride as u32));
    let workgroups = output.len.div_ceil(CHUNK);
    recorder.dispatch(&kernels::REARRANGE, &params, &[x], output, workgroups)
}

pub(super) fn concat_rows(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    [a_cols, b_cols]: [usize; 2],
) -> Result<()> {
    let params = [output.len, a_cols, b_cols].map(|size| size as u32);
    let workgroups = output.len.div_ceil(CHUNK);
    let inputs = [&inputs[0], &inputs[1]];
    recorder.dispatch(&kernels::CONCAT, &params, &inputs, output, workgroups)
}

pub(super) fn reduce_axis(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    options: &ReduceAxis,
) -> Result<()> {
    let ReduceAxis {
        fold, len, inner, ..
    } = *options;
    let joint = len >= if inner == 1 { LONG } else { LONG_BESIDE };
    let workgroups = if joint {
        output.len
    } else {
        output.len.div_ceil(RESULTS)
    };
    let kind = match fold {
        AxisFold::Sum | AxisFold::Mean => 0,
        AxisFold::Max | AxisFold::Min => 1,
        AxisFold::Argmax | AxisFold::Argmin => 2,
    };
    let negated = matches!(fold, AxisFold::Min | AxisFold::Argmin);
    let sign: f32 = if negated { -1.0 } else { 1.0 };
    let mean = fold == AxisFold::Mean;
    let divisor = if mean { len as f32 } else { 1.0 };
    let params = [output.len, len, inner, joint.into(), kind].map(|size| size as u32);
    let params = [&params[..], &[sign.to_bits(), divisor.to_bits()]].concat();
    recorder.dispatch(&kernels::REDUCE_AXIS, &params, &[x], output, workgroups)
}

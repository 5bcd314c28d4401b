//! Operations on SIMD, straight between JavaScript's arrays: what can go piece by piece never
//! lies in WebAssembly's memory as a whole.

use std::borrow::Cow;
use std::sync::Arc;

use js_sys::{Array, Float32Array};
use wasm_bindgen::{JsCast, JsValue};

use super::convert;
use crate::device::GpuDevice;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::graph::Program;
use crate::ops::{Op, Padding};
use crate::shape::{MAX_EXACT_INDEX, output_len};
use crate::simd::{self, stream};
use crate::spare::Spare;

/// The operation's result, unless it is for a GPU, which is then told to `on_gpu` with
/// the result's length.
#[cfg_attr(relampago_package, optimize(size))]
pub(super) fn run(
    device: &GpuDevice,
    op: &Op,
    inputs: &[Float32Array],
    on_gpu: &mut dyn FnMut(&Arc<Gpu>, usize) -> Result<()>,
) -> Result<JsValue> {
    let lens: Vec<usize> = inputs.iter().map(|x| x.length() as usize).collect();
    let long_search = matches!(op, Op::Argmax {}) && lens[0] > MAX_EXACT_INDEX;
    let len = if long_search {
        1
    } else {
        output_len(op, &lens)?
    };
    device.check()?;
    // A GPU's result is an `f32`, which has not every index.
    if let Some(gpu) = device.gpu_for(op, &lens).filter(|_| !long_search) {
        return on_gpu(gpu, len).map(|()| JsValue::UNDEFINED);
    }
    let cpu = device.cpu();
    let banded = matches!(op, Op::Convolve2d { options } if options.padding == Padding::Valid);
    if banded || stream::is_streamable(op) {
        let out = Float32Array::new_with_length(if op.is_scalar() { 0 } else { len as u32 });
        // What a row has in common is known at its end.
        let whole = matches!(op, Op::Softmax {});
        let draft = Spare::new(if whole { len } else { 0 })?;
        let len = lens[0];
        let mut arrays = Arrays {
            inputs,
            out,
            len,
            draft,
        };
        let value = stream::run(cpu.isa, op, &mut arrays)?;
        return Ok(if op.is_scalar() {
            value.into()
        } else {
            arrays.out.into()
        });
    }
    let inputs = inputs.iter().map(convert::values);
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
    let mut out = Spare::new(len)?;
    simd::execute(cpu, op, &inputs, &mut out)?;
    Ok(Float32Array::from(&out[..]).into())
}

/// The result of a program, or undefined where arrays of one length are not all that it takes.
#[cfg_attr(relampago_package, optimize(size))]
pub(super) fn read(program: &Program, arguments: &Array) -> Result<JsValue> {
    let Some(len) = program.streamable() else {
        return Ok(JsValue::UNDEFINED);
    };
    let mut inputs = Vec::new();
    for argument in arguments.iter() {
        match argument.dyn_into::<Float32Array>() {
            Ok(array) if array.length() as usize == len => inputs.push(array),
            _ => return Ok(JsValue::UNDEFINED),
        }
    }
    if inputs.len() != program.placeholders() {
        return Ok(JsValue::UNDEFINED);
    }
    let (inputs, out) = (&inputs[..], Float32Array::new_with_length(len as u32));
    let draft = Spare::new(0)?;
    let mut arrays = Arrays {
        inputs,
        out,
        len,
        draft,
    };
    program.stream(&mut arrays)?;
    Ok(arrays.out.into())
}

struct Arrays<'a> {
    inputs: &'a [Float32Array],
    out: Float32Array,
    /// Of the first of them; no other, nor the result, is longer.
    len: usize,
    /// A result that is not complete yet.
    draft: Spare,
}

impl stream::Stream for Arrays<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn load(&mut self, input: usize, at: usize, to: &mut [f32]) {
        self.part(&self.inputs[input], at, to.len()).copy_to(to);
    }

    fn store(&mut self, at: usize, from: &[f32]) {
        self.part(&self.out, at, from.len()).copy_from(from);
    }

    fn draft(&mut self, at: usize, len: usize) -> &mut [f32] {
        // Each value crosses once, when it is the result.
        &mut self.draft[at..at + len]
    }
}

impl Arrays<'_> {
    fn part<'a>(&self, array: &'a Float32Array, at: usize, len: usize) -> Cow<'a, Float32Array> {
        if len == self.len {
            return Cow::Borrowed(array);
        }
        Cow::Owned(array.subarray(at as u32, (at + len) as u32))
    }
}

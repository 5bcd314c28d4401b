//! Operations on SIMD directly between JavaScript's arrays. Operations that can run piece by piece
//! never hold a whole array in WebAssembly's memory.

use js_sys::{Array, Float32Array};
use wasm_bindgen::{JsCast, JsValue};

use super::convert;
use crate::alloc::js_array as array;
use crate::alloc::scratch::Scratch;
use crate::batch::Program;
use crate::device::GpuDevice;
use crate::device::executor::Executor;
use crate::error::{Error, Result};
use crate::ops::indices::{check_indices, index_input};
use crate::ops::shape::{MAX_EXACT_INDEX, output_len};
use crate::ops::{Op, Padding};
use crate::simd::{self, stream};

/// Runs an operation and returns its result, in `into` if that is an array of its length. If the
/// operation should run on a GPU, calls `on_gpu` with the result's length instead.
pub(super) fn run(
    device: &GpuDevice,
    op: &Op,
    inputs: &[Float32Array],
    into: JsValue,
    on_gpu: &mut dyn FnMut(&Executor, usize) -> Result<()>,
) -> Result<JsValue> {
    let lens: Vec<usize> = inputs.iter().map(|x| x.length() as usize).collect();
    let long_search = matches!(op, Op::Argmax) && lens[0] > MAX_EXACT_INDEX;
    let len = if long_search {
        1
    } else {
        output_len(op, &lens)?
    };
    if let Some((input, _)) = index_input(op) {
        let indices = convert::values(&inputs[input])?;
        check_indices(op, |_| Some(&indices))?;
    }
    device.check()?;
    // A GPU's result is an `f32`, which has not every index.
    if !long_search && device.uses_gpu(op, &lens) {
        return on_gpu(device.executor(), len).map(|()| JsValue::UNDEFINED);
    }
    let cpu = device.cpu();
    let banded = matches!(op, Op::Convolve2d { options } if options.padding == Padding::Valid);
    if banded || stream::is_streamable(op) {
        // What a row has in common is known at its end.
        let whole = matches!(op, Op::Softmax);
        let draft = Scratch::new(if whole { len } else { 0 })?;
        let mut arrays = Arrays {
            inputs,
            len: lens[0],
            result: len,
            out: place(into, len),
            draft,
            failure: None,
        };
        let value = stream::run(cpu.isa, op, &mut arrays)?;
        return if op.is_scalar() {
            Ok(value.into())
        } else {
            arrays.finish()
        };
    }
    let inputs = inputs.iter().map(convert::values);
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
    let mut out = Scratch::new(len)?;
    simd::execute(cpu, op, &inputs, &mut out)?;
    Ok(stored(&out, place(into, len))?.into())
}

/// Returns `into` if it is an array for `len` values.
pub(super) fn place(into: JsValue, len: usize) -> Option<Float32Array> {
    let fits = array::length_of(&into, false) == len as f64;
    fits.then(|| into.unchecked_into())
}

/// Stores a whole result, in a new array if there is no `place`.
pub(super) fn stored(values: &[f32], place: Option<Float32Array>) -> Result<Float32Array> {
    // A function of the caller's may have given the place away meanwhile.
    let place = place.filter(|place| array::write(place, 0, values));
    place.map_or_else(|| array::of(values), Ok)
}

/// Runs a program and returns its result, in `into` if it fits, or undefined if the program does
/// not take arrays of one length only.
pub(super) fn read(program: &Program, arguments: &Array, into: JsValue) -> Result<JsValue> {
    let Some(len) = program.streamable() else {
        return Ok(JsValue::UNDEFINED);
    };
    let mut inputs = Vec::new();
    for argument in arguments.iter() {
        if array::length_of(&argument, false) != len as f64 {
            return Ok(JsValue::UNDEFINED);
        }
        inputs.push(argument.unchecked_into());
    }
    if inputs.len() != program.placeholders() {
        return Ok(JsValue::UNDEFINED);
    }
    let mut arrays = Arrays {
        inputs: &inputs,
        len,
        result: len,
        out: place(into, len),
        draft: Scratch::default(),
        failure: None,
    };
    program.stream(&mut arrays)?;
    arrays.finish()
}

struct Arrays<'a> {
    inputs: &'a [Float32Array],
    /// The length of the first input; no other is longer.
    len: usize,
    /// The length of the result.
    result: usize,
    out: Option<Float32Array>,
    /// The unfinished part of the result.
    draft: Scratch,
    /// The first error.
    failure: Option<Error>,
}

impl stream::Stream for Arrays<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn load(&mut self, input: usize, at: usize, to: &mut [f32]) {
        if !array::read(&self.inputs[input], at, to) {
            self.fail(array::lost());
        }
    }

    fn store(&mut self, at: usize, from: &[f32]) {
        match self.stored(at, from) {
            Ok(out) => self.out = Some(out),
            Err(error) => self.fail(error),
        }
    }

    fn draft(&mut self, at: usize, len: usize) -> &mut [f32] {
        // Each value crosses once, when it is the result.
        &mut self.draft[at..at + len]
    }

    fn settle(&mut self, at: usize, len: usize) {
        let draft = std::mem::take(&mut self.draft);
        self.store(at, &draft[at..at + len]);
        self.draft = draft;
    }
}

impl Arrays<'_> {
    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    /// Writes these values to the result and returns it.
    fn stored(&mut self, at: usize, from: &[f32]) -> Result<Float32Array> {
        if from.len() == self.result {
            return stored(from, self.out.take());
        }
        let out = self.out()?;
        let written = array::write(&out, at, from);
        written.then_some(out).ok_or_else(array::lost)
    }

    /// Takes the result array, or a new array for it.
    fn out(&mut self) -> Result<Float32Array> {
        match self.out.take() {
            Some(out) => Ok(out),
            None => array::zeros(self.result),
        }
    }

    /// Returns the result once it is complete.
    fn finish(mut self) -> Result<JsValue> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(self.out()?.into()),
        }
    }
}

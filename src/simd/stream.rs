//! Operations on arrays that are not in this module's memory, such as JavaScript's, or that are
//! computed on the fly: one piece at a time is loaded, processed while it is in the caches, and
//! stored.

use super::InstructionSet;
use super::functions::{Maximum, Minimum};
use super::isa::dispatch;
use super::reduce::{Products, Sum, Values, argmax, fold};
use super::softmax::{self, BLOCK};
use crate::alloc::scratch::Scratch;
use crate::error::Result;
use crate::ops::shape::without_rule;
use crate::ops::{Conv2d, Op};

/// The number of values in a piece: two inputs and a result stay in a second-level cache.
const PIECE: usize = 8 * BLOCK;

/// Inputs, and a place for results.
pub(crate) trait Stream {
    /// The length of the first input, and of all others of an operation that [`is_streamable`].
    fn len(&self) -> usize;
    /// Copies values of an input from `at` on.
    fn load(&mut self, input: usize, at: usize, to: &mut [f32]);
    /// Copies values of the result from `at` on.
    fn store(&mut self, at: usize, from: &[f32]);
    /// Memory for `len` values from `at` on that are not the result yet; it keeps them.
    fn draft(&mut self, at: usize, len: usize) -> &mut [f32];
    /// Commits the draft as the final output.
    fn settle(&mut self, at: usize, len: usize);
}

/// Whether [`run`] can do the operation.
pub(crate) fn is_streamable(op: &Op) -> bool {
    let by_row = matches!(op, Op::Softmax | Op::LogSoftmax);
    op.is_elementwise() || op.is_scalar() || by_row
}

/// Runs an operation that [`is_streamable`], or a convolution without padding, whose lengths were
/// validated; a reduction's result is returned and not stored.
///
/// # Errors
/// `InvalidArgument` for another operation, `OutOfMemory` if there is no memory for pieces.
pub(crate) fn run(isa: InstructionSet, op: &Op, stream: &mut dyn Stream) -> Result<f64> {
    match *op {
        Op::Softmax => softmax(isa, false, stream).map(|()| 0.0),
        Op::LogSoftmax => softmax(isa, true, stream).map(|()| 0.0),
        Op::Convolve2d { options } => convolve(isa, options, stream).map(|()| 0.0),
        _ if op.is_scalar() => reduction(isa, op, stream),
        _ if op.is_elementwise() => elementwise(isa, op, stream).map(|()| 0.0),
        _ => Err(without_rule(op)),
    }
}

/// Room for a piece of an array.
fn piece(len: usize) -> Result<Scratch> {
    Scratch::new(len.min(PIECE))
}

/// Returns the start and the length of each piece.
fn ranges(len: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..len)
        .step_by(PIECE)
        .map(move |at| (at, PIECE.min(len - at)))
}

fn elementwise(isa: InstructionSet, op: &Op, stream: &mut dyn Stream) -> Result<()> {
    piecewise(op.inputs().len(), stream, &mut |inputs, y| {
        super::elementwise(isa, op, inputs, y);
    })
}

/// Computes a piece of the result from the same piece of each input.
type Compute<'a> = dyn FnMut(&[&[f32]], &mut [f32]) + 'a;

/// Has `compute` make each piece of the result from that piece of each of `inputs` inputs.
pub(crate) fn piecewise(
    inputs: usize,
    stream: &mut dyn Stream,
    compute: &mut Compute<'_>,
) -> Result<()> {
    let mut y = piece(stream.len())?;
    let mut loaded = Vec::new();
    for _ in 0..inputs {
        loaded.push(piece(stream.len())?);
    }
    for (at, len) in ranges(stream.len()) {
        let mut inputs: Vec<&[f32]> = Vec::new();
        for (input, piece) in loaded.iter_mut().enumerate() {
            let piece = &mut piece[..len];
            stream.load(input, at, piece);
            inputs.push(piece);
        }
        compute(&inputs, &mut y[..len]);
        stream.store(at, &y[..len]);
    }
    Ok(())
}

/// The state of a reduction after the pieces so far.
struct Progress {
    sum: f64,
    /// The largest or smallest value, and where the largest is.
    extreme: f32,
    index: usize,
}

fn reduction(isa: InstructionSet, op: &Op, stream: &mut dyn Stream) -> Result<f64> {
    let len = stream.len();
    let mut progress = Progress {
        sum: 0.0,
        extreme: f32::NAN,
        index: 0,
    };
    let (mut a, mut b) = (piece(len)?, piece(len)?);
    for (at, len) in ranges(len) {
        stream.load(0, at, &mut a[..len]);
        if op.inputs().len() > 1 {
            stream.load(1, at, &mut b[..len]);
        }
        progress.add(isa, op, at, [&a[..len], &b[..len]])?;
    }
    Ok(match op {
        Op::Argmax => progress.index as f64,
        Op::Max | Op::Min => f64::from(progress.extreme),
        Op::Mean => f64::from((progress.sum / len as f64) as f32),
        Op::Sum | Op::Dot => f64::from(progress.sum as f32),
        _ => return Err(without_rule(op)),
    })
}

impl Progress {
    fn add(&mut self, isa: InstructionSet, op: &Op, at: usize, [a, b]: [&[f32]; 2]) -> Result<()> {
        // The first piece is alone.
        let both = |extreme: f32, piece: f32| [if at == 0 { piece } else { extreme }, piece];
        match op {
            Op::Dot => self.sum += dispatch(isa, Sum(Products(a, b))),
            Op::Max => {
                let largest = fold(isa, Maximum, a);
                self.extreme = fold(isa, Maximum, &both(self.extreme, largest));
            }
            Op::Min => {
                let smallest = fold(isa, Minimum, a);
                self.extreme = fold(isa, Minimum, &both(self.extreme, smallest));
            }
            Op::Argmax => {
                let index = argmax(isa, a);
                let beaten = a[index] > self.extreme || a[index].is_nan();
                if at == 0 || (beaten && !self.extreme.is_nan()) {
                    (self.extreme, self.index) = (a[index], at + index);
                }
            }
            Op::Sum | Op::Mean => self.sum += dispatch(isa, Sum(Values(a))),
            _ => return Err(without_rule(op)),
        }
        Ok(())
    }
}

fn softmax(isa: InstructionSet, logarithm: bool, stream: &mut dyn Stream) -> Result<()> {
    let len = stream.len();
    let mut x = piece(len)?;
    // A logarithm is taken of the inputs again, and nothing is kept until then.
    let mut own = piece(if logarithm { len } else { 0 })?;
    let mut partials = Vec::new();
    for (at, len) in ranges(len) {
        let (x, partials) = (&mut x[..len], &mut partials);
        stream.load(0, at, x);
        let y = if logarithm {
            &mut own[..len]
        } else {
            stream.draft(at, len)
        };
        dispatch(isa, softmax::Exponentials { x, y, partials });
    }
    let total = &softmax::RowTotal::of(isa, &mut partials);
    for (at, len) in ranges(len) {
        let (x, partials) = (&mut x[..len], &partials[at / BLOCK..]);
        let y = if logarithm {
            stream.load(0, at, x);
            &mut own[..len]
        } else {
            stream.draft(at, len)
        };
        let finish = softmax::FinishRow {
            logarithm,
            x,
            y,
            partials,
            total,
        };
        finish.run(isa);
        if logarithm {
            stream.store(at, &own[..len]);
        } else {
            stream.settle(at, len);
        }
    }
    Ok(())
}

/// A convolution without padding, a band of rows at a time on one thread.
fn convolve(isa: InstructionSet, whole: Conv2d, stream: &mut dyn Stream) -> Result<()> {
    let (rows, cols) = whole.output_shape();
    let mut kernel = Scratch::new(whole.kernel_rows * whole.kernel_cols)?;
    stream.load(1, 0, &mut kernel);
    // Bands overlap by less than the kernel's rows.
    let band = (PIECE / whole.input_cols.max(1)).max(4 * whole.kernel_rows);
    for row in (0..rows).step_by(band) {
        let rows = band.min(rows - row);
        let options = Conv2d {
            input_rows: (rows - 1) * whole.stride_rows + whole.kernel_rows,
            ..whole
        };
        let mut x = Scratch::new(options.input_rows * whole.input_cols)?;
        let mut y = Scratch::new(rows * cols)?;
        stream.load(0, row * whole.stride_rows * whole.input_cols, &mut x);
        super::convolve::convolve(isa, 1, &options, &x, &kernel, &mut y)?;
        stream.store(row * cols, &y);
    }
    Ok(())
}

/// Slices, as a stand-in for what lies elsewhere.
#[cfg(test)]
pub(crate) struct Slices<'a> {
    pub(crate) inputs: &'a [&'a [f32]],
    pub(crate) out: Vec<f32>,
}

#[cfg(test)]
impl Stream for Slices<'_> {
    fn len(&self) -> usize {
        self.inputs[0].len()
    }

    fn load(&mut self, input: usize, at: usize, to: &mut [f32]) {
        to.copy_from_slice(&self.inputs[input][at..at + to.len()]);
    }

    fn store(&mut self, at: usize, from: &[f32]) {
        self.out[at..at + from.len()].copy_from_slice(from);
    }

    fn draft(&mut self, at: usize, len: usize) -> &mut [f32] {
        &mut self.out[at..at + len]
    }

    fn settle(&mut self, _: usize, _: usize) {}
}

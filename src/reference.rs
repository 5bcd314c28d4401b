//! Oracles: every operation in plain `f64`, independent of every back-end and of its formulas.
//!
//! [`evaluate`] computes an operation, and [`Expected::accepts`] compares a result with it:
//!
//! ```
//! # #[cfg(not(target_arch = "wasm32"))] {
//! use relampago::{GpuDevice, Op, reference::evaluate};
//!
//! let x = [-1.0, 0.5, 2.0];
//! let y = GpuDevice::new()?.run(&Op::Tanh, &[&x])?;
//! let expected = evaluate(&Op::Tanh, &[&x]);
//! assert!(expected.iter().zip(&y).all(|(expected, &y)| expected.accepts(y, Op::Tanh.ulp())));
//! # }
//! # Ok::<(), relampago::Error>(())
//! ```
//!
//! Tests and benchmarks compare against the oracles; the library itself does not call them. Each result comes with its
//! *condition-scaled magnitude*: the size of the terms that were added up or amplified to compute it. A sum of
//! cancelling terms cannot be as exact as its small result would suggest, and the exponential of a rounded difference
//! carries that difference's error; both are known from the inputs, and neither is the back-end's fault. The accuracy
//! stated in the op table is relative to this magnitude; products of more than 65,536 terms have it times as many of
//! those. Of sums it is what roundings come to that go either way. After a term that is millions of times the others
//! all of these may be rounded away, half a unit each: up to 256 one after the other in a product.

mod axes;
mod bytes;
mod llm_ops;
mod row_functions;

use crate::ops::ConvLayer;
use crate::ops::{Conv2d, Matmul, Op};
use axes::{concat_rows, rearrange, reduce_axis};
use bytes::{pack_bytes, unpack_bytes};
use llm_ops::{attention, gather_rows, rope, take_along_rows, top_k};

/// A true result and the magnitude that its error is measured against.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Expected {
    /// The result, exact to `f64`.
    pub value: f64,
    /// The condition-scaled magnitude, at least `|value|`.
    pub magnitude: f64,
}

impl Expected {
    fn new(value: f64, magnitude: f64) -> Self {
        Self { value, magnitude }
    }

    fn exact(value: f64) -> Self {
        Self::new(value, value.abs())
    }

    /// Whether `actual` lies within `ulp` units of `f32::EPSILON × magnitude`.
    ///
    /// Results below the smallest normal number may be flushed to zero, as GPUs do, and one
    /// that rounds beyond the largest `f32` may be infinite.
    pub fn accepts(&self, actual: f32, ulp: f64) -> bool {
        if self.value.is_nan() {
            return actual.is_nan();
        }
        self.error(actual) <= ulp
    }

    /// The distance of `actual` from the true result in units of `f32::EPSILON × magnitude`.
    pub fn error(&self, actual: f32) -> f64 {
        let (actual, largest) = (f64::from(actual), f64::from(f32::MAX));
        if actual == self.value || (self.value.is_nan() && actual.is_nan()) {
            return 0.0;
        }
        if actual.is_infinite() && self.value.abs() >= largest && actual * self.value > 0.0 {
            return 0.0;
        }
        let flushed = f64::from(f32::MIN_POSITIVE);
        // A NaN where none should be is not below any number, and goes on.
        let distance = (actual - self.value).abs() - flushed;
        if distance <= 0.0 {
            return 0.0;
        }
        let error = distance / (f64::from(f32::EPSILON) * self.magnitude);
        if error.is_nan() { f64::INFINITY } else { error }
    }
}

/// Evaluates one operation.
///
/// # Panics
/// For inputs that the operation refuses on every device.
pub fn evaluate(op: &Op, inputs: &[&[f32]]) -> Vec<Expected> {
    let x = inputs[0];
    match *op {
        Op::BiasAdd { rows, cols } => bias_add(x, inputs[1], rows, cols),
        Op::Softmax => rows_of(x, 1, x.len(), softmax),
        Op::LogSoftmax => rows_of(x, 1, x.len(), log_softmax),
        Op::SoftmaxRows { rows, cols } => rows_of(x, rows, cols, softmax),
        Op::LogSoftmaxRows { rows, cols } => rows_of(x, rows, cols, log_softmax),
        Op::LayerNorm { cols, epsilon, .. } => norm(x, cols, wide(epsilon), true, |i, y| {
            affine(y, inputs[1][i], inputs[2][i])
        }),
        Op::RmsNorm { cols, epsilon, .. } => norm(x, cols, wide(epsilon), false, |i, y| {
            affine(y, inputs[1][i], 0.0)
        }),
        Op::Matmul { m, k, n } => matmul(x, inputs[1], Matmul::new(m, k, n)),
        Op::MatmulWith { options } => matmul(x, inputs[1], options),
        Op::Transpose { rows, cols } => transpose(x, rows, cols),
        Op::Rearrange { ref options } => rearrange(x, options),
        Op::ReduceAxis { ref options } => reduce_axis(x, options),
        Op::UnpackBytes { stride } => unpack_bytes(x, stride),
        Op::PackBytes { stride } => pack_bytes(x, stride),
        Op::ConcatRows { a_cols, b_cols, .. } => concat_rows([x, inputs[1]], [a_cols, b_cols]),
        Op::GatherRows { rows, cols } => gather_rows(x, inputs[1], [rows, cols]),
        Op::Attention { ref options } => attention(inputs, options),
        Op::Rope { ref options } => rope(x, options),
        Op::TakeAlongRows { cols, k, .. } => take_along_rows(x, inputs[1], [cols, k]),
        Op::ArgmaxRows { cols, .. } => x.chunks(cols.max(1)).map(argmax).collect(),
        Op::ScatterRows { rows, cols } => row_functions::scatter([x, inputs[1]], [rows, cols]),
        Op::CumsumRows { cols, .. } => row_functions::scan(x, cols, false),
        Op::CumprodRows { cols, .. } => row_functions::scan(x, cols, true),
        Op::SortRows { cols, .. } => row_functions::sort(x, cols),
        Op::ArgsortRows { cols, .. } => row_functions::argsort(x, cols),
        Op::FftRows { len, .. } => row_functions::fft(x, len),
        Op::TopKRows { cols, k, .. } => x
            .chunks(cols.max(1))
            .flat_map(|row| top_k(row, k))
            .collect(),
        Op::Convolve2d { ref options } => convolve2d(x, inputs[1], options),
        Op::ConvolveLayer { ref options } => convolve_layer(x, inputs[1], options),
        Op::Dot => vec![sum(x
            .iter()
            .zip(inputs[1])
            .map(|(&a, &b)| wide(a) * wide(b)))],
        Op::Sum => vec![sum(x.iter().copied().map(wide))],
        Op::Mean => vec![mean(x)],
        Op::Max => vec![extreme(x, f64::max)],
        Op::Min => vec![extreme(x, f64::min)],
        Op::Argmax => vec![argmax(x)],
        Op::VecAdd
        | Op::Sub
        | Op::Mul
        | Op::Div
        | Op::Minimum
        | Op::Maximum
        | Op::Pow
        | Op::Equal
        | Op::Less
        | Op::LessEqual
        | Op::KeepWhere
        | Op::KeepUnless => zip(inputs, |a, b| binary(op, a, b)),
        Op::SiluMul => gated(&Op::Swish, inputs),
        Op::GeluMul => gated(&Op::GeluTanh, inputs),
        Op::Custom(ref call) => custom(call, inputs),
        _ => x.iter().map(|&x| unary(op, wide(x))).collect(),
    }
}

/// Its own function, the only one there is.
fn custom(call: &crate::ops::custom::CustomCall, inputs: &[&[f32]]) -> Vec<Expected> {
    let mut values = vec![0.0; inputs[0].len()];
    call.run(
        crate::instruction_set::InstructionSet::best(),
        inputs,
        &mut values,
    );
    let exact = |value| Expected::exact(wide(value));
    values.into_iter().map(exact).collect()
}

fn wide(x: f32) -> f64 {
    f64::from(x)
}

/// Evaluates an elementwise operation of numbers, which need not be numbers of `f32`.
#[cfg(test)]
pub(crate) fn of_numbers(op: &Op, inputs: &[f64]) -> f64 {
    match (op, inputs) {
        (Op::SiluMul, &[a, b]) => unary(&Op::Swish, a).value * b,
        (Op::GeluMul, &[a, b]) => unary(&Op::GeluTanh, a).value * b,
        (op, &[x]) => unary(op, x).value,
        (op, inputs) => binary(op, inputs[0], inputs[1]),
    }
}

fn binary(op: &Op, a: f64, b: f64) -> f64 {
    match op {
        Op::VecAdd => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        Op::Minimum => propagate(a, b, f64::min),
        Op::Maximum => propagate(a, b, f64::max),
        Op::Pow => a.powf(b),
        Op::Equal => f64::from(a == b),
        Op::Less => f64::from(a < b),
        Op::LessEqual => f64::from(a <= b),
        Op::KeepWhere if b == 0.0 => -0.0,
        Op::KeepUnless if b != 0.0 => -0.0,
        Op::KeepWhere | Op::KeepUnless => a,
        _ => unreachable!("{} is not an operation of two inputs", op.name()),
    }
}

fn unary(op: &Op, x: f64) -> Expected {
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    Expected::exact(match *op {
        Op::Relu => propagate(x, 0.0, f64::max),
        Op::LeakyRelu { negative_slope } if x < 0.0 => x * wide(negative_slope),
        Op::Elu { alpha } if x <= 0.0 => wide(alpha) * x.exp_m1(),
        Op::LeakyRelu { .. } | Op::Elu { .. } => x,
        Op::Sigmoid => logistic(x),
        Op::Tanh => x.tanh(),
        Op::Swish | Op::Gelu | Op::GeluTanh | Op::Hardswish | Op::Mish
            if x == f64::NEG_INFINITY =>
        {
            0.0
        }
        Op::Swish => x * logistic(x),
        Op::Gelu => x * 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        Op::GeluTanh => return gelu_tanh(x),
        Op::Clip { min, max } => propagate(propagate(x, wide(min), f64::max), wide(max), f64::min),
        Op::Exp => x.exp(),
        Op::Log => x.ln(),
        Op::Sqrt => x.sqrt(),
        Op::Abs => x.abs(),
        Op::Neg => -x,
        Op::Scale { factor } => x * wide(factor),
        Op::Square => x * x,
        Op::Reciprocal => 1.0 / x,
        Op::Rsqrt => 1.0 / x.sqrt(),
        Op::Relu6 => propagate(propagate(x, 0.0, f64::max), 6.0, f64::min),
        Op::Hardswish => x * propagate(propagate(x + 3.0, 0.0, f64::max), 6.0, f64::min) / 6.0,
        Op::Sign if x == 0.0 || x.is_nan() => x,
        Op::Sign => x.signum(),
        Op::Round => x.round_ties_even(),
        Op::Floor => x.floor(),
        Op::Ceil => x.ceil(),
        Op::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        Op::Mish => x * x.exp().ln_1p().tanh(),
        Op::Erf => libm::erf(x),
        Op::Sin => return periodic(x, [x.sin(), x.cos()]),
        Op::Cos => return periodic(x, [x.cos(), x.sin()]),
        _ => unreachable!("{} is not a unary operation", op.name()),
    })
}

/// `x/2 · (1 + tanh u) = x / (1 + e⁻²ᵘ)`: a rounding of u is amplified by 2u in the tail.
fn gelu_tanh(x: f64) -> Expected {
    let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
    let value = x / (1.0 + (-2.0 * u).exp());
    let value = if x.is_infinite() && x < 0.0 {
        0.0
    } else {
        value
    };
    Expected::new(value, scaled(value, 1.0 + (2.0 * u).abs()))
}

/// The sine or, with the roles exchanged, the cosine of `x`: a rounding of `x` moves it by the other one.
fn periodic(x: f64, [value, slope]: [f64; 2]) -> Expected {
    // Beyond 2²² numbers are half a radian apart: NaN is the stated result.
    if x.abs() > 4_194_304.0 {
        return Expected::exact(f64::NAN);
    }
    let change = (slope.abs() + f64::from(f32::EPSILON) * x.abs()).min(1.0);
    Expected::new(value, value.abs() + x.abs() * change)
}

/// `|value| · factor`, where a result of zero has no error to amplify.
fn scaled(value: f64, factor: f64) -> f64 {
    if value == 0.0 {
        0.0
    } else {
        value.abs() * factor
    }
}

fn propagate(a: f64, b: f64, choose: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    choose(a, b)
}

fn zip(inputs: &[&[f32]], f: impl Fn(f64, f64) -> f64) -> Vec<Expected> {
    let pairs = inputs[0].iter().zip(inputs[1]);
    pairs
        .map(|(&a, &b)| Expected::exact(f(wide(a), wide(b))))
        .collect()
}

/// An activation times the second input.
fn gated(activation: &Op, inputs: &[&[f32]]) -> Vec<Expected> {
    let tiny = f64::from(f32::MIN_POSITIVE);
    // What may count as zero before it is multiplied.
    let flushed = tiny / f64::from(f32::EPSILON);
    let product = |(&a, &b): (&f32, &f32)| {
        let gate = unary(activation, wide(a));
        let value = if gate.value.abs() < tiny {
            0.0
        } else {
            gate.value
        };
        Expected::new(value * wide(b), (gate.magnitude + flushed) * wide(b).abs())
    };
    inputs[0].iter().zip(inputs[1]).map(product).collect()
}

fn bias_add(x: &[f32], bias: &[f32], rows: usize, cols: usize) -> Vec<Expected> {
    let at = |i: usize| wide(x[i]) + wide(bias[i % cols]);
    (0..rows * cols).map(|i| Expected::exact(at(i))).collect()
}

fn sum(terms: impl Iterator<Item = f64>) -> Expected {
    let (value, magnitude) = terms.fold((0.0, 0.0), |(s, m), t| (s + t, m + t.abs()));
    Expected::new(value, magnitude)
}

fn mean(x: &[f32]) -> Expected {
    let (total, n) = (sum(x.iter().copied().map(wide)), x.len() as f64);
    Expected::new(total.value / n, total.magnitude / n)
}

fn extreme(x: &[f32], choose: fn(f64, f64) -> f64) -> Expected {
    let values = x.iter().copied().map(wide);
    Expected::exact(
        values
            .reduce(|a, b| propagate(a, b, choose))
            .unwrap_or(f64::NAN),
    )
}

fn argmax(x: &[f32]) -> Expected {
    let first_nan = x.iter().position(|v| v.is_nan());
    let first_largest = || {
        let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        x.iter().position(|&v| v == largest)
    };
    let index = first_nan.or_else(first_largest).unwrap_or(0);
    Expected::new(index as f64, 0.0)
}

fn rows_of(x: &[f32], rows: usize, cols: usize, f: fn(&[f32]) -> Vec<Expected>) -> Vec<Expected> {
    if rows * cols == 0 {
        return Vec::new();
    }
    x.chunks(cols).flat_map(f).collect()
}

/// The row's maximum and `Σ exp(xⱼ − max)`.
fn exp_sum(row: &[f32]) -> (f64, f64) {
    let max = extreme(row, f64::max).value;
    let total = row.iter().map(|&x| (wide(x) - max).exp()).sum();
    (max, total)
}

fn softmax(row: &[f32]) -> Vec<Expected> {
    let (max, total) = exp_sum(row);
    let one = |&x: &f32| {
        let value = (wide(x) - max).exp() / total;
        Expected::new(value, scaled(value, 1.0 + (wide(x) - max).abs()))
    };
    row.iter().map(one).collect()
}

fn log_softmax(row: &[f32]) -> Vec<Expected> {
    let (max, total) = exp_sum(row);
    let one = |&x: &f32| {
        let shifted = wide(x) - max;
        // Rounding the sum, which is at least 1, moves its logarithm by as much.
        Expected::new(shifted - total.ln(), shifted.abs() + total.ln().abs() + 1.0)
    };
    row.iter().map(one).collect()
}

/// `(x − mean) / √(variance + epsilon)` of each row, around 0 where it is not `centred`; and what
/// `finish` makes of the value in each column.
fn norm(
    x: &[f32],
    cols: usize,
    epsilon: f64,
    centred: bool,
    finish: impl Fn(usize, Expected) -> Expected,
) -> Vec<Expected> {
    // What is below the smallest normal number may count as zero before the gain enlarges it.
    let flushed = f64::from(f32::MIN_POSITIVE) / f64::from(f32::EPSILON);
    let of_row = |row: &[f32]| {
        let centre = mean(if centred { row } else { &[0.0] });
        let deviations: Vec<f64> = row.iter().map(|&x| wide(x) - centre.value).collect();
        let squares: f64 = deviations.iter().map(|d| d * d).sum();
        let deviation = (squares / row.len() as f64 + epsilon).sqrt();
        let one = |(i, (&x, d)): (usize, (&f32, f64))| {
            let value = d / deviation;
            // The difference's roundings, and those of what it is divided by.
            let difference = (wide(x).abs() + centre.magnitude + flushed) / deviation;
            finish(i, Expected::new(value, difference + value.abs() + flushed))
        };
        let pairs = row.iter().zip(deviations).enumerate();
        pairs.map(one).collect::<Vec<_>>()
    };
    x.chunks(cols.max(1)).flat_map(of_row).collect()
}

/// `y · gain + bias`.
fn affine(y: Expected, gain: f32, bias: f32) -> Expected {
    Expected::new(
        y.value * wide(gain) + wide(bias),
        y.magnitude * wide(gain).abs() + wide(bias).abs(),
    )
}

fn matmul(a: &[f32], b: &[f32], options: Matmul) -> Vec<Expected> {
    let Matmul { m, k, n, .. } = options;
    let place = |transposed: bool, [row, col]: [usize; 2], [rows, cols]: [usize; 2]| {
        if transposed {
            col * rows + row
        } else {
            row * cols + col
        }
    };
    let a = |i, p| wide(a[place(options.transpose_a, [i, p], [m, k])]);
    let b = |p, j| wide(b[place(options.transpose_b, [p, j], [k, n])]);
    // Sums of parts are added one after the other, which that of more parts is less exact by.
    let parts = (k as f64 / 65_536.0).max(1.0);
    let at = |i: usize, j: usize| {
        let sum = sum((0..k).map(|p| a(i, p) * b(p, j)));
        Expected::new(sum.value, sum.magnitude * parts)
    };
    let cells = |i: usize| (0..n).map(move |j| (i, j));
    let all = (0..if n == 0 { 0 } else { m }).flat_map(cells);
    all.map(|(i, j)| at(i, j)).collect()
}

fn transpose(x: &[f32], rows: usize, cols: usize) -> Vec<Expected> {
    let at = |i: usize| Expected::exact(wide(x[i % rows * cols + i / rows]));
    (0..rows * cols).map(at).collect()
}

fn convolve2d(input: &[f32], kernel: &[f32], conv: &Conv2d) -> Vec<Expected> {
    let (rows, cols) = conv.output_shape();
    let (top, left) = conv.padding_before();
    let at = |output: usize| {
        let origin = (
            output / cols * conv.stride_rows,
            output % cols * conv.stride_cols,
        );
        let read = |tap: usize| {
            let row = (origin.0 + tap / conv.kernel_cols).checked_sub(top)?;
            let col = (origin.1 + tap % conv.kernel_cols).checked_sub(left)?;
            let inside = row < conv.input_rows && col < conv.input_cols;
            inside.then(|| wide(input[row * conv.input_cols + col]))
        };
        // Outside are zeros, which make NaN of an infinite weight.
        sum((0..kernel.len()).map(|tap| read(tap).unwrap_or(0.0) * wide(kernel[tap])))
    };
    (0..rows * cols).map(at).collect()
}

fn convolve_layer(input: &[f32], weights: &[f32], layer: &ConvLayer) -> Vec<Expected> {
    let (rows, cols) = layer.output_shape();
    let (top, left) = layer.padding_before();
    let image = &layer.image;
    let [channels, filters] = [layer.channels, layer.filters].map(|all| all / layer.groups);
    let taps = image.kernel_rows * image.kernel_cols;
    let at = |output: usize| {
        let (map, place) = (output / (rows * cols), output % (rows * cols));
        let (which, filter) = (map / layer.filters, map % layer.filters);
        let first = which * layer.channels + filter / filters * channels;
        let origin = (
            place / cols * image.stride_rows,
            place % cols * image.stride_cols,
        );
        let read = |channel: usize, tap: usize| {
            let down = tap / image.kernel_cols * layer.dilation_rows;
            let across = tap % image.kernel_cols * layer.dilation_cols;
            let row = (origin.0 + down).checked_sub(top)?;
            let col = (origin.1 + across).checked_sub(left)?;
            let inside = row < image.input_rows && col < image.input_cols;
            let row = (first + channel) * image.input_rows + row;
            inside.then(|| wide(input[row * image.input_cols + col]))
        };
        let term = |i: usize| {
            let weight = wide(weights[filter * channels * taps + i]);
            read(i / taps, i % taps).unwrap_or(0.0) * weight
        };
        sum((0..channels * taps).map(term))
    };
    // None of these is too large, but three of them may be where the fourth is 0.
    let (maps, plane) = (layer.batch * layer.filters, rows * cols);
    (0..maps * plane).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_is_accepted_where_it_is_the_result_only() {
        for value in [0.0, 1.0, -3e38, f64::INFINITY] {
            let expected = Expected::exact(value);
            assert!(!expected.accepts(f32::NAN, 8.0), "{expected:?}");
            assert!(expected.accepts(value as f32, 0.5), "{expected:?}");
        }
        let nan = Expected::exact(f64::NAN);
        assert!(nan.accepts(f32::NAN, 8.0) && !nan.accepts(0.0, 8.0));
        let tiny = Expected::exact(1e-39);
        assert!(tiny.accepts(0.0, 8.0), "as GPUs flush it");
    }
}

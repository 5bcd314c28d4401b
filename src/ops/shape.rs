//! Validation of lengths and parameters, shared by all back-ends and done before they are called.

use std::borrow::Cow;

use crate::error::{Error, MAX_LEN, Result};
use crate::ops::ConvLayer;
use crate::ops::{Conv2d, Matmul, Op, Padding, bytes, llm_ops};

/// The number of indices that `f32` holds exactly: 2²⁴.
pub(crate) const MAX_EXACT_INDEX: usize = 1 << 24;

/// Reasons for the lengths of inputs.
const LIKE_A: &str = " like `a`";
const LIKE_FIRST: &str = " like the first input";
const OF_INPUT: &str = " (rows × columns of the input)";
const OF_KERNEL: &str = " (rows × columns of the kernel)";

/// Checks the lengths of an operation's inputs against each other and its parameters.
///
/// Returns the length of its result.
pub(crate) fn output_len(op: &Op, inputs: &[usize]) -> Result<usize> {
    let len = |index: usize| inputs.get(index).copied().unwrap_or(0);
    let name = |index: usize| op.inputs().get(index).copied().unwrap_or("input");
    let expect = |index, expected, reason| check_len_for(name(index), expected, len(index), reason);
    if inputs.len() != op.inputs().len() {
        return check_len("inputs", op.inputs().len(), inputs.len()).map(|()| 0);
    }
    match *op {
        Op::Clip { min, max } => check_clip(min, max).map(|()| len(0)),
        Op::BiasAdd { rows, cols } => {
            expect(0, product("x", rows, cols)?, " (rows × cols)")?;
            expect(1, cols, " (cols)")?;
            Ok(len(0))
        }
        Op::SoftmaxRows { rows, cols }
        | Op::LogSoftmaxRows { rows, cols }
        | Op::CumsumRows { rows, cols }
        | Op::CumprodRows { rows, cols }
        | Op::Transpose { rows, cols } => {
            expect(0, product("x", rows, cols)?, " (rows × cols)")?;
            Ok(len(0))
        }
        Op::UnpackBytes { stride } => bytes::unpacked_len(stride, len(0)),
        Op::PackBytes { stride } => bytes::packed_len(stride, len(0)),
        Op::GatherRows { .. }
        | Op::ScatterRows { .. }
        | Op::TakeAlongRows { .. }
        | Op::ArgmaxRows { .. }
        | Op::TopKRows { .. }
        | Op::SortRows { .. }
        | Op::ArgsortRows { .. }
        | Op::FftRows { .. }
        | Op::Rope { .. }
        | Op::Attention { .. } => llm_ops::output_len(op, inputs),
        Op::Rearrange { ref options } => options.check(len(0)),
        Op::ReduceAxis { ref options } => options.check(len(0)),
        Op::ConcatRows {
            rows,
            a_cols,
            b_cols,
        } => {
            expect(0, product("a", rows, a_cols)?, " (rows × columns of `a`)")?;
            expect(1, product("b", rows, b_cols)?, " (rows × columns of `b`)")?;
            // The sum fits, unless there are no rows.
            product("y", rows, a_cols.saturating_add(b_cols))
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
        } => {
            check_epsilon(epsilon)?;
            expect(0, product("x", rows, cols)?, " (rows × cols)")?;
            (1..inputs.len()).try_for_each(|input| expect(input, cols, " (cols)"))?;
            Ok(len(0))
        }
        Op::Matmul { m, k, n }
        | Op::MatmulWith {
            options: Matmul { m, k, n, .. },
        } => {
            expect(0, product("a", m, k)?, " (m × k)")?;
            expect(1, product("b", k, n)?, " (k × n)")?;
            product("c", m, n)
        }
        Op::MatmulCached(ref call) => call.output_len(len(0)),
        Op::CustomReduce(ref call) => call.output_len(len(0)),
        Op::Convolve2d { options } => {
            check_conv2d(&options)?;
            let input = product("input", options.input_rows, options.input_cols)?;
            expect(0, input, OF_INPUT)?;
            let kernel = product("kernel", options.kernel_rows, options.kernel_cols)?;
            expect(1, kernel, OF_KERNEL)?;
            let (rows, cols) = options.output_shape();
            product("result", rows, cols)
        }
        Op::ConvolveLayer { ref options } => layer_len(options, expect),
        Op::Dot => expect(1, len(0), LIKE_A).map(|()| 1),
        Op::Sum => Ok(1),
        Op::Max | Op::Min | Op::Mean => check_not_empty(op, len(0)).map(|()| 1),
        // Its index is an `f32` here; `device/methods.rs` goes beyond.
        Op::Argmax => {
            check_not_empty(op, len(0))?;
            check_limit("the length of `x`", len(0), MAX_EXACT_INDEX).map(|()| 1)
        }
        Op::Softmax | Op::LogSoftmax => Ok(len(0)),
        // All inputs are as long as the result.
        _ if op.is_elementwise() => {
            // That is `a`, unless the operation is a custom one.
            let reason = if let Op::Custom(_) = op {
                LIKE_FIRST
            } else {
                LIKE_A
            };
            (1..inputs.len()).try_for_each(|input| expect(input, len(0), reason))?;
            Ok(len(0))
        }
        _ => Err(without_rule(op)),
    }
}

/// Creates the error of an operation that has no rule where it was given.
#[cold]
pub(crate) fn without_rule(op: &Op) -> Error {
    Error::invalid("op", op.name(), "another operation")
}

/// Checks the lengths of a layer's input and weights. Returns the length of its result.
fn layer_len(
    options: &ConvLayer,
    expect: impl Fn(usize, usize, &'static str) -> Result<()>,
) -> Result<usize> {
    check_layer(options)?;
    let [channels, _] = options.of_group();
    let image = &options.image;
    let maps = |what, first, second, [rows, cols]: [usize; 2]| {
        // An image may not be too large either where there are none.
        let halves = [[first, second], [rows, cols]].map(|half| volume_of(&half));
        let size = match halves {
            [Some(maps), Some(map)] => volume_of(&[maps, map]),
            _ => None,
        };
        size.ok_or_else(|| overflow(what, &[first, second, rows, cols]))
    };
    let input = [image.input_rows, image.input_cols];
    let len = maps("input", options.batch, options.channels, input)?;
    expect(0, len, " (batch × channels × rows × columns)")?;
    let kernel = [image.kernel_rows, image.kernel_cols];
    let len = maps("weights", options.filters, channels, kernel)?;
    expect(1, len, " (filters × channels of a group × rows × columns)")?;
    let (rows, cols) = options.output_shape();
    maps("result", options.batch, options.filters, [rows, cols])
}

/// Returns `LengthMismatch` unless the two lengths are equal.
pub(crate) fn check_len(what: &'static str, expected: usize, actual: usize) -> Result<()> {
    check_len_for(what, expected, actual, "")
}

/// [`check_len`] of a matrix; the reason has its sizes by name.
#[inline(never)] // Many call it, and it is never slow.
pub(crate) fn check_matrix(
    what: &'static str,
    [rows, cols]: [usize; 2],
    actual: usize,
    reason: &'static str,
) -> Result<()> {
    check_len_for(what, product(what, rows, cols)?, actual, reason)
}

/// [`check_len`] of a length that has a [reason](Error::LengthMismatch::reason).
pub(crate) fn check_len_for(
    what: &'static str,
    expected: usize,
    actual: usize,
    reason: &'static str,
) -> Result<()> {
    if expected == actual {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        what,
        expected,
        actual,
        reason,
    })
}

/// Returns `LimitExceeded` if `value` exceeds `limit`.
pub(crate) fn check_limit(what: &'static str, value: usize, limit: usize) -> Result<()> {
    if value <= limit {
        return Ok(());
    }
    Err(Error::LimitExceeded {
        what,
        value: value as u64,
        limit: limit as u64,
    })
}

pub(super) fn check_not_empty(op: &Op, len: usize) -> Result<()> {
    if len > 0 {
        return Ok(());
    }
    Err(Error::Empty { op: op.name() })
}

pub(crate) fn product(what: &'static str, rows: usize, cols: usize) -> Result<usize> {
    volume(what, [rows, cols])
}

/// Returns the number of elements of a shape.
///
/// # Errors
/// `ShapeOverflow` with the whole shape if an array cannot hold them.
pub(crate) fn volume<const N: usize>(what: &'static str, shape: [usize; N]) -> Result<usize> {
    volume_of(&shape).ok_or_else(|| overflow(what, &shape))
}

/// Returns the number of elements of a shape; `None` if an array cannot hold them.
pub(crate) fn volume_of(shape: &[usize]) -> Option<usize> {
    let within = |size: &usize| *size <= MAX_LEN;
    let times = |size: usize, &length: &usize| size.checked_mul(length).filter(within);
    let Some((&first, rest)) = shape.split_first() else {
        return Some(1);
    };
    // A zero makes up for the first length alone.
    rest.iter().try_fold(first, times).filter(within)
}

/// Creates the error of a shape with more elements than an array can hold.
#[cold]
pub(crate) fn overflow(what: &'static str, shape: &[usize]) -> Error {
    let shape = shape.to_vec();
    Error::ShapeOverflow { what, shape }
}

fn check_clip(min: f32, max: f32) -> Result<()> {
    // Also false where either is NaN.
    if min <= max {
        return Ok(());
    }
    let requirement = format!("at most `max` ({}), and neither may be NaN", number(max));
    Err(Error::invalid("min", number(min), requirement))
}

/// Refuses an epsilon that a GPU may round to zero: a row of zeros would be divided by zero.
fn check_epsilon(epsilon: f32) -> Result<()> {
    if (f32::MIN_POSITIVE..=f32::MAX).contains(&epsilon) {
        return Ok(());
    }
    let requirement = "a finite number of at least 1.2e-38";
    Err(Error::invalid("epsilon", number(epsilon), requirement))
}

/// Formats a number. Rust's own formatting would be a tenth of the WebAssembly module.
pub(crate) fn number(value: f32) -> String {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen::JsCast as _;
    #[cfg(target_arch = "wasm32")]
    return wasm_bindgen::JsValue::from(value)
        .unchecked_into::<js_sys::Object>()
        .to_string()
        .into();
    #[cfg(not(target_arch = "wasm32"))]
    value.to_string()
}

fn check_conv2d(conv: &Conv2d) -> Result<()> {
    let at_least_one = [
        ("kernel_rows", conv.kernel_rows),
        ("kernel_cols", conv.kernel_cols),
        ("stride_rows", conv.stride_rows),
        ("stride_cols", conv.stride_cols),
    ];
    check_not_zero(&at_least_one)?;
    check_fits(conv, conv)
}

/// The largest number of rows or columns of a dilated kernel.
pub(crate) const MAX_KERNEL_SIDE: usize = 1 << 30;

fn check_layer(layer: &ConvLayer) -> Result<()> {
    let at_least_one = [
        ("groups", layer.groups),
        ("dilation_rows", layer.dilation_rows),
        ("dilation_cols", layer.dilation_cols),
    ];
    check_not_zero(&at_least_one)?;
    let divided = [("channels", layer.channels), ("filters", layer.filters)];
    let mut divided = divided.into_iter();
    if let Some((what, value)) = divided.find(|(_, all)| all % layer.groups != 0) {
        let requirement = format!("a multiple of `groups` ({})", layer.groups);
        return Err(invalid(what, value, requirement));
    }
    check_conv2d(&layer.image)?;
    check_spread(layer)?;
    check_fits(&layer.image, &layer.window())
}

/// Checks that positions in the dilated kernel are numbers of 32 bits.
fn check_spread(layer: &ConvLayer) -> Result<()> {
    let Conv2d {
        kernel_rows,
        kernel_cols,
        ..
    } = layer.image;
    // Factors first, so that products are exact. A kernel of one element has no neighbours to be apart.
    let dilation = |side: usize, dilation: usize| if side > 1 { dilation } else { 1 };
    let rows = dilation(kernel_rows, layer.dilation_rows);
    let cols = dilation(kernel_cols, layer.dilation_cols);
    check_limit("the rows of the kernel", kernel_rows, MAX_KERNEL_SIDE)?;
    check_limit("the columns of the kernel", kernel_cols, MAX_KERNEL_SIDE)?;
    check_limit("the dilation of the rows", rows, MAX_KERNEL_SIDE)?;
    check_limit("the dilation of the columns", cols, MAX_KERNEL_SIDE)?;
    let window = layer.window();
    let (rows, cols) = (window.kernel_rows, window.kernel_cols);
    check_limit("the rows of the dilated kernel", rows, MAX_KERNEL_SIDE)?;
    check_limit("the columns of the dilated kernel", cols, MAX_KERNEL_SIDE)
}

fn check_not_zero(named: &[(&'static str, usize)]) -> Result<()> {
    match named.iter().find(|&&(_, value)| value == 0) {
        Some(&(what, _)) => Err(invalid(what, 0, "at least 1")),
        None => Ok(()),
    }
}

/// Checks that the kernel, with its dilation, fits into the input.
fn check_fits(conv: &Conv2d, window: &Conv2d) -> Result<()> {
    let check = |what, kernel: usize, spread: usize, input: usize| {
        if conv.padding == Padding::Same || spread <= input {
            return Ok(());
        }
        let value = if spread == kernel {
            kernel.to_string()
        } else {
            format!("{kernel}, spread over {spread} by its dilation")
        };
        let requirement =
            format!("at most {input}, the size of the input, unless the padding is `same`");
        Err(Error::invalid(what, value, requirement))
    };
    let (rows, cols) = (window.kernel_rows, window.kernel_cols);
    check("kernel_rows", conv.kernel_rows, rows, conv.input_rows)?;
    check("kernel_cols", conv.kernel_cols, cols, conv.input_cols)
}

pub(super) fn invalid(
    what: &'static str,
    value: usize,
    requirement: impl Into<Cow<'static, str>>,
) -> Error {
    Error::invalid(what, value.to_string(), requirement)
}

//! A row for each function: its arguments with their defaults, and the method that records it.

use crate::error::{Error, Result, argument as in_camel_case};
use crate::js_graph::Words;
use crate::js_numeric::arguments::{Argument, Call, Indices, Sizes};
use crate::lazy::recording::Recording;
use crate::lazy::{Axes, Border, Interpolation, PoolOptions, Tensor};

/// A function that JavaScript calls.
pub(super) struct Function {
    /// The name in Rust.
    pub(super) name: &'static str,
    /// Writes the line that `js/numeric/functions.js` reads.
    pub(super) describe: fn(&mut String),
    pub(super) record: fn(&mut Call<'_>) -> Result<Vec<Tensor>>,
}

/// A result of one tensor or of several.
trait Results {
    fn list(self) -> Vec<Tensor>;
}

impl Results for Tensor {
    fn list(self) -> Vec<Tensor> {
        vec![self]
    }
}

impl Results for Vec<Tensor> {
    fn list(self) -> Vec<Tensor> {
        self
    }
}

/// Adds an argument to a line: its name and its type, with a question mark if it has a default.
fn describe(line: &mut String, name: &str, is_optional: bool, kind: &str) {
    line.push_str(&in_camel_case(name));
    line.push(':');
    line.push_str(kind);
    line.push_str(if is_optional { "? " } else { " " });
}

/// Makes rows of functions: `OWNER NAME(ARGUMENTS; OPTIONS) RESULT = |call| …`. The owner is `device`, `class`, `tensor`
/// or, for a tensor of indices, `indices`. The result is a tensor of the type `f32`, `u32` or the `same` as the first
/// tensor, or `several` of it. An argument without a default must be given; the scripts draw a `seed` without one.
macro_rules! functions {
    ($(
        $owner:ident $name:ident($($arg:ident: $type:ty $(= $default:expr)?),* $(; $($option:ident: $option_type:ty $(= $option_default:expr)?),+)?)
        $result:ident = |$call:ident| $record:expr;
    )*) => {
        pub(super) const FUNCTIONS: &[Function] = &[$(
            Function {
                name: stringify!($name),
                describe: |line| {
                    line.push_str(concat!(stringify!($owner), " ", stringify!($result), " "));
                    line.push_str(&in_camel_case(stringify!($name)));
                    line.push(' ');
                    $( describe(line, stringify!($arg), functions!(@is $($default)?), <$type>::TYPE); )*
                    $(
                        line.push_str("; ");
                        $( describe(line, stringify!($option), true, <$option_type>::TYPE); )+
                    )?
                },
                record: |$call| {
                    $( let $arg = functions!(@read $call, $type $(, $default)?); )*
                    $($( let $option = functions!(@read $call, $option_type $(, $option_default)?); )+)?
                    Ok(Results::list($record?))
                },
            },
        )*];
    };
    (@is) => { false };
    (@is $default:expr) => { true };
    (@read $call:ident, $type:ty) => { $call.required::<$type>() };
    (@read $call:ident, $type:ty, $default:expr) => { $call.optional::<$type>($default) };
}

functions! {
    device arange(start: f64, end: Option<f64> = None, step: f64 = 1.0) f32 = |call| {
        let (start, end) = end.map_or((0.0, start), |end| (start, end));
        call.tensors().arange_f64(start, end, step)
    };
    device linspace(start: f64, end: f64, count: usize) f32 = |call| call.tensors().linspace_f64(start, end, count);
    device eye(rows: usize, cols: Option<usize> = None) f32 = |call| call.tensors().eye(rows, cols.unwrap_or(rows));
    tensor zeros_like() f32 = |call| call.own().zeros_like();
    tensor ones_like() f32 = |call| call.own().ones_like();
    tensor full_like(value: f32) f32 = |call| call.own().full_like(value);

    tensor pad(sides: Vec<[usize; 2]>; mode: PadMode = PadMode::Constant, value: f32 = 0.0) same = |call| match mode {
        PadMode::Constant => call.own().pad_with(&sides, value),
        PadMode::Edge => call.own().pad(&sides, Border::Edge),
        PadMode::Reflect => call.own().pad(&sides, Border::Reflect),
    };
    tensor tile(counts: Sizes) same = |call| call.own().tile(&counts.0);
    tensor repeat(count: usize, axis: isize) same = |call| call.own().repeat(count, axis);
    tensor roll(shift: isize, axis: isize) same = |call| call.own().roll(shift, axis);
    tensor flip(axes: Axes = Axes::all()) same = |call| call.own().flip(axes);
    tensor split(parts: Parts, axis: isize = 0) several = |call| match parts {
        Parts::Count(count) => call.own().split(count, axis),
        Parts::At(indices) => call.own().split_at(&indices, axis),
    };

    tensor prod(axes: Axes = Axes::all(); keep_dims: bool = false) f32 = |call| call.own().prod(kept(axes, keep_dims));
    tensor norm(axes: Axes = Axes::all(); p: f32 = 2.0, keep_dims: bool = false) f32 = |call| {
        call.own().norm(p, kept(axes, keep_dims))
    };
    tensor cumsum(axis: isize) f32 = |call| call.own().cumsum(axis);
    tensor cumprod(axis: isize) f32 = |call| call.own().cumprod(axis);
    tensor sort(axis: isize = -1) same = |call| call.own().sort(axis);
    tensor argsort(axis: isize = -1) u32 = |call| call.own().argsort(axis);

    tensor modulo(b: Tensor) f32 = |call| call.own().modulo(&b);
    tensor fmod(b: Tensor) f32 = |call| call.own().fmod(&b);
    tensor atan2(x: Tensor) f32 = |call| call.own().atan2(&x);
    tensor logaddexp(b: Tensor) f32 = |call| call.own().logaddexp(&b);
    tensor hypot(b: Tensor) f32 = |call| call.own().hypot(&b);

    class einsum(labels: String, tensors: Vec<Tensor>) f32 = |call| {
        Tensor::einsum(&labels, &tensors.iter().collect::<Vec<_>>())
    };
    indices bincount(count: usize; weights: Option<Tensor> = None) f32 = |call| {
        call.own().bincount(count, weights.as_ref())
    };
    tensor histogram(bins: usize, start: f32, end: f32) f32 = |call| call.own().histogram(bins, start, end);
    tensor scatter_add(indices: Indices, source: Tensor, axis: isize = 0) f32 = |call| {
        call.own().scatter_add(&indices.0, &source, axis)
    };
    tensor dropout(rate: f32; seed: u64) f32 = |call| call.own().dropout(rate, seed);

    tensor resize(lengths: Sizes; mode: ResizeMode = ResizeMode::Bilinear, antialias: bool = false) f32 = |call| {
        call.own().resize(&lengths.0, mode.interpolation(antialias)?)
    };
    tensor max_pool(window: Vec<usize>; stride: Option<Sizes> = None, padding: Sizes = Sizes(vec![0]), ceil: bool = false)
    f32 = |call| call.own().max_pool(&pool(&window, stride, &padding, ceil));
    tensor avg_pool(
        window: Vec<usize>;
        stride: Option<Sizes> = None, padding: Sizes = Sizes(vec![0]), ceil: bool = false, count_padding: bool = true
    ) f32 = |call| {
        let options = pool(&window, stride, &padding, ceil);
        call.own().avg_pool(&if count_padding { options } else { options.without_padding() })
    };

    tensor fft(axis: isize = -1) f32 = |call| call.own().fft(axis);
    tensor ifft(axis: isize = -1) f32 = |call| call.own().ifft(axis);
    tensor rfft(axis: isize = -1) f32 = |call| call.own().rfft(axis);
    tensor irfft(length: usize, axis: isize = -1) f32 = |call| call.own().irfft(length, axis);
    tensor stft(window: Tensor, hop: usize) f32 = |call| call.own().stft(&window, hop);
    tensor istft(window: Tensor, hop: usize, length: usize) f32 = |call| call.own().istft(&window, hop, length);
}

fn kept(axes: Axes, keep_dims: bool) -> Axes {
    if keep_dims { axes.keep_dims() } else { axes }
}

/// Returns the options of windows. A single stride or padding is that of all axes.
fn pool(window: &[usize], stride: Option<Sizes>, padding: &Sizes, is_ceil: bool) -> PoolOptions {
    let of_all = |sizes: &Sizes| match sizes.0[..] {
        [one] => vec![one; window.len()],
        _ => sizes.0.clone(),
    };
    let mut options = PoolOptions::new(window).padding(&of_all(padding));
    if let Some(stride) = stride {
        options = options.stride(&of_all(&stride));
    }
    if is_ceil { options.ceil() } else { options }
}

/// The number of equal parts of an axis, or the indices where it is divided.
enum Parts {
    Count(usize),
    At(Vec<usize>),
}

impl Argument for Parts {
    const TYPE: &'static str = "parts";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        if words.whole() == 1 {
            Self::Count(words.whole())
        } else {
            Self::At(words.wholes())
        }
    }
}

#[derive(Clone, Copy)]
enum PadMode {
    Constant,
    Edge,
    Reflect,
}

impl Argument for PadMode {
    const TYPE: &'static str = "constant/edge/reflect";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        [Self::Constant, Self::Edge, Self::Reflect][words.whole().min(2)]
    }
}

#[derive(Clone, Copy)]
enum ResizeMode {
    Nearest,
    Bilinear,
    Bicubic,
}

impl ResizeMode {
    fn interpolation(self, is_antialiased: bool) -> Result<Interpolation> {
        match (self, is_antialiased) {
            (Self::Nearest, false) => Ok(Interpolation::Nearest),
            (Self::Nearest, true) => {
                Err(Error::invalid("antialias", "true", "false for `nearest`"))
            }
            (Self::Bilinear, false) => Ok(Interpolation::Bilinear),
            (Self::Bilinear, true) => Ok(Interpolation::BilinearAntialiased),
            (Self::Bicubic, false) => Ok(Interpolation::Bicubic),
            (Self::Bicubic, true) => Ok(Interpolation::BicubicAntialiased),
        }
    }
}

impl Argument for ResizeMode {
    const TYPE: &'static str = "nearest/bilinear/bicubic";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        [Self::Nearest, Self::Bilinear, Self::Bicubic][words.whole().min(2)]
    }
}

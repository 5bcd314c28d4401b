//! Elementwise operations on slices: the loops over the functions of `functions.rs`.

use super::InstructionSet;
use super::functions::{VecAdd, with_function};
use super::isa::{AHEAD, Isa, Kernel, dispatch};
use crate::ops::Op;

/// A function of one number.
pub(super) trait Unary: Copy {
    fn eval<I: Isa>(self, isa: I, x: I::F32) -> I::F32;
}

/// A function of two numbers.
pub(super) trait Binary: Copy {
    fn eval<I: Isa>(self, isa: I, a: I::F32, b: I::F32) -> I::F32;
}

/// One function an entry: `Name { parameters } |isa, x| expression`, where parameters are
/// vectors of equal elements. Without parameters there are no braces.
macro_rules! unary {
    ($($name:ident $({ $($parameter:ident),+ })? |$isa:ident, $x:ident| $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name { $($(pub(super) $parameter: f32),+)? }

        impl Unary for $name {
            #[inline(always)]
            fn eval<I: Isa>(self, $isa: I, $x: I::F32) -> I::F32 {
                $($(let $parameter = $isa.splat(self.$parameter);)+)?
                $body
            }
        }
    )*};
}
pub(super) use unary;

unary! {
    // A leaky rectifier whose slope is in (0, 1]: the larger of an element and of it times the slope.
    GentleRelu { negative_slope } |isa, x| isa.at_least(x, isa.mul(x, negative_slope));
}

/// One function an entry: `Name |isa, a, b| expression`.
macro_rules! binary {
    ($($name:ident |$isa:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name;

        impl Binary for $name {
            #[inline(always)]
            fn eval<I: Isa>(self, $isa: I, $a: I::F32, $b: I::F32) -> I::F32 {
                $body
            }
        }
    )*};
}

pub(super) use binary;

binary! {
    Larger |isa, a, b| isa.at_least(b, a);
}

/// A computation with the function of an operation.
pub(super) trait Visitor {
    /// The result type.
    type Output;
    fn unary<F: Unary>(self, f: F) -> Self::Output;
    fn binary<F: Binary>(self, f: F) -> Self::Output;
}

impl GentleRelu {
    /// A leaky rectifier as one, if it is.
    pub(super) fn of(op: &Op) -> Option<Self> {
        match *op {
            Op::LeakyRelu { negative_slope } if negative_slope > 0.0 && negative_slope <= 1.0 => {
                Some(Self { negative_slope })
            }
            _ => None,
        }
    }
}

/// Runs an operation that is elementwise on slices of one length.
pub(super) fn run(isa: InstructionSet, op: &Op, inputs: &[&[f32]], y: &mut [f32]) {
    let a = inputs.first().copied().unwrap_or_default();
    let b = inputs.get(1).copied().unwrap_or_default();
    let done = with_function(op, OnSlices { isa, a, b, y });
    debug_assert!(done.is_some(), "{} is not elementwise", op.name());
}

struct OnSlices<'a> {
    isa: InstructionSet,
    a: &'a [f32],
    b: &'a [f32],
    y: &'a mut [f32],
}

impl Visitor for OnSlices<'_> {
    type Output = ();

    #[inline(always)]
    fn unary<F: Unary>(self, f: F) {
        map(self.isa, f, self.a, self.y);
    }

    #[inline(always)]
    fn binary<F: Binary>(self, f: F) {
        map2(self.isa, f, self.a, self.b, self.y);
    }
}

/// `yᵢ = f(xᵢ)` for slices of one length.
pub(super) fn map<F: Unary>(isa: InstructionSet, f: F, x: &[f32], y: &mut [f32]) {
    in_whole_vectors([x, x], y, &|[x, _], y| dispatch(isa, Map { f, x, y }));
}

/// `yᵢ = f(aᵢ, bᵢ)` for slices of one length.
pub(super) fn map2<F: Binary>(isa: InstructionSet, f: F, a: &[f32], b: &[f32], y: &mut [f32]) {
    in_whole_vectors([a, b], y, &|[a, b], y| dispatch(isa, Map2 { f, a, b, y }));
}

/// The number of values of the widest vectors.
const WIDEST: usize = 16;

/// A function of two slices, or of one given twice, and where its values go.
type Whole<'a> = dyn Fn([&[f32]; 2], &mut [f32]) + 'a;

/// Calls a kernel with whole vectors only. The slices' last elements are padded to that length
/// here, since kernels would hold every function twice otherwise.
fn in_whole_vectors(inputs: [&[f32]; 2], y: &mut [f32], kernel: &Whole<'_>) {
    let whole = y.len() / WIDEST * WIDEST;
    let (y, tail) = y.split_at_mut(whole);
    if whole > 0 {
        kernel(inputs.map(|input| &input[..whole]), y);
    }
    if !tail.is_empty() {
        let [a, b]: [[f32; WIDEST]; 2] = inputs.map(|input| padded(&input[whole..]));
        let mut y = [0.0; WIDEST];
        kernel([&a, &b], &mut y);
        tail.copy_from_slice(&y[..tail.len()]);
    }
}

/// Values at the end of a slice, filled up to `N`.
pub(super) fn padded<const N: usize>(values: &[f32]) -> [f32; N] {
    let mut padded = [1.0; N];
    padded[..values.len()].copy_from_slice(values);
    padded
}

/// Adds `bias` to each row of `x`, whose rows are as long as it.
pub(super) fn add_bias(isa: InstructionSet, x: &[f32], bias: &[f32], y: &mut [f32]) {
    // Short rows go several at a time.
    let mut repeated = [0.0; 256];
    let mut row = bias;
    if !bias.is_empty() && bias.len() <= repeated.len() / 2 {
        let whole = repeated.len() / bias.len() * bias.len();
        repeat(bias, 1, 0, &mut repeated[..whole]);
        row = &repeated[..whole];
    }
    let len = row.len().max(1);
    for (a, y) in x.chunks(len).zip(y.chunks_mut(len)) {
        map2(isa, VecAdd, a, &row[..a.len()], y);
    }
}

/// Writes `values[i / inner % values.len()]` for the indices `i` from `at` on.
pub(crate) fn repeat(values: &[f32], inner: usize, at: usize, out: &mut [f32]) {
    let mut done = 0;
    while done < out.len() {
        let (at, out) = (at + done, &mut out[done..]);
        let from = at / inner % values.len();
        done += if inner == 1 {
            let len = (values.len() - from).min(out.len());
            out[..len].copy_from_slice(&values[from..from + len]);
            len
        } else {
            let len = (inner - at % inner).min(out.len());
            out[..len].fill(values[from]);
            len
        };
    }
}

/// Of whole vectors.
struct Map<'a, F> {
    f: F,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl<F: Unary> Kernel for Map<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let vectors = self.x.chunks_exact(I::LANES);
        for (x, y) in vectors.zip(self.y.chunks_exact_mut(I::LANES)) {
            isa.prefetch(x.as_ptr().wrapping_add(AHEAD));
            isa.prefetch(y.as_ptr().wrapping_add(AHEAD));
            isa.store(self.f.eval(isa, isa.load(x)), y);
        }
    }
}

/// Of whole vectors.
struct Map2<'a, F> {
    f: F,
    a: &'a [f32],
    b: &'a [f32],
    y: &'a mut [f32],
}

impl<F: Binary> Kernel for Map2<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let (a, b) = (self.a.chunks_exact(I::LANES), self.b.chunks_exact(I::LANES));
        for ((a, b), y) in a.zip(b).zip(self.y.chunks_exact_mut(I::LANES)) {
            isa.store(self.f.eval(isa, isa.load(a), isa.load(b)), y);
        }
    }
}

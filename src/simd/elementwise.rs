//! Operations that work value by value.

use super::InstructionSet;
use super::isa::{Isa, Kernel, dispatch};
use super::math;

/// A function of one number.
pub(super) trait Unary: Copy {
    fn eval<I: Isa>(self, isa: I, x: I::F32) -> I::F32;
}

/// A function of two numbers.
pub(super) trait Binary: Copy {
    fn eval<I: Isa>(self, isa: I, a: I::F32, b: I::F32) -> I::F32;
}

/// One function an entry: `Name { parameters } |isa, x| expression`, where parameters are
/// vectors of equal values.
macro_rules! unary {
    ($($name:ident { $($parameter:ident),* } |$isa:ident, $x:ident| $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name { $(pub(super) $parameter: f32),* }

        impl Unary for $name {
            #[inline(always)]
            fn eval<I: Isa>(self, $isa: I, $x: I::F32) -> I::F32 {
                $(let $parameter = $isa.splat(self.$parameter);)*
                $body
            }
        }
    )*};
}
pub(super) use unary;

unary! {
    Relu {} |isa, x| isa.at_least(x, isa.splat(0.0));
    LeakyRelu { negative_slope } |isa, x|
        isa.select(isa.ge(x, isa.splat(0.0)), x, isa.mul(x, negative_slope));
    Elu { alpha } |isa, x|
        isa.select(isa.lt(isa.splat(0.0), x), x, isa.mul(alpha, math::expm1_negative(isa, x)));
    Sigmoid {} |isa, x| math::sigmoid(isa, x);
    Tanh {} |isa, x| math::tanh(isa, x);
    Swish {} |isa, x| math::swish(isa, x);
    Gelu {} |isa, x| math::gelu(isa, x);
    GeluTanh {} |isa, x| math::gelu_tanh(isa, x);
    Clip { min, max } |isa, x| isa.at_most(isa.at_least(x, min), max);
    Exp {} |isa, x| math::exp(isa, x);
    Log {} |isa, x| math::log(isa, x);
    Sqrt {} |isa, x| isa.sqrt(x);
    Abs {} |isa, x| isa.abs(x);
    Neg {} |isa, x| isa.neg(x);
    Scale { factor } |isa, x| isa.mul(x, factor);
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

binary! {
    Add |isa, a, b| isa.add(a, b);
    Sub |isa, a, b| isa.sub(a, b);
    Mul |isa, a, b| isa.mul(a, b);
    Div |isa, a, b| isa.div(a, b);
    Minimum |isa, a, b| isa.min(a, b);
    Maximum |isa, a, b| isa.max(a, b);
    Larger |isa, a, b| isa.at_least(b, a);
}

/// `yᵢ = f(xᵢ)` for slices of one length.
pub(super) fn map<F: Unary>(isa: InstructionSet, f: F, x: &[f32], y: &mut [f32]) {
    dispatch(isa, Map { f, x, y });
}

/// `yᵢ = f(aᵢ, bᵢ)` for slices of one length.
pub(super) fn map2<F: Binary>(isa: InstructionSet, f: F, a: &[f32], b: &[f32], y: &mut [f32]) {
    dispatch(isa, Map2 { f, a, b, y });
}

/// Adds `bias` to each row of `x`, whose rows are as long as it.
pub(super) fn add_bias(isa: InstructionSet, x: &[f32], bias: &[f32], y: &mut [f32]) {
    dispatch(isa, AddBias { x, bias, y });
}

pub(super) struct Map<'a, F> {
    pub(super) f: F,
    pub(super) x: &'a [f32],
    pub(super) y: &'a mut [f32],
}

impl<F: Unary> Kernel for Map<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let whole = self.x.len().min(self.y.len()) / I::LANES * I::LANES;
        let (x, x_tail) = self.x.split_at(whole);
        let (y, y_tail) = self.y.split_at_mut(whole);
        for (x, y) in x.chunks_exact(I::LANES).zip(y.chunks_exact_mut(I::LANES)) {
            isa.store(self.f.eval(isa, isa.load(x)), y);
        }
        if !y_tail.is_empty() {
            isa.store_first(self.f.eval(isa, isa.load_first(x_tail, 0.0)), y_tail);
        }
    }
}

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
        let len = self.a.len().min(self.b.len()).min(self.y.len());
        let whole = len / I::LANES * I::LANES;
        let (a, a_tail) = self.a.split_at(whole);
        let (b, b_tail) = self.b.split_at(whole);
        let (y, y_tail) = self.y.split_at_mut(whole);
        let inputs = a.chunks_exact(I::LANES).zip(b.chunks_exact(I::LANES));
        for ((a, b), y) in inputs.zip(y.chunks_exact_mut(I::LANES)) {
            isa.store(self.f.eval(isa, isa.load(a), isa.load(b)), y);
        }
        if !y_tail.is_empty() {
            let (a, b) = (isa.load_first(a_tail, 0.0), isa.load_first(b_tail, 1.0));
            isa.store_first(self.f.eval(isa, a, b), y_tail);
        }
    }
}

struct AddBias<'a> {
    x: &'a [f32],
    bias: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for AddBias<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        if self.bias.is_empty() {
            return;
        }
        // Short rows go several at a time, so that vectors are full.
        let mut repeated = [0.0; 256];
        let mut bias = self.bias;
        if bias.len() <= repeated.len() / 2 {
            let whole = repeated.len() / bias.len() * bias.len();
            for row in repeated[..whole].chunks_exact_mut(bias.len()) {
                row.copy_from_slice(bias);
            }
            bias = &repeated[..whole];
        }
        let rows = self.x.chunks(bias.len());
        for (a, y) in rows.zip(self.y.chunks_mut(bias.len())) {
            let b = &bias[..a.len()];
            Map2 { f: Add, a, b, y }.run(isa);
        }
    }
}

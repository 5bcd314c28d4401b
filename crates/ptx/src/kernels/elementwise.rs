//! Elementwise functions of one and of two vectors.

use super::Kernel;
use super::common::{Combine, along_x};
use super::exp::exp;
use super::values::{load, store};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Activation;
use crate::kernels::gemm::activate;
use crate::types::PtxType::{self, F32, U32};
use crate::types::Target;

const THREADS: u32 = 256;
/// The number of elements that a thread loads at once.
const WIDTH: u32 = 4;

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Deserialize, tsify::Tsify),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Unary {
    /// `−x`.
    Neg,
    /// `|x|`.
    Abs,
    /// `√x`, rounded to nearest.
    Sqrt,
    /// `1/x`, rounded to nearest.
    Reciprocal,
    /// `eˣ`, with a relative error below 2⁻²³.
    Exp,
    /// The natural logarithm.
    Log,
    /// `1 / (1 + e⁻ˣ)`.
    Sigmoid,
    /// An activation function.
    #[cfg_attr(all(target_arch = "wasm32", feature = "js"), serde(skip))]
    Activation(Activation),
}

/// A function of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Deserialize, tsify::Tsify),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a − b`.
    Sub,
    /// `a · b`.
    Mul,
    /// `a / b`, rounded to nearest.
    Div,
    /// The smaller number; if one is NaN, the other one.
    Min,
    /// The larger number; if one is NaN, the other one.
    Max,
    /// The smaller number; NaN if either is NaN.
    Minimum,
    /// The larger number; NaN if either is NaN.
    Maximum,
    /// `a / (1 + e⁻ᵃ) · b`: the gate and the value of a gated linear unit (Shazeer, 2020).
    SwiGlu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Function {
    Unary(Unary),
    Binary(Binary),
}

/// Computes `y = f(x)` or `y = f(a, b)` for every element, in f32 and rounded once.
///
/// Parameters: `x`, or `a` and `b`, then `y` (all of one type and aligned to 16 bytes), `n` (u32, below
/// 2³²−1024). `y` may be one of the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementwiseKernel {
    function: Function,
    ty: PtxType,
}

impl ElementwiseKernel {
    /// Creates a kernel for a function of one f32 vector.
    pub fn unary(function: Unary) -> Self {
        ElementwiseKernel {
            function: Function::Unary(function),
            ty: F32,
        }
    }

    /// Creates a kernel for a function of two f32 vectors.
    pub fn binary(function: Binary) -> Self {
        ElementwiseKernel {
            function: Function::Binary(function),
            ty: F32,
        }
    }

    /// Sets the type of the elements: f16, bf16 or f32.
    #[must_use]
    pub fn of(self, ty: PtxType) -> Self {
        ElementwiseKernel { ty, ..self }
    }
}

impl Kernel for ElementwiseKernel {
    fn name(&self) -> String {
        let function = match self.function {
            Function::Unary(Unary::Activation(activation)) => format!("{activation:?}"),
            Function::Unary(function) => format!("{function:?}"),
            Function::Binary(function) => format!("{function:?}"),
        };
        format!("elementwise_{}_{}", function.to_lowercase(), self.ty)
    }

    fn first_target(&self) -> Target {
        super::values::first_target(self.ty)
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        super::values::check(self.ty)?;
        let launch = Launch::new(THREADS, along_x(Extent::Tiles("n", THREADS * WIDTH)));
        let mut k = Builder::new(self.name(), target, launch.overlapping(target));
        let inputs = match self.function {
            Function::Unary(_) => vec![k.pointer("x", self.ty)],
            Function::Binary(_) => vec![k.pointer("a", self.ty), k.pointer("b", self.ty)],
        };
        let (y, n) = (k.pointer("y", self.ty), k.scalar("n", U32));
        let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        let index = k.fma(block, THREADS, thread);
        let first = k.mul(index, WIDTH);
        k.wait_for_grid();
        // The thread after the last full vector processes the remaining elements.
        let vectors = k.div(n, WIDTH);
        let whole = k.lt(index, vectors);
        k.when(whole, |k| self.apply(k, &inputs, y, first, WIDTH as usize));
        let last = k.eq(index, vectors);
        k.when(last, |k| {
            k.for_range(first, n, 1, |k, i| self.apply(k, &inputs, y, i, 1));
        });
        k.finish()
    }
}

impl ElementwiseKernel {
    /// Applies the function to `count` elements from `first` on.
    fn apply(self, k: &mut Builder, inputs: &[Reg], y: Reg, first: Reg, count: usize) {
        let inputs: Vec<Vec<Reg>> = inputs
            .iter()
            .map(|&input| {
                let from = k.at(input, first, self.ty.bytes());
                load(k, self.ty, count, from)
            })
            .collect();
        let results: Vec<Reg> = (0..count)
            .map(|i| match self.function {
                Function::Unary(function) => unary(k, function, inputs[0][i]),
                Function::Binary(function) => binary(k, function, inputs[0][i], inputs[1][i]),
            })
            .collect();
        let to = k.at(y, first, self.ty.bytes());
        store(k, self.ty, &results, to);
    }
}

fn unary(k: &mut Builder, function: Unary, x: Reg) -> Reg {
    match function {
        Unary::Neg => k.neg(x),
        Unary::Abs => k.abs(x),
        Unary::Sqrt => k.sqrt(x),
        Unary::Reciprocal => k.rcp(x),
        Unary::Exp => exp(k, x),
        Unary::Log => {
            let log2 = k.lg2(x);
            k.mul(log2, std::f32::consts::LN_2)
        }
        Unary::Sigmoid => {
            let minus = k.neg(x);
            let exp = exp(k, minus);
            let below = k.add(exp, 1.0f32);
            k.rcp(below)
        }
        Unary::Activation(activation) => activate(k, activation, x),
    }
}

fn binary(k: &mut Builder, function: Binary, a: Reg, b: Reg) -> Reg {
    match function {
        Binary::Add => k.add(a, b),
        Binary::Sub => k.sub(a, b),
        Binary::Mul => k.mul(a, b),
        Binary::Div => k.div(a, b),
        Binary::Min => k.min(a, b),
        Binary::Max => k.max(a, b),
        Binary::Minimum => Combine::Minimum.extreme(k, a, b),
        Binary::Maximum => Combine::Maximum.extreme(k, a, b),
        Binary::SwiGlu => {
            let gate = activate(k, Activation::Silu, a);
            k.mul(gate, b)
        }
    }
}

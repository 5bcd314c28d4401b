//! The epilogue of a matmul: the operations on accumulators before they are stored.

use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::types::PtxType::{self, BF16, F16, F32};

/// An activation function, applied to every element of a matmul.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Deserialize, tsify::Tsify),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Activation {
    /// No activation.
    #[default]
    None,
    /// `max(x, 0)`; NaN stays NaN.
    Relu,
    /// `x / (1 + e⁻ˣ)`, also called Swish.
    Silu,
    /// `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))` (Hendrycks and Gimpel, 2016).
    GeluTanh,
}

/// The epilogue of a matmul: `act(α · sum + β · c + bias)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Deserialize, tsify::Tsify),
    serde(default, deny_unknown_fields)
)]
#[non_exhaustive]
pub struct Epilogue {
    /// Whether a vector of `n` elements is added to every row.
    pub bias: bool,
    /// The activation that is applied last.
    pub activation: Activation,
}

impl Epilogue {
    /// The epilogue without a bias and an activation.
    pub const NONE: Self = Self {
        bias: false,
        activation: Activation::None,
    };

    /// Returns the epilogue that adds a vector of `n` elements to every row.
    #[must_use]
    pub const fn with_bias(self) -> Self {
        Self { bias: true, ..self }
    }

    /// Returns the epilogue with this activation.
    #[must_use]
    pub const fn with_activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }

    pub(super) fn suffix(self) -> String {
        let bias = if self.bias { "_bias" } else { "" };
        let activation = match self.activation {
            Activation::None => "",
            Activation::Relu => "_relu",
            Activation::Silu => "_silu",
            Activation::GeluTanh => "_gelu",
        };
        format!("{bias}{activation}")
    }
}

/// An epilogue with its parameters in registers.
pub(super) struct Finish {
    factors: Option<Factors>,
    bias: Option<Reg>,
    activation: Activation,
    /// The type of `C`.
    pub(super) output: PtxType,
}

struct Factors {
    alpha: Reg,
    beta: Reg,
    /// Whether `C` is read.
    adds: Reg,
}

impl Finish {
    pub(super) fn declare(k: &mut Builder, epilogue: Epilogue, output: PtxType) -> Self {
        let (alpha, beta) = (k.scalar("alpha", F32), k.scalar("beta", F32));
        Finish {
            bias: epilogue.bias.then(|| k.pointer("bias", F32)),
            activation: epilogue.activation,
            factors: Some(Factors {
                alpha,
                beta,
                adds: k.ne(beta, 0.0f32),
            }),
            output,
        }
    }

    /// Returns an epilogue that stores accumulators unchanged.
    pub(super) fn none() -> Self {
        Finish {
            factors: None,
            bias: None,
            activation: Activation::None,
            output: F32,
        }
    }

    /// Stores the results of one, two or four accumulators at `address + offset`, for columns from
    /// `col` on. The address of several must be a multiple of their size.
    pub(super) fn store(&self, k: &mut Builder, sums: &[Reg], address: Reg, offset: i32, col: Reg) {
        let finished = self
            .finished(k, sums, [address, col], offset, None)
            .into_iter();
        let narrowed: Vec<Reg> = finished
            .map(|value| narrow(k, self.output, value))
            .collect();
        match narrowed.as_slice() {
            [one] => k.st_global(self.output, address, offset, *one),
            many => k.st_global(self.output, address, offset, many),
        }
    }

    /// Computes the elements of `C` at that address and in those columns as f32. If a position is
    /// not `inside`, nothing is read and the element is arbitrary.
    pub(super) fn finished(
        &self,
        k: &mut Builder,
        sums: &[Reg],
        [address, col]: [Reg; 2],
        offset: i32,
        inside: Option<Reg>,
    ) -> Vec<Reg> {
        let values: Vec<Reg> = match &self.factors {
            None => sums.to_vec(),
            Some(factors) => {
                let values: Vec<Reg> = sums.iter().map(|&sum| k.mul(sum, factors.alpha)).collect();
                let adds = inside.map_or(factors.adds, |inside| k.and(factors.adds, inside));
                k.when(adds, |k| {
                    let old = load(k, Op::LdGlobal, self.output, values.len(), address, offset);
                    for (&value, old) in values.iter().zip(old) {
                        let old = widen(k, old);
                        k.fma_assign(value, factors.beta, old);
                    }
                });
                values
            }
        };
        if let Some(bias) = self.bias {
            let col = inside.map_or(col, |inside| k.select(inside, col, 0));
            let bias = k.at(bias, col, 4);
            let bias = load(k, Op::LdGlobalNc, F32, values.len(), bias, 0);
            for (&value, bias) in values.iter().zip(bias) {
                k.add_assign(value, bias);
            }
        }
        let values = values.into_iter();
        values
            .map(|value| activate(k, self.activation, value))
            .collect()
    }
}

/// Loads one, two or four elements.
fn load(k: &mut Builder, op: Op, ty: PtxType, count: usize, address: Reg, offset: i32) -> Vec<Reg> {
    match count {
        1 => vec![k.ld(op, ty, address, offset)],
        _ => k.ld_vector(op, ty, count, address, offset),
    }
}

/// Converts a number of any floating-point type to `f32`.
pub(in crate::kernels) fn widen(k: &mut Builder, value: Reg) -> Reg {
    match value.ty() {
        F16 => k.convert(Op::CvtF32F16, F32, &[value.into()]),
        // The bits of bf16 are the upper half of an f32.
        BF16 => {
            let zero = k.value(PtxType::B16, 0);
            let bits = k.op(
                Op::Pack,
                PtxType::B32,
                PtxType::B32,
                &[[zero, value].as_slice().into()],
            );
            k.op(Op::Mov, PtxType::B32, F32, &[bits.into()])
        }
        _ => value,
    }
}

/// Rounds an `f32` to `ty`.
pub(in crate::kernels) fn narrow(k: &mut Builder, ty: PtxType, value: Reg) -> Reg {
    match ty {
        F16 => k.convert(Op::CvtF16F32, F16, &[value.into()]),
        BF16 => k.convert(Op::CvtBf16F32, BF16, &[value.into()]),
        _ => value,
    }
}

/// Computes the activation of one number.
pub(in crate::kernels) fn activate(k: &mut Builder, activation: Activation, x: Reg) -> Reg {
    match activation {
        Activation::None => x,
        Activation::Relu => {
            let negative = k.lt(x, 0.0f32);
            k.select(negative, 0.0f32, x)
        }
        Activation::Silu => over_one_plus_exp(k, x, x),
        // x/2 · (1 + tanh u) = x / (1 + e⁻²ᵘ).
        Activation::GeluTanh => {
            let square = k.mul(x, x);
            let scale = (2.0 / std::f32::consts::PI).sqrt() * 2.0;
            let factor = k.fma(square, scale * 0.044_715, scale);
            let u = k.mul(x, factor);
            over_one_plus_exp(k, x, u)
        }
    }
}

/// Computes `x / (1 + e⁻ᵘ)`, with its limit 0 if e⁻ᵘ is infinite, and NaN if `x` is infinite, too.
fn over_one_plus_exp(k: &mut Builder, x: Reg, u: Reg) -> Reg {
    let minus = k.neg(u);
    let exp = k.exp(minus);
    let below = k.add(exp, 1.0f32);
    k.div(x, below)
}

//! Oracles: the results of kernels in plain `f64`, each with the bound of its error.

use super::case::Expected;
use relampago_ptx::PtxType;
use relampago_ptx::kernels::{Activation, Epilogue};

/// Half a unit in the last place of 1.
pub(crate) fn unit(ty: PtxType) -> f64 {
    match ty {
        PtxType::F16 => 2f64.powi(-11),
        PtxType::BF16 => 2f64.powi(-8),
        _ => 2f64.powi(-24),
    }
}

pub(crate) struct Gemm<'a> {
    pub(crate) a: &'a [f32],
    pub(crate) b: &'a [f32],
    pub(crate) c: &'a [f32],
    pub(crate) bias: &'a [f32],
    pub(crate) shape: [usize; 3],
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) epilogue: Epilogue,
    pub(crate) output: PtxType,
    /// The relative error of the inputs, once rounded to what is multiplied.
    pub(crate) input_error: f64,
}

impl Gemm<'_> {
    pub(crate) fn expected(&self) -> Vec<Expected> {
        let [m, n, _] = self.shape;
        (0..m * n).map(|i| self.one(i / n, i % n)).collect()
    }

    fn one(&self, row: usize, col: usize) -> Expected {
        let [_, n, depth] = self.shape;
        let (mut sum, mut size) = (0f64, 0f64);
        for k in 0..depth {
            let product = f64::from(self.a[row * depth + k]) * f64::from(self.b[k * n + col]);
            sum += product;
            size += product.abs();
        }
        let mut value = f64::from(self.alpha) * sum;
        let mut bound = f64::from(self.alpha).abs()
            * size
            * (depth as f64 * unit(PtxType::F32) + self.input_error);
        if self.beta != 0.0 {
            let old = f64::from(self.beta) * f64::from(self.c[row * n + col]);
            value += old;
            bound += old.abs() * unit(PtxType::F32);
        }
        if self.epilogue.bias {
            value += f64::from(self.bias[col]);
        }
        bound += 4.0 * unit(PtxType::F32) * (value.abs() + size * f64::from(self.alpha).abs());
        let (value, slope) = activation(self.epilogue.activation, value);
        bound = bound * slope + value.abs() * (unit(self.output) + 8.0 * unit(PtxType::F32));
        Expected {
            value,
            bound: bound + 1e-30,
        }
    }
}

/// The function and a bound of its slope.
fn activation(activation: Activation, x: f64) -> (f64, f64) {
    match activation {
        Activation::None => (x, 1.0),
        Activation::Relu => (x.max(0.0), 1.0),
        Activation::Silu => (x / (1.0 + (-x).exp()), 1.1),
        Activation::GeluTanh => {
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
            (0.5 * x * (1.0 + u.tanh()), 1.2)
        }
        other => panic!("{other:?} has no oracle"),
    }
}

/// Softmax of each row; its logarithm if `log`.
pub(crate) fn softmax(x: &[f32], cols: usize, log: bool) -> Vec<Expected> {
    let row = |row: &[f32]| {
        let max = row
            .iter()
            .fold(f64::NEG_INFINITY, |max, x| max.max((*x).into()));
        let nan = row.iter().any(|x| x.is_nan()) || max == f64::NEG_INFINITY;
        let exp = |x: &f32| (f64::from(*x) - max).exp();
        let sum: f64 = row.iter().map(exp).sum();
        let one = move |x: &f32| {
            let shift = f64::from(*x) - max;
            let value = if log {
                shift - sum.ln()
            } else {
                shift.exp() / sum
            };
            let value = if nan { f64::NAN } else { value };
            // The argument's rounding counts once for each unit of it.
            let relative = if log {
                1.0 + shift.abs() + sum.ln().abs()
            } else {
                value * (4.0 + shift.abs())
            };
            Expected {
                value,
                bound: 16.0 * unit(PtxType::F32) * relative + 1e-37,
            }
        };
        row.iter().map(one).collect::<Vec<_>>()
    };
    x.chunks(cols).flat_map(row).collect()
}

/// Layer norm, or RMS norm without `bias`.
pub(crate) fn norm(x: &[f32], weight: &[f32], bias: Option<&[f32]>, epsilon: f32) -> Vec<Expected> {
    let cols = weight.len();
    let row = |row: &[f32]| {
        let n = cols as f64;
        let mean = bias.map_or(0.0, |_| row.iter().map(|x| f64::from(*x)).sum::<f64>() / n);
        let variance = row
            .iter()
            .map(|x| (f64::from(*x) - mean).powi(2))
            .sum::<f64>()
            / n;
        let scale = 1.0 / (variance + f64::from(epsilon)).sqrt();
        let size = row.iter().map(|x| f64::from(x.abs())).fold(0.0, f64::max);
        (0..cols)
            .map(|i| {
                let normal = (f64::from(row[i]) - mean) * scale * f64::from(weight[i]);
                let value = normal + bias.map_or(0.0, |bias| f64::from(bias[i]));
                let bound = 16.0
                    * unit(PtxType::F32)
                    * (value.abs() + normal.abs() + size * scale * f64::from(weight[i]).abs());
                Expected {
                    value,
                    bound: bound + 1e-37,
                }
            })
            .collect::<Vec<_>>()
    };
    x.chunks(cols).flat_map(row).collect()
}

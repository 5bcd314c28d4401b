//! Functions of values, reductions and rotations against `f64`.

use super::case::{Case, Expected, Value, random, rounded};
use super::oracle::unit;
use super::variants::Variant;
use relampago_ptx::PtxType::{self, BF16, F16, F32};
use relampago_ptx::kernels::{
    Activation, Binary, ElementwiseKernel, Pairs, ReduceKernel, Reduction, RopeKernel, Unary,
};

pub(crate) fn variants() -> Vec<Variant> {
    [elementwise(), reductions(), rotations()]
        .into_iter()
        .flatten()
        .collect()
}

fn values(x: Vec<f32>, ty: PtxType) -> Value {
    match ty {
        F16 => Value::F16s(x),
        BF16 => Value::Bf16s(x),
        _ => Value::F32s(x),
    }
}

/// Sizes around the four values of a thread and the 1024 of a block.
const COUNTS: [usize; 4] = [1, 7, 1024, 1030];

/// A function in `f64`, and the bound of its error relative to the result.
type Oracle<const N: usize> = (fn([f64; N]) -> f64, fn([f64; N]) -> f64);

/// Propagates NaN: returns NaN if either number is NaN.
fn propagate(a: f64, b: f64, choose: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        choose(a, b)
    }
}

fn elementwise() -> Vec<Variant> {
    let exact: fn([f64; 1]) -> f64 = |_| 1.0;
    let of_exp: fn([f64; 1]) -> f64 = |[x]| 8.0 + 2.0 * x.abs();
    let of_sigmoid: fn([f64; 1]) -> f64 = |_| 6.0;
    let unary: [(Unary, Oracle<1>); 9] = [
        (Unary::Neg, (|[x]| -x, exact)),
        (Unary::Abs, (|[x]| x.abs(), exact)),
        (Unary::Sqrt, (|[x]| x.sqrt(), exact)),
        (Unary::Reciprocal, (|[x]| 1.0 / x, exact)),
        (Unary::Exp, (|[x]| x.exp(), |_| 2.0)),
        (
            Unary::Log,
            (|[x]| x.ln(), |[x]| 4.0 + 8.0 / x.ln().abs().max(1e-9)),
        ),
        (Unary::Sigmoid, (|[x]| 1.0 / (1.0 + (-x).exp()), of_sigmoid)),
        (
            Unary::Activation(Activation::Relu),
            (|[x]| propagate(x, 0.0, f64::max), exact),
        ),
        (
            Unary::Activation(Activation::Silu),
            (|[x]| x / (1.0 + (-x).exp()), of_exp),
        ),
    ];
    let plain: fn([f64; 2]) -> f64 = |_| 1.0;
    let binary: [(Binary, Oracle<2>); 9] = [
        (Binary::Add, (|[a, b]| a + b, plain)),
        (Binary::Sub, (|[a, b]| a - b, plain)),
        (Binary::Mul, (|[a, b]| a * b, plain)),
        (Binary::Div, (|[a, b]| a / b, plain)),
        (Binary::Min, (|[a, b]| a.min(b), plain)),
        (Binary::Max, (|[a, b]| a.max(b), plain)),
        (Binary::Minimum, (|[a, b]| propagate(a, b, f64::min), plain)),
        (Binary::Maximum, (|[a, b]| propagate(a, b, f64::max), plain)),
        (
            Binary::SwiGlu,
            (
                |[a, b]| a / (1.0 + (-a).exp()) * b,
                |[a, _]| 10.0 + 2.0 * a.abs(),
            ),
        ),
    ];
    let mut variants = Vec::new();
    for (i, (function, oracle)) in unary.into_iter().enumerate() {
        let ty = [F32, F16, BF16][i % 3];
        let kernel = ElementwiseKernel::unary(function).of(ty);
        let positive = matches!(function, Unary::Sqrt | Unary::Log);
        let cases = COUNTS.map(|n| elementwise_case([3], n, ty, oracle, positive));
        variants.push(Variant::new(kernel, cases.to_vec()));
    }
    let exp = ElementwiseKernel::unary(Unary::Exp);
    variants.push(Variant::new(exp, vec![exp_case()]));
    for (i, (function, oracle)) in binary.into_iter().enumerate() {
        let ty = [BF16, F32, F16][i % 3];
        let kernel = ElementwiseKernel::binary(function).of(ty);
        let cases = COUNTS.map(|n| elementwise_case([3, 4], n, ty, oracle, false));
        variants.push(Variant::new(kernel, cases.to_vec()));
    }
    variants
}

/// Powers of e over the whole range of f32, and beyond.
fn exp_case() -> Case {
    let mut x = vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0];
    x.extend([1e-45, 88.5, 88.73, 89.0, -87.5, -103.5, -104.5, f32::MAX]);
    x.extend(random(2000, 3).iter().map(|x| x * 30.0));
    let expected = |x: &f32| {
        let value = f64::from(*x).exp();
        // A denormal number's half unit does not become smaller with it.
        let bound = value * 2.0 * unit(F32) + 2f64.powi(-150);
        Expected { value, bound }
    };
    Case {
        label: "all of f32".to_owned(),
        expected: x.iter().map(expected).collect(),
        arguments: vec![
            Value::F32s(x.clone()),
            Value::F32s(vec![f32::NAN; x.len()]),
            Value::U32(x.len() as u32),
        ],
        output: 1,
    }
}

fn elementwise_case<const N: usize>(
    seeds: [u64; N],
    n: usize,
    ty: PtxType,
    (function, bound): Oracle<N>,
    positive: bool,
) -> Case {
    let sign = |x: f32| if positive { x.abs() } else { x };
    let mut inputs = seeds.map(|seed| {
        let x: Vec<f32> = random(n, seed).iter().map(|x| sign(x * 4.0)).collect();
        rounded(&x, ty)
    });
    if n == 7 {
        for (i, input) in inputs.iter_mut().enumerate() {
            input[2 * i + 1] = f32::NAN;
        }
    }
    let expected = (0..n).map(|i| {
        let at = inputs.each_ref().map(|x| f64::from(x[i]));
        let value = function(at);
        let error = unit(ty) + unit(F32) * bound(at);
        Expected {
            value,
            // Of f16 numbers below 2⁻¹⁴ half of the smallest counts.
            bound: value.abs() * error + if ty == F16 { 2f64.powi(-25) } else { 1e-37 },
        }
    });
    let expected = expected.collect();
    let mut arguments: Vec<Value> = inputs.into_iter().map(|x| values(x, ty)).collect();
    arguments.push(values(vec![f32::NAN; n], ty));
    arguments.push(Value::U32(n as u32));
    Case {
        label: format!("{n}"),
        arguments,
        output: N,
        expected,
    }
}

fn reductions() -> Vec<Variant> {
    let mut variants = Vec::new();
    for (reduction, ty) in [
        (Reduction::Sum, F32),
        (Reduction::Max, BF16),
        (Reduction::Min, F32),
        (Reduction::Maximum, F32),
        (Reduction::Minimum, BF16),
        (Reduction::Dot, F16),
    ] {
        let kernel = ReduceKernel::new(reduction).of(ty);
        // How many, where the extreme is, in the last lane mostly, of different loads, and whether a NaN
        // is among them.
        let cases = [
            (0, 0, false),
            (1, 0, false),
            (700, 31, true),
            (8192, 4 * 511, false),
            (8192, 4096 + 4 * 511 + 2, true),
            (17_001, 17_000, false),
        ];
        let cases = cases.map(|of| reduction_case(reduction, of, ty));
        variants.push(Variant::new(kernel, cases.to_vec()));
    }
    variants
}

fn reduction_case(
    reduction: Reduction,
    (n, place, nan): (usize, usize, bool),
    ty: PtxType,
) -> Case {
    let mut x = rounded(&random(n, 5), ty);
    let z = rounded(&random(n, 6), ty);
    match reduction {
        Reduction::Max | Reduction::Maximum if n > 1 => x[place] = 100.0,
        Reduction::Min | Reduction::Minimum if n > 1 => x[place] = -100.0,
        _ => {}
    }
    let of = |x: &f32| f64::from(*x);
    let sum = |terms: &mut dyn Iterator<Item = f64>| {
        terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()))
    };
    let propagating = matches!(reduction, Reduction::Maximum | Reduction::Minimum);
    let (value, size) = match reduction {
        Reduction::Sum => sum(&mut x.iter().map(of)),
        Reduction::Dot => sum(&mut x.iter().zip(&z).map(|(x, z)| of(x) * of(z))),
        _ if nan && propagating => (f64::NAN, 0.0),
        Reduction::Max | Reduction::Maximum => {
            (x.iter().map(of).fold(f64::NEG_INFINITY, f64::max), 0.0)
        }
        Reduction::Min | Reduction::Minimum => {
            (x.iter().map(of).fold(f64::INFINITY, f64::min), 0.0)
        }
        other => panic!("{other:?} has no oracle"),
    };
    if nan && !matches!(reduction, Reduction::Sum | Reduction::Dot) {
        x[n / 3] = f32::NAN;
    }
    let mut arguments = vec![values(x, ty)];
    if reduction == Reduction::Dot {
        arguments.push(values(z, ty));
    }
    let output = arguments.len();
    arguments.extend([Value::F32s(vec![f32::NAN]), Value::U32(n as u32)]);
    Case {
        label: format!("{n}"),
        arguments,
        output,
        expected: vec![Expected {
            value,
            bound: size * 64.0 * unit(F32),
        }],
    }
}

fn rotations() -> Vec<Variant> {
    let mut variants = Vec::new();
    for (dim, pairs, ty) in [
        (64, Pairs::Halves, F32),
        (128, Pairs::Neighbours, BF16),
        (96, Pairs::Halves, F16),
    ] {
        let cases = [[3, 1], [2, 17], [1, 10]].map(|shape| rotation(shape, dim, pairs, ty));
        variants.push(Variant::new(
            RopeKernel::new(dim, pairs).of(ty),
            cases.to_vec(),
        ));
    }
    variants
}

fn rotation([tokens, heads]: [usize; 2], dim: u32, pairs: Pairs, ty: PtxType) -> Case {
    let (dim, half) = (dim as usize, dim as usize / 2);
    let x = rounded(&random(tokens * heads * dim, 7), ty);
    let positions = [5u32, 0, 2];
    let angle =
        |i: usize| (i / half) as f64 * 10_000f64.powf(-2.0 * (i % half) as f64 / dim as f64);
    let cos: Vec<f32> = (0..6 * half).map(|i| angle(i).cos() as f32).collect();
    let sin: Vec<f32> = (0..6 * half).map(|i| angle(i).sin() as f32).collect();
    let mut expected = vec![
        Expected {
            value: 0.0,
            bound: 0.0
        };
        x.len()
    ];
    for head in 0..tokens * heads {
        for i in 0..half {
            let (first, second) = match pairs {
                Pairs::Halves => (i, i + half),
                Pairs::Neighbours => (2 * i, 2 * i + 1),
                other => panic!("{other:?} has no oracle"),
            };
            let (first, second) = (head * dim + first, head * dim + second);
            let at = positions[head / heads] as usize * half + i;
            let (cos, sin) = (f64::from(cos[at]), f64::from(sin[at]));
            let (a, b) = (f64::from(x[first]), f64::from(x[second]));
            for (to, value) in [(first, a * cos - b * sin), (second, a * sin + b * cos)] {
                let size = (a.abs() + b.abs()) * 2.0 * unit(F32);
                let bound = value.abs() * unit(ty) + size;
                expected[to] = Expected { value, bound };
            }
        }
    }
    let positions = positions[..tokens].iter().flat_map(|x| x.to_le_bytes());
    let y = values(vec![f32::NAN; x.len()], ty);
    Case {
        label: format!("{tokens}×{heads}×{dim}"),
        arguments: vec![
            values(x, ty),
            y,
            Value::F32s(cos),
            Value::F32s(sin),
            Value::Bytes(positions.collect()),
            Value::U32(tokens as u32),
            Value::U32(heads as u32),
        ],
        output: 1,
        expected,
    }
}

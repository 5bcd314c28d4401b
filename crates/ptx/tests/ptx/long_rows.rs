//! Rows that are split among blocks: the statistics of their parts, and the results.

use super::case::{Case, Expected, Value, random};
use super::oracle::{self, unit};
use super::variants::Variant;
use relampago_ptx::kernels::RowLayout;
use relampago_ptx::{LayerNormKernel, PtxType, SoftmaxKernel};

const PART: usize = RowLayout::PART as usize;
/// Rows and columns, and values that a thread loads at once.
const SHAPES: [([usize; 2], u32); 4] = [
    ([2, PART + 260], 4),
    ([1, 2 * PART], 4),
    ([2, 5], 1),
    ([1, PART + 1], 1),
];

pub(crate) fn variants() -> Vec<Variant> {
    let mut variants = Vec::new();
    for width in [4, 1] {
        let layout = RowLayout::ANY.with_width(width);
        let shapes = || SHAPES.into_iter().filter(move |(_, of)| *of == width);
        let shapes = || shapes().map(|(shape, _)| shape);
        let softmax = SoftmaxKernel::new().with_layout(layout);
        variants.push(Variant::new(
            softmax.statistics(),
            shapes().map(softmax_numbers).collect(),
        ));
        for (kernel, log) in [(softmax, false), (softmax.log(), true)] {
            let cases = shapes().map(|shape| softmax_rest(shape, log));
            variants.push(Variant::new(kernel.rest(), cases.collect()));
        }
        for centred in [true, false] {
            let kernel = if centred {
                LayerNormKernel::new()
            } else {
                LayerNormKernel::rms()
            };
            let kernel = kernel.with_layout(layout);
            let cases = shapes().map(|shape| norm_numbers(shape, centred));
            variants.push(Variant::new(kernel.statistics(), cases.collect()));
            let cases = shapes().map(|shape| norm_rest(shape, centred));
            variants.push(Variant::new(kernel.rest(), cases.collect()));
        }
    }
    variants
}

/// Two numbers for each part of each row, and their bounds.
type Numbers = Vec<[Expected; 2]>;

fn numbers(x: &[f32], cols: usize, of: impl Fn(&[f32]) -> [Expected; 2]) -> Numbers {
    let parts = x.chunks(cols).flat_map(|row| row.chunks(PART));
    parts.map(of).collect()
}

fn close(value: f64, size: f64) -> Expected {
    Expected {
        value,
        bound: 16.0 * unit(PtxType::F32) * size + 1e-30,
    }
}

fn of_softmax(part: &[f32]) -> [Expected; 2] {
    let max = part.iter().fold(f32::MIN, |max, x| max.max(*x));
    let shift = |x: &f32| f64::from(*x) - f64::from(max);
    let (sum, size) = part.iter().map(shift).fold((0.0, 0.0), |(sum, size), x| {
        // Beyond that powers are 0, and so are their errors.
        let near = (4.0 - x.max(-1e3)) * x.exp();
        (sum + x.exp(), size + near)
    });
    [close(f64::from(max), 0.0), close(sum, size)]
}

fn of_norm(part: &[f32], centred: bool) -> [Expected; 2] {
    let count = part.len() as f64;
    let values = part.iter().map(|x| f64::from(*x));
    let size = values.clone().map(f64::abs).sum::<f64>() / count;
    let mean = if centred {
        values.clone().sum::<f64>() / count
    } else {
        0.0
    };
    let squares: f64 = values.clone().map(|x| (x - mean).powi(2)).sum();
    let all: f64 = values.map(|x| x * x).sum();
    [close(mean, size), close(squares, squares + all / 64.0)]
}

/// The largest number is nobody's first one, and the second row begins with a whole part of −∞.
fn softmax_rows([rows, cols]: [usize; 2]) -> Vec<f32> {
    let mut x: Vec<f32> = random(rows * cols, 31).iter().map(|x| x * 3.0).collect();
    if cols > PART {
        x[PART / 2 + 4 * 31 + 1] = 11.0;
    }
    if rows > 1 && cols > PART {
        x[cols..cols + PART].fill(f32::NEG_INFINITY);
    }
    x
}

fn norm_rows([rows, cols]: [usize; 2]) -> Vec<f32> {
    // Means differ from part to part.
    let shift = |i: usize| (i % cols / PART) as f32 * 2.0 + 1.0;
    let x = random(rows * cols, 32).into_iter().enumerate();
    x.map(|(i, x)| x + shift(i)).collect()
}

fn statistics(x: Vec<f32>, [rows, cols]: [usize; 2], numbers: &Numbers) -> Case {
    let expected: Vec<Expected> = numbers.iter().flatten().copied().collect();
    let empty = Value::F32s(vec![f32::NAN; expected.len()]);
    let sizes = [rows, cols].map(|size| Value::U32(size as u32));
    Case {
        label: format!("{rows}×{cols}"),
        arguments: [Value::F32s(x), empty].into_iter().chain(sizes).collect(),
        output: 1,
        expected,
    }
}

fn rest(
    x: Vec<f32>,
    [rows, cols]: [usize; 2],
    numbers: &Numbers,
    arrays: Vec<Value>,
    expected: Vec<Expected>,
) -> Case {
    let y = Value::F32s(vec![f32::NAN; x.len()]);
    let numbers = numbers.iter().flatten().map(|number| number.value as f32);
    let mut arguments = vec![Value::F32s(x), y, Value::F32s(numbers.collect())];
    let (arrays, scalars): (Vec<_>, Vec<_>) = arrays
        .into_iter()
        .partition(|value| matches!(value, Value::F32s(_)));
    arguments.extend(arrays);
    arguments.extend([rows, cols].map(|size| Value::U32(size as u32)));
    arguments.extend(scalars);
    Case {
        label: format!("{rows}×{cols}"),
        arguments,
        output: 1,
        expected,
    }
}

fn softmax_numbers(shape: [usize; 2]) -> Case {
    let x = softmax_rows(shape);
    let numbers = numbers(&x, shape[1], of_softmax);
    statistics(x, shape, &numbers)
}

fn softmax_rest(shape: [usize; 2], log: bool) -> Case {
    let x = softmax_rows(shape);
    let numbers = numbers(&x, shape[1], of_softmax);
    let expected = oracle::softmax(&x, shape[1], log);
    rest(x, shape, &numbers, Vec::new(), expected)
}

fn norm_numbers(shape: [usize; 2], centred: bool) -> Case {
    let x = norm_rows(shape);
    let numbers = numbers(&x, shape[1], |part| of_norm(part, centred));
    statistics(x, shape, &numbers)
}

fn norm_rest(shape: [usize; 2], centred: bool) -> Case {
    let x = norm_rows(shape);
    let (weight, bias) = (random(shape[1], 33), random(shape[1], 34));
    let numbers = numbers(&x, shape[1], |part| of_norm(part, centred));
    let expected = oracle::norm(&x, &weight, centred.then_some(&bias), 0.1);
    let mut arrays = vec![Value::F32s(weight)];
    if centred {
        arrays.push(Value::F32s(bias));
    }
    arrays.push(Value::F32(0.1));
    rest(x, shape, &numbers, arrays, expected)
}

//! The steps of a language model's forward pass against `f64`.

use super::cached_attention::Rows;
use super::case::{Case, Expected, Value, random, row_words};
use super::oracle::unit;
use super::variants::Variant;
use relampago_ptx::PtxType::F32;
use relampago_ptx::kernels::{
    Activation, AddRowsKernel, DigitSplit, GateKernel, PackedExpertsKernel, PackedFormat,
    PackedMatmulKernel, PackedRowKernel, PlaceHeadsKernel, RouteKernel, SoftCapKernel,
};

pub(crate) fn variants() -> Vec<Variant> {
    let mut variants = vec![Variant::new(
        AddRowsKernel,
        [[1, 1, 1], [3, 130, 200]].map(add_rows).into(),
    )];
    let capped = [1, 300].map(capped).into();
    variants.push(Variant::new(SoftCapKernel, capped));
    let routed = [([1, 1, 1], true), ([3, 70, 8], true), ([2, 40, 3], false)];
    let routed = routed.map(|(shape, normalises)| routed_rows(shape, normalises));
    variants.push(Variant::new(RouteKernel, routed.into()));
    for (activation, function) in GATES {
        let cases = [[1, 4], [3, 520]].map(|shape| gate(shape, function));
        variants.push(Variant::new(GateKernel::new(activation), cases.into()));
    }
    for format in PackedFormat::ALL {
        let few = [[1, 5, 32], [3, 70, 96], [2, 9, 288], [1, 1, 2080]];
        let few = few.iter().enumerate();
        let few = few.map(|(i, &shape)| product(format, shape, i, true));
        variants.push(Variant::new(PackedMatmulKernel::few(format), few.collect()));
        if format != PackedFormat::Floats {
            variants.extend(digits(format));
        }
        let experts = [
            ([1, 5, 32], false),
            ([3, 70, 96], true),
            ([2, 9, 288], false),
        ];
        let experts = experts.map(|(shape, mixes)| expert_products(format, shape, mixes));
        let kernel = PackedExpertsKernel::new(format);
        variants.push(Variant::new(kernel, experts.into()));
        let rows = [
            (0.0, [1, 32]),
            (2.0, [3, 1120]),
            (3.0, [3, 64]),
            (-1.0, [2, 32]),
        ];
        let rows = rows.map(|(index, shape)| row(format, shape, index));
        variants.push(Variant::new(PackedRowKernel::new(format), rows.into()));
        for (activation, function) in GATES {
            let gated = [[1, 2, 32], [3, 70, 96], [2, 10, 288]];
            let gated = gated.iter().enumerate();
            let gated = gated.map(|(i, &shape)| gated_product(format, shape, i, function));
            let kernel = PackedMatmulKernel::gated(format, activation);
            variants.push(Variant::new(kernel, gated.collect()));
        }
        let many = [[4, 33, 32], [70, 40, 96], [1, 1, 64]];
        let many = many.iter().enumerate();
        let many = many.map(|(i, &shape)| product(format, shape, i, false));
        let many: Vec<Case> = many.collect();
        let kernel = PackedMatmulKernel::tiled(format);
        variants.push(Variant::new(kernel, many.clone()));
        let kernel = PackedMatmulKernel::mma(format);
        variants.push(Variant::new(kernel, many.clone()));
        let kernel = PackedMatmulKernel::mma_wide(format);
        variants.push(Variant::new(kernel, many));
    }
    for rows in Rows::ALL {
        let kernel = PlaceHeadsKernel::new();
        let kernel = match rows {
            Rows::F32 => kernel,
            Rows::F16 => kernel.packed(),
            Rows::Q8 => kernel.quantized(),
        };
        variants.push(Variant::new(kernel, heads(rows)));
    }
    variants
}

/// The kernels that multiply digits on tensor cores.
fn digits(format: PackedFormat) -> Vec<Variant> {
    let least_group = if format == PackedFormat::Nibbles {
        32
    } else {
        16
    };
    let mut variants = Vec::new();
    for split in [DigitSplit::Rows, DigitSplit::Columns, DigitSplit::Tokens] {
        let few = [[1, 5, 64], [3, 70, 96], [6, 9, 576], [1, 1, 2080]];
        let few = few.iter().enumerate();
        let few = few.map(|(i, &shape)| product_within(format, shape, i, true, least_group, 200.0));
        let kernel = PackedMatmulKernel::digits(format, None, split);
        variants.push(Variant::new(kernel, few.collect()));
        for (activation, function) in GATES {
            let gated = [[1, 2, 32], [3, 70, 96], [2, 10, 288]];
            let gated = gated.iter().enumerate();
            let gated = gated.map(|(i, &shape)| gated_product(format, shape, i, function));
            let kernel = PackedMatmulKernel::digits(format, Some(activation), split);
            variants.push(Variant::new(kernel, gated.collect()));
        }
    }
    variants
}

pub(super) fn sizes<const N: usize>(sizes: [usize; N]) -> impl Iterator<Item = Value> {
    sizes.into_iter().map(|size| Value::U32(size as u32))
}

/// An element that a kernel may not change.
pub(super) fn kept(value: f32) -> Expected {
    let value = f64::from(value);
    Expected { value, bound: 0.0 }
}

fn add_rows([rows, len, stride]: [usize; 3]) -> Case {
    let (x, y) = (random(len, 1), random(rows * stride, 2));
    let expected = y.iter().enumerate().map(|(i, &y)| {
        let Some(&x) = x.get(i % stride) else {
            return kept(y);
        };
        let value = f64::from(x) + f64::from(y);
        let bound = value.abs() * unit(F32);
        Expected { value, bound }
    });
    Case {
        label: format!("{rows}×{len} of {stride}"),
        expected: expected.collect(),
        arguments: [Value::F32s(x), Value::F32s(y)]
            .into_iter()
            .chain(sizes([len, rows, stride]))
            .collect(),
        output: 1,
    }
}

type Function = fn(f64) -> f64;

const GATES: [(Activation, Function); 2] = [
    (Activation::Silu, |x| x / (1.0 + (-x).exp())),
    (Activation::GeluTanh, |x| {
        let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
        x / (1.0 + (-2.0 * u).exp())
    }),
];

fn capped(len: usize) -> Case {
    const CAP: f32 = 30.0;
    let mut x = random(len, 5);
    for (scale, x) in [0.01, 1.0, 20.0, 1e4].iter().cycle().zip(&mut x) {
        *x *= scale;
    }
    let expected = x.iter().map(|&x| Expected {
        value: f64::from(CAP) * (f64::from(x) / f64::from(CAP)).tanh(),
        bound: f64::from(CAP) * 2f64.powi(-21),
    });
    let expected = expected.collect();
    let mut arguments = vec![Value::F32s(x)];
    arguments.extend(sizes([len]));
    arguments.push(Value::F32(CAP));
    Case {
        label: format!("{len} elements"),
        arguments,
        output: 0,
        expected,
    }
}

fn gate([rows, hidden]: [usize; 2], function: Function) -> Case {
    let x: Vec<f32> = random(rows * 2 * hidden, 3)
        .iter()
        .map(|x| x * 3.0)
        .collect();
    let row = |row: &[f32]| -> Vec<Expected> {
        let (gates, ups) = row.split_at(hidden);
        let pair = |(&gate, &up): (&f32, &f32)| {
            let value = function(gate.into()) * f64::from(up);
            let bound = value.abs() * (40.0 + 20.0 * f64::from(gate * gate)) * unit(F32);
            Expected { value, bound }
        };
        gates.iter().zip(ups).map(pair).collect()
    };
    Case {
        label: format!("{rows}×{hidden}"),
        expected: x.chunks_exact(2 * hidden).flat_map(row).collect(),
        arguments: [Value::F32s(x), Value::F32s(vec![f32::NAN; rows * hidden])]
            .into_iter()
            .chain(sizes([rows, hidden]))
            .collect(),
        output: 1,
    }
}

/// Packed weights, and what they stand for.
pub(super) struct Packed {
    pub(super) words: Vec<u8>,
    pub(super) scales: Vec<f32>,
    pub(super) weights: Vec<f64>,
}

pub(super) const LEAST: f32 = -8.0;

pub(super) fn packed(format: PackedFormat, len: usize, group: usize) -> Packed {
    let values = random(len, 4);
    let scales = random(2 * len / group, 5);
    let integer = |i: usize, most: f32| (values[i] * 1e4).rem_euclid(most).floor();
    let in_group = |i: usize, integer: f32| {
        let [scale, offset] = [0, 1].map(|part| f64::from(scales[i / group * 2 + part]));
        scale * f64::from(integer) + offset
    };
    let (words, weights) = match format {
        PackedFormat::Floats => (
            values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            values.iter().map(|&x| x.into()).collect(),
        ),
        PackedFormat::Bytes => {
            let integers: Vec<f32> = (0..len).map(|i| integer(i, 256.0) - 128.0).collect();
            let all = integers.iter().enumerate();
            (
                integers.iter().map(|&x| x as i8 as u8).collect(),
                all.map(|(i, &x)| in_group(i, x)).collect(),
            )
        }
        PackedFormat::Nibbles => {
            let integers: Vec<f32> = (0..len).map(|i| integer(i, 16.0)).collect();
            let pairs = integers.chunks_exact(2);
            let all = integers.iter().enumerate();
            (
                pairs
                    .map(|pair| pair[0] as u8 | (pair[1] as u8) << 4)
                    .collect(),
                all.map(|(i, &x)| in_group(i, x + LEAST)).collect(),
            )
        }
        other => panic!("{other:?} has no oracle"),
    };
    Packed {
        words,
        scales,
        weights,
    }
}

/// A product with the options that belong to the case's number.
fn product(format: PackedFormat, shape: [usize; 3], number: usize, few: bool) -> Case {
    // Integers and offsets are added up apart, and may cancel.
    product_within(format, shape, number, few, 16, 4800.0)
}

/// A product by weights in groups of at least `least_group`. Its error is at most `units` roundings of the sum of `|x|`.
fn product_within(
    format: PackedFormat,
    [tokens, rows, k]: [usize; 3],
    number: usize,
    few: bool,
    least_group: usize,
    units: f64,
) -> Case {
    let (adds, normalises) = (number % 2 == 1, few && number % 4 != 2);
    let group = [32, 16][number % 2];
    let group = group.max(least_group);
    let stride = rows + 3 * (number % 2);
    let (scale, epsilon) = (0.75f32, 0.1f32);
    let Packed {
        words,
        scales,
        weights,
    } = packed(format, rows * k, group);
    let (x, gain) = (random(tokens * k, 6), random(k, 7));
    let y = if adds {
        random(tokens * stride, 8)
    } else {
        vec![f32::NAN; tokens * stride]
    };
    let mut expected: Vec<Expected> = y.iter().map(|&y| kept(y)).collect();
    for (token, x) in x.chunks_exact(k).enumerate() {
        let mut x: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        if normalises {
            let square = x.iter().map(|x| x * x).sum::<f64>() / k as f64;
            let factor = 1.0 / (square + f64::from(epsilon)).sqrt();
            let pairs = x.iter_mut().zip(&gain);
            pairs.for_each(|(x, &gain)| *x *= factor * f64::from(gain));
        }
        for (row, weights) in weights.chunks_exact(k).enumerate() {
            let products = x.iter().zip(weights).map(|(x, w)| x * w);
            let value = f64::from(scale) * products.sum::<f64>();
            let size: f64 = x.iter().map(|x| x.abs()).sum();
            let to = &mut expected[token * stride + row];
            let old = if adds { to.value } else { 0.0 };
            *to = Expected {
                value: value + old,
                bound: (size * units + old.abs()) * unit(F32),
            };
        }
    }
    let mut arguments = vec![
        Value::F32s(x),
        Value::F32s(gain),
        Value::Bytes(words),
        Value::F32s(scales),
        Value::F32s(y),
    ];
    arguments.extend(sizes([
        tokens,
        rows,
        k,
        stride,
        usize::from(adds),
        (group / 16).trailing_zeros() as usize,
    ]));
    arguments.extend([LEAST, scale].map(Value::F32));
    if few {
        arguments.extend([Value::U32(u32::from(normalises)), Value::F32(epsilon)]);
    }
    Case {
        label: format!("{tokens}×{rows}×{k}, adds {adds}, normalises {normalises}"),
        arguments,
        output: 4,
        expected,
    }
}

/// The choice of experts by rows, of which two elements are the same.
fn routed_rows([rows, experts, used]: [usize; 3], normalises: bool) -> Case {
    let mut logits = random(rows * experts, 6);
    for row in logits.chunks_exact_mut(experts) {
        row[experts / 2] = 2.0;
        row[experts / 3] = 2.0;
    }
    let mut expected = Vec::new();
    for row in logits.chunks_exact(experts) {
        let mut order: Vec<usize> = (0..experts).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        let odds = |i: &usize| (f64::from(row[*i]) - f64::from(row[order[0]])).exp();
        let chosen = &order[..used];
        let counted = if normalises { chosen } else { &order };
        let total: f64 = counted.iter().map(odds).sum();
        expected.extend(chosen.iter().map(|&i| kept(i as f32)));
        expected.extend(chosen.iter().map(|i| Expected {
            value: odds(i) / total,
            bound: 64.0 * unit(F32),
        }));
    }
    let routes = Value::F32s(vec![f32::NAN; expected.len()]);
    let mut arguments = vec![Value::F32s(logits), routes];
    arguments.extend(sizes([rows, experts, used, usize::from(normalises)]));
    Case {
        label: format!("{used} of {experts} experts, {rows} rows"),
        arguments,
        output: 1,
        expected,
    }
}

/// Products by the matrices of two of three experts.
fn expert_products(format: PackedFormat, [tokens, rows, k]: [usize; 3], mixes: bool) -> Case {
    const EXPERTS: usize = 3;
    const USED: usize = 2;
    let (group, scale) = (32, 0.75f32);
    let Packed {
        words,
        scales,
        weights,
    } = packed(format, EXPERTS * rows * k, group);
    let (inputs, results) = if mixes { (USED, 1) } else { (1, USED) };
    let stride = results * rows + 3;
    let x = random(tokens * inputs * k, 6);
    let y = random(tokens * stride, 8);
    let shares = random(tokens * USED, 9);
    let chosen = |token: usize, i: usize| (token + 2 * i) % EXPERTS;
    let mut routes = Vec::new();
    let mut expected: Vec<Expected> = y.iter().map(|&y| kept(y)).collect();
    for token in 0..tokens {
        routes.extend((0..USED).map(|i| chosen(token, i) as f32));
        routes.extend_from_slice(&shares[token * USED..][..USED]);
        for (i, row) in (0..USED).flat_map(|i| (0..rows).map(move |row| (i, row))) {
            let from = if mixes { token * USED + i } else { token };
            let x = x[from * k..][..k].iter().map(|&x| f64::from(x));
            let own = &weights[(chosen(token, i) * rows + row) * k..][..k];
            let product: f64 = x.clone().zip(own).map(|(x, w)| x * w).sum();
            let bound = x.map(f64::abs).sum::<f64>() * 5000.0 * unit(F32);
            let column = if mixes { row } else { i * rows + row };
            let to = &mut expected[token * stride + column];
            *to = if mixes {
                let share = f64::from(scale) * f64::from(shares[token * USED + i]);
                Expected {
                    value: to.value + share * product,
                    bound: to.bound + bound,
                }
            } else {
                Expected {
                    value: product,
                    bound,
                }
            };
        }
    }
    let mut arguments = vec![
        Value::F32s(x),
        Value::F32s(routes),
        Value::Bytes(words),
        Value::F32s(scales),
        Value::F32s(y),
    ];
    arguments.extend(sizes([
        tokens,
        rows,
        k,
        USED,
        results,
        stride,
        usize::from(mixes),
        (group / 16usize).trailing_zeros() as usize,
    ]));
    arguments.extend([LEAST, scale].map(Value::F32));
    Case {
        label: format!("{tokens}×{rows}×{k}, mixes {mixes}"),
        arguments,
        output: 4,
        expected,
    }
}

/// A row of a matrix, or what was there where there is no such row.
fn row(format: PackedFormat, [rows, k]: [usize; 2], index: f32) -> Case {
    let (group, scale) = (32, 0.75f32);
    let Packed {
        words,
        scales,
        weights,
    } = packed(format, rows * k, group);
    let known = index >= 0.0 && index < rows as f32;
    let element = |i: usize| {
        if !known {
            return kept(9.0);
        }
        let value = f64::from(scale) * weights[index as usize * k + i];
        // The product of an integer and its scale may cancel the offset.
        let bound = (value.abs() + 300.0) * 4.0 * unit(F32);
        Expected { value, bound }
    };
    let mut arguments = vec![
        Value::F32s(vec![index]),
        Value::Bytes(words),
        Value::F32s(scales),
        Value::F32s(vec![9.0; k]),
    ];
    arguments.extend(sizes([rows, k, 1]));
    arguments.extend([LEAST, scale].map(Value::F32));
    Case {
        label: format!("row {index} of {rows}×{k}"),
        expected: (0..k).map(element).collect(),
        arguments,
        output: 3,
    }
}

/// A product that adds to nothing, and the gates of its halves.
fn gated_product(
    format: PackedFormat,
    shape: [usize; 3],
    number: usize,
    function: Function,
) -> Case {
    let [tokens, rows, _] = shape;
    let mut case = product(format, shape, 2 * number, true);
    let (hidden, stride) = (rows / 2, rows / 2 + 3 * number);
    let mut expected = vec![kept(9.0); tokens * stride];
    let products = case.expected.chunks_exact(rows);
    for (products, results) in products.zip(expected.chunks_exact_mut(stride)) {
        let (gates, passes) = products.split_at(hidden);
        for (result, (gate, passes)) in results.iter_mut().zip(gates.iter().zip(passes)) {
            let activated = function(gate.value);
            let value = activated * passes.value;
            let own = value.abs() * (40.0 + 20.0 * gate.value * gate.value) * unit(F32);
            // The slope of either function is at most 1.13.
            let of_gate = 1.13 * gate.bound * (passes.value.abs() + passes.bound);
            let bound = own + of_gate + activated.abs() * passes.bound;
            *result = Expected { value, bound };
        }
    }
    case.label.push_str(", gated");
    case.arguments[4] = Value::F32s(vec![9.0; expected.len()]);
    case.arguments[8] = Value::U32(stride as u32);
    case.expected = expected;
    case
}

fn heads(rows: Rows) -> Vec<Case> {
    // The length of a head, rotated pairs, whether they are neighbours, and the kind of gains.
    let cases = [
        (8, 4, false, 1),
        (64, 32, true, 1),
        (136, 0, false, 0),
        (16, 8, false, 2),
    ];
    let cases = cases.into_iter().enumerate();
    cases
        .flat_map(|(i, case)| place_heads(i, case, rows))
        .collect()
}

/// Returns two cases of a launch, one for queries and one for the cache.
fn place_heads(
    number: usize,
    (head_len, pairs, neighbours, gains_kind): (usize, usize, bool, usize),
    rows: Rows,
) -> [Case; 2] {
    let (tokens, query_heads, kv_heads) = (3, 2, 1);
    let heads = query_heads + 2 * kv_heads;
    let turned = query_heads + kv_heads;
    let (head_len, row_len) = match rows {
        Rows::F32 => (head_len, head_len),
        Rows::F16 => (head_len, head_len / 2),
        Rows::Q8 => {
            let len = head_len.next_multiple_of(16);
            (len, row_words(len))
        }
    };
    // In a ring row 0 follows the last one.
    let (position, capacity) = (5, 4 + number);
    let epsilon = 0.1f32;
    let mut x = random(tokens * heads * head_len, 9);
    // An element of a value beyond the range of f16.
    x[3 * head_len] = 1e6;
    let infinite = rows == Rows::Q8;
    if infinite {
        x[(heads + 3) * head_len] = f32::INFINITY;
    }
    let together = gains_kind == 2;
    let gain_heads = if together {
        [query_heads, kv_heads]
    } else {
        [1, 1]
    };
    let gains = [10, 12].into_iter().zip(gain_heads);
    let gains: Vec<Vec<f32>> = gains
        .map(|(seed, heads)| random(heads * head_len, seed))
        .collect();
    let all_angles = (position + tokens) * pairs.max(1);
    let angles = random(4 * all_angles, 11);
    let query_angles = if together { all_angles } else { 0 };
    let mut queries = Vec::new();
    let mut cached = vec![kept(9.0); 2 * kv_heads * capacity * head_len];
    for (index, elements) in x.chunks_exact(head_len).enumerate() {
        let (token, head) = (index / heads, index % heads);
        let mut values: Vec<f64> = elements.iter().map(|&x| x.into()).collect();
        if head < turned && gains_kind > 0 {
            let (of_kind, first) = if head < query_heads {
                (query_heads, 0)
            } else {
                (kv_heads, query_heads)
            };
            let (normed, before) = if together {
                let first = (token * heads + first) * head_len;
                let before = (index * head_len - first) % (of_kind * head_len);
                (&x[first..][..of_kind * head_len], before)
            } else {
                (elements, 0)
            };
            let squares = normed.iter().map(|&x| f64::from(x) * f64::from(x));
            let square = squares.sum::<f64>() / normed.len() as f64;
            let factor = 1.0 / (square + f64::from(epsilon)).sqrt();
            let pairs = values.iter_mut().zip(&gains[head / query_heads][before..]);
            pairs.for_each(|(x, &gain)| *x *= factor * f64::from(gain));
        }
        let mut sizes: Vec<f64> = values.iter().map(|x| x.abs()).collect();
        for pair in 0..if head < turned { pairs } else { 0 } {
            let (a, b) = if neighbours {
                (2 * pair, 2 * pair + 1)
            } else {
                (pair, pairs + pair)
            };
            let first = if head < query_heads { query_angles } else { 0 };
            let at = 2 * (first + (position + token) * pairs + pair);
            let [cos, sin] = [0, 1].map(|part| f64::from(angles[at + part]));
            let [first, second] = [values[a], values[b]];
            values[a] = first * cos - second * sin;
            values[b] = first * sin + second * cos;
            sizes[a] = 2.0 * (first.abs() + second.abs());
            sizes[b] = sizes[a];
        }
        if head < query_heads {
            let pairs = values.iter().zip(sizes);
            queries.extend(pairs.map(|(&value, size)| in_f32(value, size)));
            continue;
        }
        if infinite && index == heads + 3 {
            // The block of the element that is infinite.
            values[..head_len.min(32)].fill(f64::NAN);
        }
        let row = (head - query_heads) * capacity + (position + token) % capacity;
        let row = &mut cached[row * head_len..][..head_len];
        place_row(&values, &sizes, rows, row);
    }
    let words = 2 * kv_heads * capacity * row_len;
    let outputs = [
        Value::F32s(vec![f32::NAN; queries.len()]),
        match rows {
            Rows::F32 => Value::F32s(vec![9.0; cached.len()]),
            Rows::F16 => Value::F16s(vec![9.0; cached.len()]),
            Rows::Q8 => Value::Integers(nines(words, head_len), head_len),
        },
    ];
    let mut arguments = vec![Value::F32s(x)];
    arguments.extend(gains.into_iter().map(Value::F32s));
    arguments.push(Value::F32s(angles));
    arguments.extend(outputs);
    arguments.extend(self::sizes([
        tokens,
        heads,
        query_heads,
        turned,
        head_len,
        position,
        pairs,
        usize::from(neighbours),
        gains_kind,
        capacity,
        query_angles,
    ]));
    arguments.push(Value::F32(epsilon));
    [(4, queries), (5, cached)].map(|(output, expected)| Case {
        label: format!("{heads} heads of {head_len}, {pairs} pairs, result {output}"),
        arguments: arguments.clone(),
        output,
        expected,
    })
}

/// Words of rows whose elements are 9.
fn nines(words: usize, len: usize) -> Vec<f32> {
    let row: Vec<f32> = (0..row_words(len))
        .map(|word| match word < len / 4 {
            true => f32::from_bits(0x0909_0909),
            false => 1.0,
        })
        .collect();
    row.repeat(words / row.len())
}

fn in_f32(value: f64, size: f64) -> Expected {
    let bound = size * 32.0 * unit(F32);
    Expected { value, bound }
}

/// Writes the elements of a head in the layout of a row of the cache.
fn place_row(values: &[f64], sizes: &[f64], rows: Rows, row: &mut [Expected]) {
    let len = values.len();
    for (i, (&value, &size)) in values.iter().zip(sizes).enumerate() {
        // The place of an element in a row of pairs of both halves.
        let place = match (rows, i < len / 2) {
            (Rows::F32 | Rows::Q8, _) => i,
            (Rows::F16, true) => 2 * i,
            (Rows::F16, false) => 2 * (i - len / 2) + 1,
        };
        let block = &values[i / 32 * 32..len.min(i / 32 * 32 + 32)];
        let largest = block.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        row[place] = match rows {
            Rows::F32 => in_f32(value, size),
            Rows::F16 => {
                let value = value.clamp(-65504.0, 65504.0);
                let bound = value.abs() / 2048.0 + size * 1e-5 + 1e-7;
                Expected { value, bound }
            }
            Rows::Q8 => {
                let bound = largest / 253.0 + size * 1e-5;
                Expected { value, bound }
            }
        };
    }
}

//! The choice of tokens from logits against `f64`.

use super::case::{Case, Expected, Value, random};
use super::oracle::unit;
use super::steps::{kept, sizes};
use super::variants::Variant;
use relampago_ptx::PtxType::F32;
use relampago_ptx::kernels::{
    ArgmaxKernel, ChangeLogitsKernel, DrawKernel, ForbidKernel, RankKernel, SumWeightsKernel,
};
use std::cmp::Ordering;

pub(crate) fn variants() -> Vec<Variant> {
    vec![
        Variant::new(ArgmaxKernel, argmax()),
        Variant::new(RankKernel, rankings()),
        Variant::new(SumWeightsKernel, sums()),
        Variant::new(ChangeLogitsKernel, changes()),
        Variant::new(ForbidKernel, masks()),
        Variant::new(DrawKernel, draws()),
    ]
}

/// The bias that forbids a token.
const FORBIDDEN: f32 = -1e30;

fn argmax() -> Vec<Case> {
    let mut cases = Vec::new();
    for (n, places, best) in [
        (1, vec![], None),
        (5, vec![(3, f32::INFINITY), (4, f32::INFINITY)], Some(3)),
        (
            1500,
            vec![(1400, f32::NAN), (1401, f32::NAN), (7, 1e30)],
            Some(1400),
        ),
        (3000, vec![(2999, 100.0), (1975, 100.0)], Some(1975)),
        (2050, vec![], None),
        (20_000, vec![(16_000, 9.0), (19_999, 9.5)], Some(19_999)),
        (20_000, vec![(13_000, 9.0), (15_999, 8.0)], Some(13_000)),
    ] {
        let mut x = random(n, n as u64);
        for (place, value) in places {
            x[place] = value;
        }
        let largest = (0..n).rev().max_by(|&a, &b| x[a].total_cmp(&x[b]));
        cases.push((x, best.or(largest).unwrap_or(0)));
    }
    // All are negative, and the two zeros are equal.
    cases.push((vec![-2.0, -1.0, f32::NEG_INFINITY, -1.0], 1));
    cases.push((vec![-3.0, -0.0, 0.0], 1));
    cases.push((vec![f32::NEG_INFINITY; 40], 0));
    let case = |(mut x, best): (Vec<f32>, usize)| {
        let n = x.len();
        // What lies beyond counts nothing.
        x.push(f32::NAN);
        Case {
            label: format!("{n} elements, {best}"),
            expected: vec![kept(best as f32)],
            arguments: vec![
                Value::F32s(x),
                Value::F32s(vec![f32::NAN]),
                Value::U32(n as u32),
            ],
            output: 1,
        }
    };
    cases.into_iter().map(case).collect()
}

/// The order of elements: NaN before numbers, larger before smaller, earlier before later.
fn order(a: (f32, f32), b: (f32, f32)) -> Ordering {
    let by_value = match (a.0.is_nan(), b.0.is_nan()) {
        (false, false) => b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal),
        (a, b) => b.cmp(&a),
    };
    by_value.then(a.1.total_cmp(&b.1))
}

fn rankings() -> Vec<Case> {
    let mut with_ties = random(1500, 3);
    with_ties.iter_mut().for_each(|x| *x = (*x * 20.0).round());
    with_ties[1400] = f32::NAN;
    with_ties[20] = f32::NAN;
    with_ties[30] = f32::INFINITY;
    let mut low = random(100, 4);
    low[..90].fill(f32::NEG_INFINITY);
    low[91] = FORBIDDEN;
    let pairs = |values: Vec<f32>| {
        let mut pairs: Vec<(f32, f32)> = (0..)
            .map(|i| i as f32)
            .zip(values)
            .map(|(i, x)| (x, i))
            .collect();
        pairs.reverse();
        pairs
    };
    let mut cases = Vec::new();
    for (values, is_pairs) in [
        (vec![0.5], false),
        (vec![-2.0, 3.0, -0.5], true),
        (low, false),
        (with_ties.clone(), false),
        (with_ties, true),
    ] {
        let n = values.len();
        let (mut elements, x): (Vec<(f32, f32)>, Vec<f32>) = if is_pairs {
            let pairs = pairs(values);
            (
                pairs.clone(),
                pairs.iter().flat_map(|&(x, i)| [x, i]).collect(),
            )
        } else {
            let mut pairs = pairs(values.clone());
            pairs.reverse();
            (pairs, values)
        };
        let mut expected = Vec::new();
        for chunk in elements.chunks_mut(RankKernel::CHUNK) {
            chunk.sort_by(|&a, &b| order(a, b));
            let nothing = (f32::NEG_INFINITY, (1 << 24) as f32);
            let ranked = chunk.iter().copied().chain(std::iter::repeat(nothing));
            let ranked = ranked.take(RankKernel::RANKED);
            expected.extend(ranked.flat_map(|(x, i)| [kept(x), kept(i)]));
        }
        let mut arguments = vec![Value::F32s(x), Value::F32s(vec![f32::NAN; expected.len()])];
        arguments.extend(sizes([n, usize::from(is_pairs)]));
        cases.push(Case {
            label: format!("{n} elements, pairs {is_pairs}"),
            arguments,
            output: 1,
            expected,
        });
    }
    cases
}

fn weight(logit: f32, largest: f32, temperature: f32) -> f64 {
    if logit <= FORBIDDEN {
        return 0.0;
    }
    ((f64::from(logit) - f64::from(largest)) / f64::from(temperature)).exp()
}

fn sums() -> Vec<Case> {
    let case = |(n, blocks, least): (usize, usize, f32)| {
        let mut x = random(n, 5);
        x.iter_mut().for_each(|x| *x *= 4.0);
        x[n / 2] = FORBIDDEN;
        let (largest, temperature) = (4.5f32, 0.7f32);
        let mut expected = vec![kept(0.0); blocks];
        for (i, &x) in x.iter().enumerate() {
            let weight = weight(x, largest, temperature);
            if weight >= f64::from(least) {
                expected[i / 256 % blocks].value += weight;
            }
        }
        for sum in &mut expected {
            // Of the difference of logits, the quotient and the additions.
            sum.bound = sum.value * 40.0 * unit(F32);
        }
        let mut arguments = vec![
            Value::F32s(x),
            Value::F32s(vec![largest]),
            Value::F32s(vec![f32::NAN; blocks]),
        ];
        arguments.extend(sizes([n, blocks]));
        arguments.extend([temperature, least].map(Value::F32));
        Case {
            label: format!("{n} elements in {blocks}, at least {least}"),
            arguments,
            output: 2,
            expected,
        }
    };
    [(1, 1, 0.0), (300, 2, 0.02), (1500, 3, 0.0)]
        .map(case)
        .into()
}

fn changes() -> Vec<Case> {
    // Tokens with their biases and counts.
    let list = [
        (3, 0.5, 0),
        (7, 0.0, 2),
        (2, FORBIDDEN, 1),
        (90, 0.0, 1),
        (0, 0.0, 0),
    ];
    // The last ones are no tokens of the vocabulary.
    let chosen = [7.0, 5.0, 11.0, 5.0, 3.0, -1.0, 77.0];
    let case = |(since, [repetition, presence, frequency]): (usize, [f32; 3])| {
        let (n, mut logits) = (70, random(70, 6));
        logits.iter_mut().for_each(|x| *x *= 3.0);
        let mut expected: Vec<Expected> = logits.iter().map(|&x| kept(x)).collect();
        for (token, logit) in expected.iter_mut().enumerate() {
            let change = list.iter().find(|change| change.0 == token);
            let times = chosen[..since]
                .iter()
                .filter(|&&other| other == token as f32)
                .count();
            let (bias, count) = change.map_or((0.0, times), |change| (change.1, change.2 + times));
            let biased = logit.value + f64::from(bias);
            let mut value = biased;
            if count > 0 {
                let factor = f64::from(repetition);
                value = if biased > 0.0 {
                    biased / factor
                } else {
                    biased * factor
                };
                value -= f64::from(presence) + f64::from(frequency) * count as f64;
            }
            let size = logit.value.abs() + biased.abs() * f64::from(repetition) + 4.0;
            let bound = if change.is_some() || count > 0 {
                size * 8.0 * unit(F32)
            } else {
                0.0
            };
            *logit = Expected { value, bound };
        }
        let flat = list
            .iter()
            .flat_map(|&(token, bias, count)| [token as f32, bias, count as f32]);
        let mut arguments = vec![
            Value::F32s(flat.collect()),
            Value::F32s(chosen.to_vec()),
            Value::F32s(logits),
        ];
        arguments.extend(sizes([n, list.len(), list.len() + since]));
        arguments.extend([repetition, presence, frequency].map(Value::F32));
        Case {
            label: format!("{since} chosen, {repetition}, {presence}, {frequency}"),
            arguments,
            output: 2,
            expected,
        }
    };
    [
        (0, [1.0, 0.0, 0.0]),
        (7, [1.3, 0.0, 0.25]),
        (4, [0.8, 0.5, 0.0]),
    ]
    .map(case)
    .into()
}

fn masks() -> Vec<Case> {
    let case = |n: usize| {
        let logits = random(n, 7);
        let words = random(n.div_ceil(32), 8).into_iter().map(f32::to_bits);
        // Of every fourth word all tokens are forbidden, and of the next one allowed.
        let words: Vec<u32> = words
            .zip(0..)
            .map(|(word, i)| match i % 4 {
                1 => 0,
                2 => u32::MAX,
                _ => word,
            })
            .collect();
        let is_allowed = |token: usize| words[token / 32] >> (token % 32) & 1 == 1;
        let expected = logits.iter().enumerate();
        let expected = expected.map(|(token, &logit)| match is_allowed(token) {
            true => kept(logit),
            false => kept(ForbidKernel::LOGIT),
        });
        let mut expected: Vec<Expected> = expected.collect();
        let mut logits = logits;
        // What lies beyond stays.
        logits.push(0.5);
        expected.push(kept(0.5));
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut arguments = vec![Value::Bytes(bytes), Value::F32s(logits)];
        arguments.extend(sizes([n]));
        Case {
            label: format!("{n} tokens"),
            arguments,
            output: 1,
            expected,
        }
    };
    [1, 37, 256, 1000].map(case).into()
}

/// A draw among ranked logits: how many may be drawn, whether they are all, and the sum of all weights otherwise.
#[derive(Clone, Copy)]
struct Ranked {
    count: usize,
    is_all: bool,
    sum: f32,
}

fn draws() -> Vec<Case> {
    let all = |count| Ranked {
        count,
        is_all: true,
        sum: f32::NAN,
    };
    let some = |sum| Ranked {
        count: 64,
        is_all: false,
        sum,
    };
    let mut cases = Vec::new();
    for (ranked, [top_p, min_p], name) in [
        (all(5), [1.0, 0.0], "all"),
        (all(64), [0.8, 0.0], "top_p"),
        (all(64), [1.0, 0.3], "min_p"),
        (some(30.0), [1.0, 0.3], "min_p leaves others out"),
        (some(60.0), [1.0, 0.0], "some"),
        (some(30.0), [0.3, 0.0], "top_p of some"),
        (some(60.0), [0.9, 0.0], "too few"),
        (all(1), [0.5, 0.9], "one"),
    ] {
        for fraction in [0.0, 0.123, 0.41, 0.77, 0.999_999] {
            cases.push(draw(ranked, [top_p, min_p, fraction], name, None));
        }
    }
    cases.push(draw(all(9), [1.0, 0.0, 0.5], "NaN", Some(f32::NAN)));
    cases.push(draw(all(9), [1.0, 0.0, 0.99], "forbidden", Some(FORBIDDEN)));
    cases
}

/// A case whose first logit, or the last three of nine if the special value is finite, are special.
fn draw(ranked: Ranked, limits: [f32; 3], name: &str, special: Option<f32>) -> Case {
    let [top_p, min_p, fraction] = limits;
    let temperature = 0.6f32;
    let mut logits: Vec<f32> = (0..64).map(|i| 2.0 - 0.031 * i as f32).collect();
    match special {
        Some(x) if x.is_nan() => logits[0] = x,
        Some(x) => logits[6..].fill(x),
        None => {}
    }
    let largest = logits[0];
    let weights: Vec<f64> = logits
        .iter()
        .map(|&x| weight(x, largest, temperature))
        .collect();
    let wanted = drawn(ranked, &weights, limits.map(f64::from));
    let wanted = if largest.is_nan() { None } else { wanted };
    let token = |place: usize| 1000.0 - 3.0 * place as f32;
    let pairs = (0..).zip(&logits).flat_map(|(place, &x)| [x, token(place)]);
    // The sum in two parts.
    let sums = vec![0.25 * ranked.sum, 0.75 * ranked.sum];
    let mut arguments = vec![
        Value::F32s(pairs.collect()),
        Value::F32s(sums),
        Value::F32s(vec![f32::NAN]),
    ];
    arguments.extend(sizes([ranked.count, usize::from(ranked.is_all), 2]));
    arguments.extend([temperature, top_p, min_p, fraction].map(Value::F32));
    Case {
        label: format!("{name}, {fraction}"),
        arguments,
        output: 2,
        expected: vec![kept(wanted.map_or(-1.0, token))],
    }
}

/// Returns the place that a draw gives, or none where it may be that of another token.
fn drawn(ranked: Ranked, weights: &[f64], [top_p, min_p, fraction]: [f64; 3]) -> Option<usize> {
    let allowed = weights[..ranked.count]
        .iter()
        .take_while(|&&w| w > 0.0 && w >= min_p);
    let mut kept: Vec<f64> = allowed.copied().collect();
    let is_all = ranked.is_all || kept.len() < ranked.count;
    let sum: f64 = if is_all {
        kept.iter().sum()
    } else {
        ranked.sum.into()
    };
    let mut total = sum;
    if top_p < 1.0 {
        let mut so_far = 0.0;
        let reached = kept.iter().position(|w| {
            so_far += w;
            so_far >= top_p * sum
        });
        match reached {
            Some(last) => kept.truncate(last + 1),
            None if is_all => {}
            None => return None,
        }
        total = kept.iter().sum();
    }
    let mut rest = fraction * total;
    let place = kept.iter().position(|w| {
        rest -= w;
        rest < 0.0
    });
    place.or((is_all || top_p < 1.0).then_some(0))
}

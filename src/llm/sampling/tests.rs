//! Tests of the choice of tokens, on the host and on a GPU, against a plain sort.

use std::sync::Arc;

use super::{Sampler, Sampling, draw};
use crate::gpu::{Gpu, GpuBuffer, Options, Preference};
use crate::graph::choice::{Change, Changes, Draw, Limits, RANKED};
use crate::graph::steps::{StepBackend, StepPass};
use crate::random::Philox;
use crate::runtime::block_on;

/// The error of a sum of probabilities in `f32`.
const TOLERANCE: f64 = 2e-5;

/// The tokens within limits with their weights, the likeliest first.
fn within(logits: &[f32], limits: Limits) -> Vec<(u32, f64)> {
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    let logit = |token: u32| f64::from(logits[token as usize]);
    order.sort_by(|&a, &b| logit(b).total_cmp(&logit(a)));
    if limits.top_k > 0 {
        order.truncate(limits.top_k);
    }
    let largest = logit(order[0]);
    let weight = |token: u32| ((logit(token) - largest) / f64::from(limits.temperature)).exp();
    let weights = order.into_iter().map(|token| (token, weight(token)));
    let mut weights: Vec<_> = weights
        .filter(|&(_, weight)| weight >= f64::from(limits.min_p))
        .collect();
    let enough = f64::from(limits.top_p) * total(&weights);
    let mut sum = 0.0;
    let whole = weights.iter().position(|&(_, weight)| {
        sum += weight;
        sum >= enough
    });
    if let (true, Some(last)) = (limits.top_p < 1.0, whole) {
        weights.truncate(last + 1);
    }
    weights
}

fn total(weights: &[(u32, f64)]) -> f64 {
    weights.iter().map(|&(_, weight)| weight).sum()
}

/// Returns whether a token is the one at a fraction of the probabilities.
fn is_at(weights: &[(u32, f64)], token: u32, fraction: f64) -> bool {
    let index = weights.iter().position(|&(other, _)| other == token);
    index.is_some_and(|index| {
        let part = |end| total(&weights[..end]) / total(weights);
        let part = part(index) - TOLERANCE..=part(index + 1) + TOLERANCE;
        part.contains(&fraction)
    })
}

/// Returns whether the ranked tokens alone do not give the one at a fraction of the probabilities.
fn needs_all(weights: &[(u32, f64)], limits: Limits, fraction: f64) -> bool {
    if weights.len() <= RANKED {
        return false;
    }
    let ranked = total(&weights[..RANKED]) / total(weights);
    limits.top_p < 1.0 || fraction >= ranked - TOLERANCE
}

const LENS: [usize; 9] = [1, 2, 63, 64, 65, 1_000, 1_025, 5_000, 20_000];

/// Normally distributed logits; some are equal, and one is forbidden.
fn logits(len: usize, deviation: f32) -> Vec<f32> {
    let mut logits = vec![0.0; len];
    Philox::new(len as u64).normal(0, &mut logits);
    for logit in &mut logits {
        *logit = (*logit * 16.0).round() / 16.0 * deviation;
    }
    logits[len / 2] = -1e30;
    logits
}

fn limits() -> Vec<Limits> {
    let plain = Limits {
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
    };
    let limits = |change: fn(&mut Limits)| {
        let mut limits = plain;
        change(&mut limits);
        limits
    };
    vec![
        plain,
        limits(|limits| limits.temperature = 0.1),
        limits(|limits| limits.temperature = 30.0),
        limits(|limits| limits.top_k = 1),
        limits(|limits| limits.top_k = 40),
        limits(|limits| limits.top_k = RANKED),
        limits(|limits| limits.top_p = 0.0),
        limits(|limits| limits.top_p = 0.9),
        limits(|limits| limits.min_p = 0.05),
        limits(|limits| (limits.top_k, limits.top_p) = (50, 0.5)),
        limits(|limits| (limits.min_p, limits.top_p) = (0.3, 0.6)),
    ]
}

/// Calls `check` with many logits, limits, and fractions of the probabilities.
fn for_cases(mut check: impl FnMut(&[f32], Draw, &str)) {
    let mut fractions = [0.0; 7];
    Philox::new(7).uniform(0, &mut fractions[1..]);
    for len in LENS {
        for deviation in [0.5, 3.0] {
            let logits = logits(len, deviation);
            for limits in limits() {
                for uniform in fractions {
                    let what = format!("{len} × {deviation}, {limits:?}, {uniform}");
                    check(&logits, Draw { limits, uniform }, &what);
                }
            }
        }
    }
}

#[test]
fn a_draw_is_the_token_at_a_fraction_of_the_probabilities() {
    for_cases(|logits, Draw { limits, uniform }, what| {
        let token = draw(logits, limits, uniform.into());
        assert!(
            is_at(&within(logits, limits), token, uniform.into()),
            "{what}: {token}"
        );
    });
}

/// Submits steps with the logits on a GPU; returns the first element of a buffer that they write to.
fn on_gpu(
    gpu: &Arc<Gpu>,
    logits: &[f32],
    steps: impl FnOnce(&mut <Arc<Gpu> as StepBackend>::Pass<'_>, &GpuBuffer, &GpuBuffer),
) -> Vec<f32> {
    let reading = {
        let mut pass = gpu.pass().unwrap();
        let (logits, chosen) = (pass.upload(logits).unwrap(), pass.allocate(4).unwrap());
        steps(&mut pass, &logits, &chosen);
        pass.submit(Some((&chosen, 4))).unwrap()
    };
    block_on(reading).unwrap()
}

fn gpu() -> Arc<Gpu> {
    let options = Options {
        preference: Preference::Any,
        ..Options::default()
    };
    let gpus = block_on(Gpu::open_some(&options, 1));
    gpus.expect("the tests need an adapter, llvmpipe for one")
        .swap_remove(0)
}

#[test]
fn a_gpu_draws_the_token_at_a_fraction_or_tells_that_it_needs_all_logits() {
    let gpu = gpu();
    let mut undecided = 0;
    for_cases(|logits, draw, what| {
        let place = (draw.uniform * 4.0) as usize;
        let chosen = on_gpu(&gpu, logits, |pass, buffer, chosen| {
            pass.draw(buffer, logits.len(), draw, (chosen, place))
                .unwrap();
        });
        let (token, fraction) = (chosen[place], f64::from(draw.uniform));
        let within = within(logits, draw.limits);
        if token < 0.0 {
            assert!(needs_all(&within, draw.limits, fraction), "{what}");
            undecided += 1;
        } else {
            assert!(is_at(&within, token as u32, fraction), "{what}: {token}");
        }
    });
    assert!(undecided > 50, "{undecided}");
}

#[test]
fn logits_that_are_no_numbers_are_left_to_the_host() {
    let gpu = gpu();
    let mut logits = logits(2_000, 1.0);
    logits[1_500] = f32::NAN;
    let draw = Draw {
        limits: limits()[0],
        uniform: 0.5,
    };
    let chosen = on_gpu(&gpu, &logits, |pass, buffer, chosen| {
        pass.draw(buffer, logits.len(), draw, (chosen, 0)).unwrap();
    });
    assert_eq!(chosen[0], -1.0);
}

#[test]
fn a_gpu_changes_logits_by_tokens_before_and_since() {
    let gpu = gpu();
    let mut options = Sampling {
        repetition_penalty: 1.5,
        presence_penalty: 0.25,
        frequency_penalty: 0.125,
        logit_bias: vec![(3, 2.0), (3, 1.0), (60, f32::NEG_INFINITY), (900, 1.0)],
        ..Sampling::default()
    };
    let before = [5, 3, 5, 9];
    let since = [9, 7, 7, 3];
    let logits = logits(100, 2.0);
    for penalised in [true, false] {
        if !penalised {
            (options.repetition_penalty, options.presence_penalty) = (1.0, 0.0);
            options.frequency_penalty = 0.0;
        }
        let mut wanted: Vec<_> = logits.iter().map(|&logit| (logit, logit.abs())).collect();
        for change in options.changes(&[&before, &since]) {
            if let Some((logit, magnitude)) = wanted.get_mut(change.token as usize) {
                let product = (*logit + change.bias).abs() * options.repetition_penalty;
                *magnitude = product + change.bias.abs();
                *logit = options.penalties().apply(*logit, change);
            }
        }
        let reading = {
            let mut pass = gpu.pass().unwrap();
            let changes = options.changes(&[&before]);
            let changes = Changes {
                list: pass.upload(&Change::list(&changes)).unwrap(),
                len: changes.len(),
                penalties: options.penalties(),
            };
            let chosen = pass.upload(&since.map(|token| token as f32)).unwrap();
            let buffer = pass.upload(&logits).unwrap();
            let next = (&chosen, since.len());
            pass.change(&changes, next, &buffer, logits.len()).unwrap();
            pass.submit(Some((&buffer, logits.len()))).unwrap()
        };
        let is = block_on(reading).unwrap();
        for (token, (is, (want, magnitude))) in is.into_iter().zip(wanted).enumerate() {
            let close = (is - want).abs() <= 1e-6 * magnitude || want.max(is) < -1e29;
            assert!(close, "{penalised}: {token} is {is}, not {want}");
        }
    }
}

#[test]
fn limits_leave_only_the_likeliest_tokens() {
    let base = Sampling {
        temperature: 1.0,
        ..Sampling::default()
    };
    let cases = [
        Sampling {
            temperature: 0.0,
            ..base.clone()
        },
        Sampling {
            top_k: 1,
            ..base.clone()
        },
        Sampling {
            top_p: 0.1,
            ..base.clone()
        },
        Sampling { min_p: 0.9, ..base },
    ];
    for options in cases {
        for seed in 0..20 {
            let mut sampler = Sampler::new(Sampling {
                seed,
                ..options.clone()
            });
            assert_eq!(
                sampler.choose(&mut [0.0, 1.0, 3.0, -1.0], &[]),
                2,
                "{options:?}"
            );
        }
    }
}

#[test]
fn penalties_move_the_choice() {
    let options = Sampling {
        repetition_penalty: 2.0,
        ..Sampling::default()
    };
    let mut sampler = Sampler::new(options);
    assert_eq!(sampler.choose(&mut [1.0, 1.5, -1.0], &[1, 1]), 0);
}

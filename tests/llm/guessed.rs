//! Answers with guesses are those without.

use super::random_models::{GEMMA, LLAMA, random_model};
use super::{on_gpus, tokens};
use crate::support::Random;
use relampago::llm::{GenerateOptions, LanguageModel, LoadOptions, Sampling, TokenLogprobs};

/// The largest difference of log-probabilities, by the rounding of passes over several tokens.
const TOLERANCE: f32 = 1e-3;

struct Answered {
    tokens: Vec<u32>,
    logprobs: Vec<TokenLogprobs>,
    guessed: usize,
}

fn answered(model: &LanguageModel, prompt: &str, options: GenerateOptions) -> Answered {
    let mut answer = model.complete(prompt, options).unwrap();
    answer.by_ref().for_each(|text| drop(text.unwrap()));
    Answered {
        tokens: answer.tokens().to_vec(),
        logprobs: answer.logprobs().to_vec(),
        guessed: answer.guessed_tokens(),
    }
}

fn samplings() -> [Sampling; 4] {
    let endless = Sampling::default().with_logit_bias([(1, f32::NEG_INFINITY)]);
    let drawn = endless.clone().with_temperature(0.3).with_top_k(20);
    [
        endless.clone(),
        // One token follows another in all texts.
        endless
            .clone()
            .with_logit_bias([(1, f32::NEG_INFINITY), (70, 40.0)]),
        drawn.clone().with_seed(3),
        drawn.with_frequency_penalty(0.3).with_seed(4),
    ]
}

fn backends() -> Vec<(&'static str, LoadOptions)> {
    let simd = [("SIMD", LoadOptions::default())].into_iter();
    simd.chain(on_gpus()).collect()
}

#[test]
fn answers_with_guesses_are_those_without() {
    for (name, options) in backends() {
        let mut guessed = 0;
        for (shape, seed) in [(LLAMA, 1), (GEMMA, 0)] {
            let (bytes, _) = random_model(shape, seed);
            let model = LanguageModel::from_bytes(bytes, options.clone()).unwrap();
            for (index, sampling) in samplings().into_iter().enumerate() {
                for logprobs in [None, Some(2)] {
                    let mut options = GenerateOptions::default().with_max_tokens(90);
                    options.logprobs = logprobs;
                    let options = options.with_sampling(sampling.clone());
                    let prompt = "hello hello hello hello";
                    let plain = answered(&model, prompt, options.clone().with_guess(false));
                    let with = answered(&model, prompt, options);
                    let what = format!("{}, {name}, {index}", shape.name);
                    assert_eq!(with.tokens, plain.tokens, "{what}");
                    assert_eq!(plain.guessed, 0);
                    for (with, plain) in with.logprobs.iter().zip(&plain.logprobs) {
                        let difference = (with.chosen.logprob - plain.chosen.logprob).abs();
                        assert!(difference < TOLERANCE, "{what}: {difference}");
                    }
                    guessed += with.guessed;
                }
            }
        }
        assert!(guessed > 100, "{name}: otherwise this test shows nothing");
    }
}

#[test]
fn sessions_go_on_after_guesses() {
    let (bytes, _) = random_model(LLAMA, 1);
    for (name, options) in backends() {
        let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
        let mut session = model.session().unwrap();
        let options = GenerateOptions::default()
            .with_max_tokens(60)
            .with_sampling(samplings()[1].clone());
        let mut answer = session.complete("hello", options).unwrap();
        answer.by_ref().for_each(|text| drop(text.unwrap()));
        let guessed = answer.guessed_tokens();
        drop(answer);
        assert!(guessed > 0, "{name}");
        let more = tokens(5, &mut Random(7));
        let logits = session.prefill(&more).unwrap();
        let mut other = model.session().unwrap();
        let wanted = other.prefill(session.tokens()).unwrap();
        for (is, wanted) in logits.iter().zip(&wanted) {
            assert!((is - wanted).abs() < 1e-3, "{name}: {is} and {wanted}");
        }
    }
}

#[test]
fn the_end_of_the_context_and_stops_end_guesses() {
    let (bytes, _) = random_model(LLAMA.with_context(40), 1);
    for (name, options) in backends() {
        let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
        for (stop, most) in [(None, 500), (Some("hh"), 500), (None, 17)] {
            let options = GenerateOptions::default()
                .with_max_tokens(most)
                .with_stop(stop)
                .with_sampling(samplings()[1].clone());
            let plain = answered(&model, "hello", options.clone().with_guess(false));
            let with = answered(&model, "hello", options);
            assert_eq!(with.tokens, plain.tokens, "{name}, {stop:?}, {most}");
        }
    }
}

//! Tokens that a GPU draws are those that the host draws from the GPU's logits.

use super::random_models::{GEMMA, LLAMA, random_model};
use super::{answer, on_gpus};
use relampago::llm::{GenerateOptions, LanguageModel, Sampling};

fn tokens(model: &LanguageModel, sampling: &Sampling, logprobs: Option<usize>) -> Vec<u32> {
    let mut options = GenerateOptions::default();
    options.max_tokens = 24;
    options.sampling = sampling.clone();
    options.logprobs = logprobs;
    answer(model, options)
}

fn samplings() -> Vec<Sampling> {
    let sampling = |change: &dyn Fn(&mut Sampling)| {
        let mut sampling = Sampling::default();
        // The end of an answer is forbidden.
        sampling.logit_bias = vec![(1, f32::NEG_INFINITY), (70, 1.0)];
        change(&mut sampling);
        sampling
    };
    vec![
        sampling(&|_| {}),
        sampling(&|s| (s.repetition_penalty, s.frequency_penalty) = (1.3, 0.2)),
        sampling(&|s| s.temperature = 0.5),
        sampling(&|s| (s.temperature, s.top_k, s.top_p) = (0.9, 40, 0.9)),
        sampling(&|s| (s.temperature, s.top_k) = (0.9, 65)),
        sampling(&|s| (s.temperature, s.min_p, s.presence_penalty) = (0.7, 0.1, 0.5)),
        // Most draws take all logits.
        sampling(&|s| (s.temperature, s.top_p) = (50.0, 0.95)),
    ]
}

#[test]
fn answers_of_a_gpu_are_those_of_draws_from_its_logits() {
    for (gpu, on_gpu) in on_gpus() {
        for (shape, seed) in [(LLAMA, 1), (GEMMA, 0)] {
            let (bytes, _) = random_model(shape, seed);
            let model = LanguageModel::from_bytes(bytes, on_gpu.clone()).unwrap();
            for (index, sampling) in samplings().into_iter().enumerate() {
                for seed in 0..3 {
                    let mut sampling = sampling.clone();
                    sampling.seed = seed;
                    // Log-probabilities bring all logits to the host.
                    let wanted = tokens(&model, &sampling, Some(0));
                    assert!(wanted.len() > 8, "{wanted:?}");
                    let drawn = tokens(&model, &sampling, None);
                    assert_eq!(drawn, wanted, "{}, {gpu}, {index}, {seed}", shape.name);
                }
            }
        }
    }
}

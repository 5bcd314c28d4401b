//! Greedy choices: a GPU's and those of SIMD are the first largest logit, or the first NaN.

use super::random_models::{GEMMA, LLAMA, Shape, random_model};
use super::{PROMPT, answer, load, on_gpus};
use relampago::InstructionSet;
use relampago::llm::{GenerateOptions, Gguf, LanguageModel, WeightType};

/// The index of the first NaN, or of the first largest logit.
fn expected(logits: &[f32]) -> u32 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let nan = logits.iter().position(|logit| logit.is_nan());
    let first = logits.iter().position(|&logit| logit == largest);
    nan.or(first).unwrap() as u32
}

fn logits(model: &LanguageModel) -> Vec<f32> {
    let prompt = model.tokenize(PROMPT, false).unwrap();
    model.session().unwrap().prefill(&prompt).unwrap()
}

/// The first token of an answer.
fn chosen(model: &LanguageModel, change: impl FnOnce(&mut GenerateOptions)) -> Vec<u32> {
    let mut options = GenerateOptions::default();
    options.max_tokens = 1;
    change(&mut options);
    answer(model, options)
}

/// Changes rows of the embedding, which gives the logits.
fn with_rows(file: &[u8], change: impl FnOnce(&mut [u8], usize)) -> Vec<u8> {
    let mut bytes = file.to_vec();
    let gguf = Gguf::from_bytes(file.to_vec()).unwrap();
    let tensor = gguf.tensor("token_embd.weight").unwrap();
    assert_eq!(tensor.weight_type(), WeightType::Q8_0);
    let (range, rows) = (tensor.range(), tensor.shape()[1]);
    let rows_bytes = &mut bytes[range.start as usize..range.end as usize];
    let row_len = rows_bytes.len() / rows;
    change(rows_bytes, row_len);
    bytes
}

fn copy_row(rows: &mut [u8], len: usize, from: usize, to: usize) {
    rows.copy_within(from * len..(from + 1) * len, to * len);
}

#[test]
fn ties_and_nan_are_chosen_alike_on_every_back_end() {
    let (plain, _) = random_model(LLAMA, 1);
    // Of characters, so that it is no control token, and not in the prompt.
    let best = expected(&logits(&load(&plain, InstructionSet::best()))) as usize;
    assert!((20..255).contains(&best), "{best}");
    let tied_after = with_rows(&plain, |rows, len| copy_row(rows, len, best, 256));
    let tied_before = with_rows(&plain, |rows, len| copy_row(rows, len, best, 3));
    // The scales of two rows' first blocks are NaN.
    let nan = with_rows(&plain, |rows, len| {
        for row in [9, 200] {
            rows[row * len..row * len + 2].copy_from_slice(&0x7e00u16.to_le_bytes());
        }
    });
    let cases = [
        (plain, best),
        (tied_after, best),
        (tied_before, 3),
        (nan, 9),
    ];
    for (index, (bytes, choice)) in cases.into_iter().enumerate() {
        let simd = InstructionSet::available().iter();
        let simd = simd.map(|&set| load(&bytes, set));
        let gpus = on_gpus().into_iter();
        let gpus = gpus.map(|(_, gpu)| LanguageModel::from_bytes(bytes.clone(), gpu).unwrap());
        for model in simd.chain(gpus) {
            let what = format!("case {index}, {:?}", model.info().backend);
            assert_eq!(expected(&logits(&model)), choice as u32, "{what}");
            assert_eq!(chosen(&model, |_| ()), [choice as u32], "{what}");
            // The host chooses where log-probabilities are wanted, or a token has a bias.
            let logprobs = chosen(&model, |options| options.logprobs = Some(0));
            assert_eq!(logprobs, [choice as u32], "{what}");
            let biased = |options: &mut GenerateOptions| {
                options.sampling.logit_bias = vec![(259, f32::NEG_INFINITY)];
            };
            assert_eq!(chosen(&model, biased), [choice as u32], "{what}");
        }
    }
}

/// Models with an embedding of each kind of words, and one that multiplies it.
const MODELS: [(Shape, u64); 6] = [
    (LLAMA, 0),
    (LLAMA, 1),
    (LLAMA, 2),
    (LLAMA, 3),
    (LLAMA, 10),
    (GEMMA, 0),
];

#[test]
fn answers_of_a_gpu_are_those_of_the_choices_from_its_logits() {
    for (gpu, on_gpu) in on_gpus() {
        for (shape, seed) in MODELS {
            let (bytes, _) = random_model(shape, seed);
            let model = LanguageModel::from_bytes(bytes, on_gpu.clone()).unwrap();
            let mut options = GenerateOptions::default();
            options.max_tokens = 40;
            let mut answer = model.complete(PROMPT, options).unwrap();
            answer.by_ref().for_each(|text| drop(text.unwrap()));
            assert!(!answer.tokens().is_empty());
            // Gemma's texts begin with `<bos>`.
            let mut prompt = vec![2; usize::from(shape.name == GEMMA.name)];
            prompt.extend(model.tokenize(PROMPT, false).unwrap());
            assert_eq!(prompt.len(), answer.prompt_tokens());
            let mut session = model.session().unwrap();
            let mut logits = session.prefill(&prompt).unwrap();
            for (index, &token) in answer.tokens().iter().enumerate() {
                let what = format!("{} {seed}, {gpu}: {index}", shape.name);
                assert_eq!(token, expected(&logits), "{what}");
                logits = session.decode(token).unwrap();
            }
        }
    }
}

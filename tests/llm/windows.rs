//! Caches of layers with a window: rings that keep the last positions, on SIMD and on a GPU, beside the pass in `f64`.

use super::random_models::{GEMMA, HEAD, KV_HEADS, SHAPES, Shape, WINDOW, random_model};
use super::sessions::backends;
use super::{assert_close, tokens};
use crate::support::Random;
use relampago::llm::{ForwardPass, GenerateOptions, Gguf, LanguageModel, LoadOptions};

/// The positions that a layer with a window keeps beside it.
const SPARE: usize = 512;
const CONTEXT: usize = 1024;
const TOKENS: usize = 700;

fn phi() -> Shape {
    let found = SHAPES.into_iter().find(|shape| shape.name == "phi3");
    found.unwrap()
}

fn with_context(mut options: LoadOptions) -> LoadOptions {
    options.context_length = Some(CONTEXT);
    options
}

#[test]
fn layers_with_a_window_keep_few_positions() {
    for (shape, local) in [(GEMMA, 6), (phi(), 2)] {
        let (bytes, _) = random_model(shape.with_context(CONTEXT), 0);
        let options = with_context(LoadOptions::default());
        let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
        let positions = local * (WINDOW + SPARE) + (shape.layers - local) * CONTEXT;
        let expected = 2 * KV_HEADS * HEAD * positions * size_of::<f32>();
        assert_eq!(model.info().session_bytes, expected, "{}", shape.name);
        let heads = vec![(bytes.clone(), bytes.len() as u64)];
        let inspected = LanguageModel::inspect_heads(heads, Some(CONTEXT)).unwrap();
        assert_eq!(inspected.session_bytes, expected as u64);
    }
}

#[test]
fn long_sequences_are_exact_however_they_are_cut() {
    for shape in [GEMMA, phi()] {
        let (bytes, oracle) = random_model(shape.with_context(CONTEXT), 0);
        let tokens = tokens(TOKENS, &mut Random(1));
        let exact = oracle.logits(&tokens);
        let mut saved = Vec::new();
        for options in backends().map(with_context) {
            let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
            let name = format!("{}, {:?}", shape.name, model.info().backend);
            let mut session = model.session().unwrap();
            let logits = session.logits(&tokens[..690]).unwrap();
            assert_close(&logits, &exact[..690].concat(), &format!("{name}, blocks"));
            for (position, &token) in tokens.iter().enumerate().skip(690) {
                let logits = session.decode(token).unwrap();
                assert_close(&logits, &exact[position], &format!("{name}, {position}"));
            }
            saved.push(session.save().unwrap());
            // The first cut leaves all that the next tokens see; the second one, also of copies, does not.
            for cut in [600, 100] {
                session.rewind(cut).unwrap();
                let copy = model.load_session(&session.save().unwrap(), &[]);
                let mut copies = [session.fork().unwrap(), copy.unwrap()];
                for session in copies.iter_mut().chain([&mut session]) {
                    assert_eq!(session.tokens(), &tokens[..cut]);
                    let logits = session.logits(&tokens[cut..cut + 9]).unwrap();
                    let exact = exact[cut..cut + 9].concat();
                    assert_close(&logits, &exact, &format!("{name}, cut to {cut}"));
                }
            }
            session.rewind(0).unwrap();
            let logits = session.prefill(&tokens[..200]).unwrap();
            assert_close(&logits, &exact[199], &format!("{name}, cut to nothing"));
            // Also those that the other back-end saved.
            for bytes in &saved {
                let mut loaded = model.load_session(bytes, &[]).unwrap();
                for cut in [TOKENS, TOKENS - 9, 100] {
                    loaded.rewind(cut).unwrap();
                    let next = tokens.get(cut).copied().unwrap_or(7);
                    let logits = loaded.decode(next).unwrap();
                    if let Some(exact) = exact.get(cut) {
                        assert_close(&logits, exact, &format!("{name}, loaded, {cut}"));
                    }
                }
            }
        }
    }
}

#[test]
fn answers_after_a_long_one_are_those_of_a_new_model() {
    let (bytes, _) = random_model(GEMMA.with_context(CONTEXT), 0);
    for options in backends().map(with_context) {
        let load = || LanguageModel::from_bytes(bytes.clone(), options.clone()).unwrap();
        let mut long = GenerateOptions::default();
        long.max_tokens = 700;
        long.logprobs = Some(1);
        long.sampling.logit_bias = ends(&load());
        let mut short = long.clone();
        short.max_tokens = 20;
        let used = load();
        let answer = |model: &LanguageModel, options: &GenerateOptions| {
            let mut answer = model.complete("hello", options.clone()).unwrap();
            answer.by_ref().for_each(|text| drop(text.unwrap()));
            answer.logprobs().to_vec()
        };
        let whole = answer(&used, &long);
        assert_eq!(whole.len(), 700);
        assert_eq!(answer(&used, &short), answer(&load(), &short));
    }
}

/// Biases against tokens that end an answer.
fn ends(model: &LanguageModel) -> Vec<(u32, f32)> {
    let ends = ["<eos>", "</s>"];
    let tokens = ends.map(|text| model.tokenize(text, true).unwrap());
    let tokens = tokens.into_iter().filter(|tokens| tokens.len() == 1);
    tokens.map(|tokens| (tokens[0], -1e9)).collect()
}

#[test]
fn layers_by_themselves_keep_all_positions() {
    let (bytes, oracle) = random_model(GEMMA.with_context(CONTEXT), 0);
    let tokens = tokens(TOKENS, &mut Random(1));
    let exact = oracle.logits(&tokens[..80]);
    for options in backends().map(with_context) {
        let mut pass = ForwardPass::new(Gguf::from_bytes(bytes.clone()).unwrap(), options).unwrap();
        let rows = pass.embed(&tokens).unwrap();
        pass.forward(0..pass.layers(), &rows).unwrap();
        pass.rewind(70);
        let rows = &rows[70 * pass.width()..80 * pass.width()];
        let rows = pass.forward(0..pass.layers(), rows).unwrap();
        let logits = pass.logits(&rows).unwrap();
        assert_close(&logits, &exact[70..].concat(), "cut");
    }
}

//! Keys and values in f16, on every instruction set and on a GPU, beside the pass in `f64`.

use super::models;
use super::transformer::{LLAMA, random_model};
use super::{lora, on_gpus, tokens};
use crate::support::Random;
use relampago::InstructionSet;
use relampago::llm::{CacheType, LanguageModel, LoadOptions, LoraOptions};

/// The largest difference from the exact logits, as a part of their root mean square. That of a cache of f32 is 1e-3;
/// each key and value rounds by 2⁻¹² at most.
const TOLERANCE: f64 = 2e-3;

fn in_f16(mut options: LoadOptions) -> LoadOptions {
    options.cache_type = CacheType::F16;
    options
}

/// Options of every instruction set, and of a GPU, with their names.
fn back_ends() -> Vec<(&'static str, LoadOptions)> {
    let sets = InstructionSet::available().iter().map(|&set| {
        let mut options = LoadOptions::default();
        options.instruction_set = Some(set);
        (set.name(), in_f16(options))
    });
    let gpus = on_gpus().into_iter();
    let gpus = gpus.map(|(name, options)| (name, in_f16(options)));
    sets.chain(gpus).collect()
}

/// Returns the largest difference of logits from exact ones, as a part of their root mean square.
fn difference(logits: &[f32], exact: &[f64]) -> f64 {
    assert_eq!(logits.len(), exact.len());
    let rms = (exact.iter().map(|x| x * x).sum::<f64>() / exact.len() as f64).sqrt();
    let pairs = logits.iter().zip(exact);
    let differences = pairs.map(|(logit, exact)| (f64::from(*logit) - exact).abs() / rms);
    // The first NaN, which is no number below the bound, stays.
    differences.fold(0.0, |most, one| {
        if one <= most || most.is_nan() {
            most
        } else {
            one
        }
    })
}

#[test]
fn logits_of_a_cache_of_f16_are_near_those_of_the_pass_in_f64() {
    let mut largest = 0.0f64;
    for (name, bytes, tokens, exact) in models() {
        for (on, options) in back_ends() {
            let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
            let at_once = model.session().unwrap().logits(&tokens).unwrap();
            let mut session = model.session().unwrap();
            let decoded = tokens.iter().map(|&token| session.decode(token).unwrap());
            let decoded: Vec<f32> = decoded.flatten().collect();
            for logits in [at_once, decoded] {
                let difference = difference(&logits, &exact);
                assert!(difference <= TOLERANCE, "{name}, {on}: {difference}");
                largest = largest.max(difference);
            }
        }
    }
    println!("largest difference with a cache of f16: {largest:.5} of the root mean square");
}

#[test]
fn sessions_of_f16_take_half_the_bytes_and_are_copied_and_saved() {
    let (bytes, oracle) = random_model(LLAMA, 1);
    let tokens = tokens(150, &mut Random(4));
    let exact = oracle.logits(&tokens);
    let plain = LanguageModel::from_bytes(bytes.clone(), LoadOptions::default()).unwrap();
    let mut session = plain.session().unwrap();
    session.prefill(&tokens[..10]).unwrap();
    let of_f32 = session.save().unwrap();
    let mut saved = Vec::new();
    for (on, options) in back_ends() {
        let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
        assert_eq!(2 * model.info().session_bytes, plain.info().session_bytes);
        // More positions than there is room for at first.
        let mut session = model.session().unwrap();
        session.prefill(&tokens[..140]).unwrap();
        session.rewind(100).unwrap();
        let mut fork = session.fork().unwrap();
        let logits = fork.logits(&tokens[100..]).unwrap();
        assert!(
            difference(&logits, &exact[100..].concat()) <= TOLERANCE,
            "{on}"
        );
        session.rewind(10).unwrap();
        saved.push(session.save().unwrap());
        // Also those of the other back-ends.
        for bytes in &saved {
            assert!(bytes.len() < of_f32.len() * 6 / 10);
            let logits = model
                .load_session(bytes, &[])
                .unwrap()
                .logits(&tokens[10..20]);
            assert!(
                difference(&logits.unwrap(), &exact[10..20].concat()) <= TOLERANCE,
                "{on}"
            );
            let error = plain.load_session(bytes, &[]).unwrap_err();
            assert_eq!(error.code(), "INVALID_MODEL");
            assert!(error.to_string().contains("have 16 bits"), "{error}");
        }
        let error = model.load_session(&of_f32, &[]).unwrap_err();
        assert!(error.to_string().contains("have 32 bits"), "{error}");
    }
}

#[test]
fn keys_and_values_beyond_f16_give_numbers() {
    let (bytes, _) = random_model(LLAMA, 0);
    let adapter = lora::file_of(LLAMA, 21);
    let tokens = tokens(9, &mut Random(5));
    let largest = |options: LoadOptions| {
        let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
        let lora = model.lora_from_bytes(adapter.clone(), LoraOptions::default());
        let mut session = model.session().unwrap();
        session.set_lora(&[lora.unwrap().scaled(1e7)]).unwrap();
        let logits = session.logits(&tokens).unwrap();
        assert!(logits.iter().all(|logit| logit.is_finite()));
        let saved = session.save().unwrap();
        let cache = saved[24 + 4 * tokens.len()..].as_chunks::<4>().0.iter();
        let cache = cache.map(|&word| f32::from_le_bytes(word).abs());
        cache.fold(0.0, f32::max)
    };
    assert!(largest(LoadOptions::default()) > 65_504.0);
    for (_, options) in back_ends() {
        largest(options);
    }
}

//! Keys and values of fewer bits, on every instruction set and on a GPU, beside the pass in `f64`.

use super::models;
use super::random_models::{HEAD, LLAMA, random_model};
use super::{lora, on_gpus, tokens};
use crate::support::Random;
use relampago::InstructionSet;
use relampago::llm::{CacheType, LanguageModel, LoadOptions, LoraOptions};

/// A type of keys and values.
struct Row {
    cache_type: CacheType,
    /// The largest difference from the exact logits, as a part of their root mean square. That of a cache of f32 is 1e-3.
    tolerance: f64,
    /// The words of a head.
    words: usize,
    /// The bits that an error names.
    bits: &'static str,
}

const ROWS: [Row; 2] = [
    // Each key and value rounds by 2⁻¹² at most.
    Row {
        cache_type: CacheType::F16,
        tolerance: 2e-3,
        words: HEAD / 2,
        bits: "have 16 bits",
    },
    // Each rounds by the 254th part of the largest one.
    Row {
        cache_type: CacheType::Q8_0,
        tolerance: 3e-2,
        words: HEAD / 4 + 4,
        bits: "have 8 bits",
    },
];

/// Options of every instruction set, and of a GPU, with their names.
fn back_ends(cache_type: CacheType) -> Vec<(&'static str, LoadOptions)> {
    let sets = InstructionSet::available().iter().map(|&set| {
        let mut options = LoadOptions::default();
        options.instruction_set = Some(set);
        (set.name(), options)
    });
    let with_type = |(name, mut options): (&'static str, LoadOptions)| {
        options.cache_type = cache_type;
        (name, options)
    };
    sets.chain(on_gpus()).map(with_type).collect()
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
fn logits_are_near_those_of_the_pass_in_f64() {
    for row in &ROWS {
        let mut largest = 0.0f64;
        for (name, bytes, tokens, exact) in models() {
            for (on, options) in back_ends(row.cache_type) {
                let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
                let at_once = model.session().unwrap().logits(&tokens).unwrap();
                let mut session = model.session().unwrap();
                let decoded = tokens.iter().map(|&token| session.decode(token).unwrap());
                let decoded: Vec<f32> = decoded.flatten().collect();
                for logits in [at_once, decoded] {
                    let difference = difference(&logits, &exact);
                    assert!(difference <= row.tolerance, "{name}, {on}: {difference}");
                    largest = largest.max(difference);
                }
            }
        }
        let kind = row.cache_type.name();
        println!("largest difference with {kind}: {largest:.5} of the root mean square");
    }
}

#[test]
fn sessions_are_smaller_and_are_copied_and_saved() {
    let (bytes, oracle) = random_model(LLAMA, 1);
    let tokens = tokens(150, &mut Random(4));
    let exact = oracle.logits(&tokens);
    let plain = LanguageModel::from_bytes(bytes.clone(), LoadOptions::default()).unwrap();
    let mut session = plain.session().unwrap();
    session.prefill(&tokens[..10]).unwrap();
    let of_f32 = session.save().unwrap();
    for row in &ROWS {
        let is_near = |logits: &[f32], exact: &[Vec<f64>]| {
            difference(logits, &exact.concat()) <= row.tolerance
        };
        let mut saved = Vec::new();
        for (on, options) in back_ends(row.cache_type) {
            let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
            let expected = plain.info().session_bytes / HEAD * row.words;
            assert_eq!(model.info().session_bytes, expected);
            // More positions than there is room for at first.
            let mut session = model.session().unwrap();
            session.prefill(&tokens[..140]).unwrap();
            session.rewind(100).unwrap();
            let mut fork = session.fork().unwrap();
            let logits = fork.logits(&tokens[100..]).unwrap();
            assert!(is_near(&logits, &exact[100..]), "{on}");
            session.rewind(10).unwrap();
            saved.push(session.save().unwrap());
            // Also those of the other back-ends.
            for bytes in &saved {
                assert!(bytes.len() < of_f32.len() * 6 / 10);
                let mut loaded = model.load_session(bytes, &[]).unwrap();
                let logits = loaded.logits(&tokens[10..20]).unwrap();
                assert!(is_near(&logits, &exact[10..20]), "{on}");
                let error = plain.load_session(bytes, &[]).unwrap_err();
                assert_eq!(error.code(), "INVALID_MODEL");
                assert!(error.to_string().contains(row.bits), "{error}");
            }
            let error = model.load_session(&of_f32, &[]).unwrap_err();
            assert!(error.to_string().contains("have 32 bits"), "{error}");
        }
    }
}

#[test]
fn large_keys_and_values_give_numbers() {
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
        let cache = saved[36 + 4 * tokens.len()..].as_chunks::<4>().0.iter();
        let cache = cache.map(|&word| f32::from_le_bytes(word).abs());
        cache.fold(0.0, f32::max)
    };
    assert!(largest(LoadOptions::default()) > 65_504.0);
    for row in &ROWS {
        for (_, options) in back_ends(row.cache_type) {
            largest(options);
        }
    }
}

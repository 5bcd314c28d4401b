//! Logits of models from files beside the exact ones, which an independent pass in `f64` gave.

use super::{is_exhaustive, model_file, on_gpus};
use relampago::InstructionSet;
use relampago::llm::{LanguageModel, LoadOptions};
use serde_json::Value;
use std::path::Path;

/// The largest root mean square of a position's differences, and the margin above which the largest exact logit must be
/// the largest one here.
const TOLERANCE: f64 = 0.05;

/// The tokens of a text, and the exact logits of its last positions: the ids of the 20 largest with their values.
struct Text {
    tokens: Vec<u32>,
    top: Vec<Vec<(u32, f64)>>,
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

fn texts(json: &str) -> Vec<Text> {
    let id = |id: &Value| id.as_u64().unwrap() as u32;
    let position = |top: &Value| {
        let logits = list(&top["logits"]).map(|logit| logit.as_f64().unwrap());
        list(&top["ids"]).map(id).zip(logits).collect()
    };
    let text = |text: &Value| Text {
        tokens: list(&text["tokens"]).map(id).collect(),
        top: list(&text["top"]).map(position).collect(),
    };
    let texts: Value = serde_json::from_str(json).unwrap();
    list(&texts).map(text).collect()
}

/// Returns the root mean square of a position's differences, and whether a clear choice is another one.
fn compare(logits: &[f32], top: &[(u32, f64)]) -> (f64, bool) {
    let squares = top.iter().map(|&(id, exact)| {
        let difference = f64::from(logits[id as usize]) - exact;
        difference * difference
    });
    let rms = (squares.sum::<f64>() / top.len() as f64).sqrt();
    let choice = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
    let is_clear = top[0].1 - top[1].1 > TOLERANCE;
    (rms, is_clear && choice != Some(top[0].0 as usize))
}

/// Compares the logits of all texts, of tokens read at once and one by one.
fn check(path: &Path, options: LoadOptions, texts: &[Text], what: &str) {
    let model = LanguageModel::load(path, options).unwrap();
    let mut results = [vec![], vec![]];
    for Text { tokens, top } in texts {
        let (before, last) = tokens.split_at(tokens.len() - top.len());
        let mut session = model.session().unwrap();
        if !before.is_empty() {
            session.prefill(before).unwrap();
        }
        let at_once = session.logits(last).unwrap();
        let rows = at_once.chunks(at_once.len() / last.len());
        results[0].extend(rows.zip(top).map(|(row, top)| compare(row, top)));
        session.rewind(before.len()).unwrap();
        let rows = last.iter().map(|&token| session.decode(token).unwrap());
        results[1].extend(rows.zip(top).map(|(row, top)| compare(&row, top)));
    }
    for (how, results) in ["at once", "one by one"].iter().zip(results) {
        let n = results.len();
        let mean = results.iter().map(|(rms, _)| rms * rms).sum::<f64>() / n as f64;
        let most = results.iter().fold(0.0, |most, (rms, _)| rms.max(most));
        let others = results.iter().filter(|(_, other)| *other).count();
        println!(
            "{what}, {how}: rms {:.2e} of {n} positions, at most {most:.2e}",
            mean.sqrt()
        );
        // A NaN is no number below the bound.
        let are_near = results.iter().all(|&(rms, _)| rms < TOLERANCE);
        assert!(are_near, "{what}, {how}: rms {most}");
        assert_eq!(others, 0, "{what}, {how}: clear choices that differ");
    }
}

/// Checks a model on every instruction set of this machine and on its GPUs, which takes minutes: `cargo xtask test
/// --only models` does.
fn check_everywhere(name: &str, json: &str) {
    let Some(path) = is_exhaustive().then(|| model_file(name)).flatten() else {
        return;
    };
    let texts = texts(json);
    for &set in InstructionSet::available() {
        let mut options = LoadOptions::default();
        options.instruction_set = Some(set);
        check(&path, options, &texts, &format!("{name}, {}", set.name()));
    }
    for (gpu, options) in on_gpus() {
        check(&path, options, &texts, &format!("{name}, {gpu}"));
    }
}

#[test]
fn logits_of_smollm2_are_the_exact_ones() {
    let json = include_str!("../data/smollm2-logits.json");
    check_everywhere("smollm2-135m.gguf", json);
}

#[test]
fn logits_of_gemma_3_are_the_exact_ones() {
    let json = include_str!("../data/gemma3-logits.json");
    check_everywhere("gemma3-270m.gguf", json);
}

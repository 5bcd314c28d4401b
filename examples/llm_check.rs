//! Compares a model with exact results: `llm_check MODEL.gguf EXPECTED.json`.
//!
//! The JSON file has tokens and greedy answers of prompts, the exact arg-max and margin after each
//! token, the 20 largest logits of the prompt `p_long128`, and tokens of texts.

use relampago::InstructionSet;
use relampago::llm::{LanguageModel, LoadOptions};
use serde_json::Value;
use std::error::Error;

/// Below this margin of the exact logits the choice may differ.
const MARGIN: f64 = 0.05;

/// The largest root mean square of the difference between the logits and the exact ones.
const MOST_RMS: f64 = 0.05;

fn main() -> Result<(), Box<dyn Error>> {
    let [model, expected] = [1, 2].map(|at| std::env::args().nth(at));
    let (Some(path), Some(expected)) = (model, expected) else {
        return Err("usage: llm_check MODEL.gguf EXPECTED.json".into());
    };
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(expected)?)?;
    let mut faults = 0;
    for &set in InstructionSet::available() {
        let mut options = LoadOptions::default();
        options.instruction_set = Some(set);
        let model = LanguageModel::load(&path, options)?;
        println!("{}", set.name());
        faults += check_tokens(&model, &expected)?;
        for (name, prompt) in expected["prompts"].as_object().ok_or("no prompts")? {
            faults += check_greedy(&model, name, prompt)?;
            faults += check_logits(&model, name, prompt)?;
        }
    }
    if faults == 0 {
        Ok(())
    } else {
        Err(format!("{faults} faults").into())
    }
}

fn ids(list: &Value) -> Vec<u32> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(Value::as_u64)
        .map(|id| id as u32)
        .collect()
}

/// Compares the tokens of texts, both ways.
fn check_tokens(model: &LanguageModel, expected: &Value) -> Result<usize, Box<dyn Error>> {
    let (mut faults, mut cases) = (0, 0);
    for case in expected["tokenizer"].as_array().ok_or("no tokenizer")? {
        let text = case["text"].as_str().ok_or("no text")?;
        for (key, special) in [("plain", false), ("special", true)] {
            let tokens = model.tokenize(text, special)?;
            let same = tokens == ids(&case[key]) && model.detokenize(&tokens) == text;
            if !same {
                println!("  {key} {text:?}: {tokens:?}");
            }
            faults += usize::from(!same);
            cases += 1;
        }
    }
    for (name, prompt) in expected["prompts"].as_object().ok_or("no prompts")? {
        let Some(text) = prompt["rendered"].as_str() else {
            continue;
        };
        let tokens = model.tokenize(text, true)?;
        let same = tokens == ids(&prompt["tokens"]);
        if !same {
            println!("  {name}: {tokens:?}");
        }
        faults += usize::from(!same);
        cases += 1;
    }
    println!("  tokenizer: {} of {cases} equal", cases - faults);
    Ok(faults)
}

/// Compares the choice after each token of a prompt's answer with the exact one.
fn check_greedy(
    model: &LanguageModel,
    name: &str,
    prompt: &Value,
) -> Result<usize, Box<dyn Error>> {
    let (tokens, answer, exact) = (
        ids(&prompt["tokens"]),
        ids(&prompt["greedy"]),
        &prompt["exact"],
    );
    let (best, margins) = (ids(&exact["argmax"]), exact["margin"].as_array());
    let Some(margins) = margins.filter(|_| !answer.is_empty()) else {
        return Ok(0);
    };
    let mut session = model.session()?;
    let mut logits = session.prefill(&tokens)?;
    let (mut same, mut faults) = (0, 0);
    for (at, &token) in answer.iter().enumerate() {
        let chosen = (1..logits.len()).fold(0, |a, b| if logits[b] > logits[a] { b } else { a });
        let equal = chosen as u32 == best[at];
        same += usize::from(equal);
        let margin = margins[at].as_f64().unwrap_or_default();
        if !equal {
            println!(
                "  {name}: token {at} is {chosen}, exact {}, margin {margin}",
                best[at]
            );
        }
        faults += usize::from(!equal && margin > MARGIN);
        logits = session.decode(token)?;
    }
    println!(
        "  {name}: {same} of {} choices are exact, {faults} faults",
        answer.len()
    );
    Ok(faults)
}

/// Compares the 20 largest logits of each position with the exact ones.
fn check_logits(
    model: &LanguageModel,
    name: &str,
    prompt: &Value,
) -> Result<usize, Box<dyn Error>> {
    let Some(top) = prompt["exact"]["top20"].as_array() else {
        return Ok(0);
    };
    let tokens = ids(&prompt["tokens"]);
    let logits = model.session()?.logits(&tokens)?;
    let (mut sum, mut count, mut most) = (0.0, 0, 0.0f64);
    for (row, top) in logits.chunks_exact(logits.len() / tokens.len()).zip(top) {
        let exact = top[1].as_array().ok_or("no logits")?;
        for (id, exact) in ids(&top[0]).into_iter().zip(exact) {
            let difference = f64::from(row[id as usize]) - exact.as_f64().ok_or("no number")?;
            sum += difference * difference;
            count += 1;
            most = most.max(difference.abs());
        }
    }
    let rms = (sum / f64::from(count)).sqrt();
    println!("  {name}: {count} logits, rms of the difference {rms:.2e}, largest {most:.2e}");
    Ok(usize::from(
        count == 0 || rms > MOST_RMS || !rms.is_finite(),
    ))
}

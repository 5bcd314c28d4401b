//! Measures a language model and prints one line of JSON.
//!
//! `cargo run --release --features llm --example llm_bench -- --model FILE --tokens 1,2,3 --n 64
//! --threads 1 --runs 3 --backend gpu --half-precision --cache f16 --instruction-set sse2`. It reads all logits of each
//! token, and goes on where an answer ends. With `--greedy` it answers as [`LanguageModel::complete`] does: the back-end chooses the tokens;
//! with `--temperature T --top-p P --top-k K` it draws them, and with `--schema JSON` they follow a JSON schema. With
//! `--together N` it measures one answer and N at once in turns, and prints the medians of their tokens a second. With
//! `--logits K` it prints the K largest logits of each position, with
//! `--tokenize TEXT_AS_JSON [--special]` the tokens of a text.

use relampago::llm::{Answers, CacheType, GenerateOptions, LanguageModel, LoadOptions, Sampling};
use relampago::{Backend, GpuDevice, InstructionSet, Profile};
use serde_json::{Value, json};
use std::error::Error;
use std::time::Instant;

#[derive(Default)]
struct Arguments {
    model: String,
    tokens: Vec<u32>,
    n: usize,
    threads: Option<usize>,
    runs: usize,
    logits: Option<usize>,
    tokenize: Option<String>,
    special: bool,
    /// The number of answers at once.
    together: Option<usize>,
    profile: bool,
    /// The choice of tokens that is left to the library.
    sampling: Option<Sampling>,
    /// The JSON schema of an answer that is left to the library.
    schema: Option<String>,
    device: Option<GpuDevice>,
    cache_type: CacheType,
    instruction_set: Option<InstructionSet>,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    use lexopt::prelude::{Long, ValueExt};
    let mut arguments = Arguments {
        n: 64,
        runs: 1,
        ..Arguments::default()
    };
    let (mut backend, mut half_precision) = (Backend::Simd, false);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("model") => arguments.model = parser.value()?.string()?,
            Long("tokens") => {
                let list = parser.value()?.string()?;
                arguments.tokens = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            Long("n") => arguments.n = parser.value()?.parse()?,
            Long("threads") => arguments.threads = Some(parser.value()?.parse()?),
            Long("runs") => arguments.runs = parser.value()?.parse()?,
            Long("logits") => arguments.logits = Some(parser.value()?.parse()?),
            Long("tokenize") => {
                let text = parser.value()?.string()?;
                arguments.tokenize = Some(serde_json::from_str(&text)?);
            }
            Long("greedy") => drop(arguments.sampling.get_or_insert_default()),
            Long("temperature") => {
                let temperature = parser.value()?.parse()?;
                arguments.sampling.get_or_insert_default().temperature = temperature;
            }
            Long("top-p") => {
                let top_p = parser.value()?.parse()?;
                arguments.sampling.get_or_insert_default().top_p = top_p;
            }
            Long("top-k") => {
                let top_k = parser.value()?.parse()?;
                arguments.sampling.get_or_insert_default().top_k = top_k;
            }
            Long("schema") => {
                arguments.schema = Some(parser.value()?.string()?);
                arguments.sampling.get_or_insert_default();
            }
            Long("together") => arguments.together = Some(parser.value()?.parse()?),
            Long("profile") => arguments.profile = true,
            Long("instruction-set") => {
                let name = parser.value()?.string()?;
                let mut sets = InstructionSet::available().iter().copied();
                let set = sets.find(|set| set.name().eq_ignore_ascii_case(&name));
                let unavailable = || format!("instruction set `{name}` is not available");
                arguments.instruction_set = Some(set.ok_or_else(unavailable)?);
            }
            Long("special") => arguments.special = true,
            Long("cache") => {
                arguments.cache_type = match parser.value()?.string()?.as_str() {
                    "f32" => CacheType::F32,
                    "f16" => CacheType::F16,
                    "q8_0" => CacheType::Q8_0,
                    other => {
                        let known = "`f32`, `f16` and `q8_0` are";
                        return Err(format!("cache `{other}` is not known, {known}").into());
                    }
                };
            }
            Long("backend") => backend = parser.value()?.parse()?,
            Long("half-precision") => half_precision = true,
            _ => return Err(argument.unexpected().into()),
        }
    }
    // Without a device the model runs on SIMD and uses the options of SIMD.
    if backend != Backend::Simd {
        let builder = GpuDevice::builder().backend(backend);
        arguments.device = Some(builder.half_precision(half_precision).build()?);
    }
    Ok(arguments)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let start = Instant::now();
    let mut options = LoadOptions::default();
    options.threads = arguments.threads;
    options.cache_type = arguments.cache_type;
    options.instruction_set = arguments.instruction_set;
    options.device.clone_from(&arguments.device);
    options.context_length = Some(arguments.tokens.len() + arguments.n + 1);
    let model = LanguageModel::load(&arguments.model, options)?;
    let load_ms = milliseconds(start);
    if let Some(text) = &arguments.tokenize {
        println!(
            "{}",
            json!({ "ids": model.tokenize(text, arguments.special)? })
        );
    } else if let Some(count) = arguments.together {
        println!("{}", compared(&model, &arguments, count)?);
    } else if let Some(k) = arguments.logits {
        println!("{}", json!({ "top": top(&model, &arguments.tokens, k)? }));
    } else {
        let (mut runs, mut tokens) = (Vec::new(), Vec::new());
        for _ in 0..arguments.runs {
            let (run, generated) = match &arguments.sampling {
                Some(sampling) => answer(&model, &arguments, sampling)?,
                None => decode(&model, &arguments.tokens, arguments.n)?,
            };
            runs.push(run);
            tokens = generated;
        }
        println!(
            "{}",
            json!({ "load_ms": load_ms, "runs": runs, "tokens": tokens })
        );
        if let (true, Some(device)) = (arguments.profile, &arguments.device) {
            for (what, profile) in profiles(&model, device, &arguments.tokens)? {
                println!("{what}\n{profile}");
            }
        }
    }
    Ok(())
}

/// The kernels of a prompt, and of a token after it.
fn profiles(
    model: &LanguageModel,
    device: &GpuDevice,
    prompt: &[u32],
) -> relampago::Result<[(&'static str, Profile); 2]> {
    let mut session = model.session()?;
    let profiler = device.profile()?;
    session.prefill(prompt)?;
    let of_prompt = profiler.finish()?;
    let profiler = device.profile()?;
    session.decode(prompt[0])?;
    let of_token = profiler.finish()?;
    Ok([("the prompt", of_prompt), ("a token", of_token)])
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// The largest logits of a position, the largest first.
fn largest(logits: &[f32], k: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    order.truncate(k);
    order
}

fn top(model: &LanguageModel, tokens: &[u32], k: usize) -> relampago::Result<Vec<Value>> {
    let logits = model.session()?.logits(tokens)?;
    let rows = logits.chunks_exact(logits.len() / tokens.len());
    let top = rows.map(|row| {
        let ids = largest(row, k);
        let logits: Vec<f32> = ids.iter().map(|&id| row[id]).collect();
        json!([ids, logits])
    });
    Ok(top.collect())
}

/// The times of reading the prompt and of generating `n` tokens greedily, and these tokens.
/// Chooses tokens from all logits.
fn decode(model: &LanguageModel, prompt: &[u32], n: usize) -> relampago::Result<(Value, Vec<u32>)> {
    let mut session = model.session()?;
    let start = Instant::now();
    let mut logits = session.prefill(prompt)?;
    let prefill_ms = milliseconds(start);
    let (start, mut tokens) = (Instant::now(), Vec::new());
    while tokens.len() < n {
        let token = largest_one(&logits);
        tokens.push(token);
        logits = session.decode(token)?;
    }
    let run = run(prefill_ms, milliseconds(start), prompt, &tokens);
    Ok((run, tokens))
}

/// Lets the back-end choose tokens. The first one is chosen with the prompt.
fn answer(
    model: &LanguageModel,
    arguments: &Arguments,
    sampling: &Sampling,
) -> relampago::Result<(Value, Vec<u32>)> {
    let prompt = &arguments.tokens;
    let mut options = GenerateOptions::default();
    options.sampling = sampling.clone();
    options.json_schema.clone_from(&arguments.schema);
    let (mut text, mut before) = (String::new(), 0);
    if arguments.schema.is_some() {
        text = model.detokenize(prompt);
    } else {
        // A prompt of tokens is an answer that begins with them.
        options.after.clone_from(prompt);
        before = prompt.len();
    }
    options.max_tokens = before + arguments.n;
    let start = Instant::now();
    let mut answer = model.complete(&text, options)?;
    let prefill_ms = milliseconds(start);
    let start = Instant::now();
    for text in &mut answer {
        text?;
    }
    let decode_ms = milliseconds(start);
    let tokens = answer.tokens()[before..].to_vec();
    Ok((run(prefill_ms, decode_ms, prompt, &tokens), tokens))
}

/// The medians of the tokens a second of one answer and of several at once, measured in turns.
fn compared(
    model: &LanguageModel,
    arguments: &Arguments,
    count: usize,
) -> relampago::Result<Value> {
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..arguments.runs {
        for (count, rates) in [1, count].into_iter().zip(&mut rates) {
            rates.push(rate(model, arguments, count)?);
        }
    }
    let [one, all] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    let ratio = all / one;
    Ok(json!({ "answers": count, "one_per_s": one, "all_per_s": all, "ratio": ratio }))
}

/// The tokens a second of several answers at once, from the first tokens of all to the end of one.
fn rate(model: &LanguageModel, arguments: &Arguments, count: usize) -> relampago::Result<f64> {
    let mut answers = model.answers();
    let before = arguments.tokens.len();
    let mut ids = Vec::new();
    for i in 0..count {
        let mut prompt = arguments.tokens.clone();
        prompt.rotate_left(i % before.max(1));
        let mut options = GenerateOptions::default()
            .with_after(prompt)
            .with_guess(false)
            .with_max_tokens(before + arguments.n);
        if let Some(sampling) = &arguments.sampling {
            options.sampling = sampling.clone();
        }
        ids.push(answers.add(model.begin_complete("", options)?)?);
    }
    let tokens = |answers: &Answers| {
        let answers = ids.iter().filter_map(|&id| answers.get(id));
        answers
            .map(|answer| answer.tokens().len() - before)
            .collect()
    };
    let mut first: Vec<usize> = tokens(&answers);
    while first.contains(&0) {
        answers.step();
        first = tokens(&answers);
    }
    let start = Instant::now();
    let has_ended = |answers: &Answers| {
        let mut answers = ids.iter().filter_map(|&id| answers.get(id));
        answers.any(|answer| answer.finish_reason().is_some())
    };
    while !has_ended(&answers) {
        answers.step();
    }
    let seconds = start.elapsed().as_secs_f64();
    let count = tokens(&answers).iter().sum::<usize>() - first.iter().sum::<usize>();
    Ok(count as f64 / seconds)
}

fn run(prefill_ms: f64, decode_ms: f64, prompt: &[u32], tokens: &[u32]) -> Value {
    json!({
        "prefill_ms": prefill_ms,
        "decode_ms": decode_ms,
        "n_prompt": prompt.len(),
        "n_gen": tokens.len(),
    })
}

fn largest_one(logits: &[f32]) -> u32 {
    let larger = |best, id| if logits[id] > logits[best] { id } else { best };
    (1..logits.len()).fold(0, larger) as u32
}

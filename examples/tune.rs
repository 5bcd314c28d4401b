//! Teaches a language model by a file of examples.
//!
//! `cargo run --release --features llm --example tune -- MODEL.gguf EXAMPLES.jsonl [--out ADAPTER.gguf] [--peft FOLDER]
//! [--rank N] [--alpha X] [--targets q_proj,v_proj] [--epochs N] [--learning-rate X] [--batch N] [--max-tokens N]
//! [--held-back SHARE] [--seed N] [--threads N] [--backend gpu|cuda] [--resume FILE] [--state FILE] [--ask QUESTION]`
//!
//! A line of the file is `{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}`, or
//! `{"text": "…"}`.

use relampago::GpuDevice;
use relampago::llm::{
    GenerateOptions, LanguageModel, LoadOptions, Message, Progress, TuneExample, TuneOptions,
};
use std::error::Error;
use std::ops::ControlFlow;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    use lexopt::prelude::{Long, Value, ValueExt};
    let (mut load, mut options) = (LoadOptions::default(), TuneOptions::default());
    let (mut paths, mut questions) = (Vec::new(), Vec::new());
    let (mut out, mut peft, mut state) = (None, None, None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Value(value) => paths.push(PathBuf::from(value)),
            Long("out") => out = Some(PathBuf::from(parser.value()?)),
            Long("peft") => peft = Some(PathBuf::from(parser.value()?)),
            Long("state") => state = Some(PathBuf::from(parser.value()?)),
            Long("resume") => options = options.with_resume(std::fs::read(parser.value()?)?),
            Long("rank") => options.rank = parser.value()?.parse()?,
            Long("alpha") => options.alpha = parser.value()?.parse()?,
            Long("targets") => {
                options = options.with_targets(parser.value()?.string()?.split(','));
            }
            Long("epochs") => options.epochs = parser.value()?.parse()?,
            Long("learning-rate") => options.learning_rate = parser.value()?.parse()?,
            Long("batch") => options.batch = parser.value()?.parse()?,
            Long("max-tokens") => options.max_tokens = parser.value()?.parse()?,
            Long("held-back") => options.held_back = parser.value()?.parse()?,
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("threads") => load.threads = Some(parser.value()?.parse()?),
            Long("backend") => {
                let backend = parser.value()?.parse()?;
                load.device = Some(GpuDevice::builder().backend(backend).build()?);
            }
            Long("ask") => questions.push(parser.value()?.string()?),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let [model, examples] = &paths[..] else {
        return Err("usage: tune MODEL.gguf EXAMPLES.jsonl".into());
    };
    let model = LanguageModel::load(model, load)?;
    let lines = std::fs::read_to_string(examples)?;
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    let examples = lines
        .map(TuneExample::from_json)
        .collect::<Result<Vec<_>, _>>()?;
    let tuned = model.tune(&examples, options.with_on_step(print))?;
    if let Some(path) = out {
        std::fs::write(path, tuned.to_gguf()?)?;
    }
    if let Some(folder) = peft {
        std::fs::create_dir_all(&folder)?;
        let file = folder.join("adapter_model.safetensors");
        std::fs::write(file, tuned.to_safetensors()?)?;
        std::fs::write(folder.join("adapter_config.json"), tuned.adapter_config())?;
    }
    if let Some(path) = state {
        std::fs::write(path, tuned.state())?;
    }
    for question in questions {
        let question = [Message::user(question)];
        let mut options = GenerateOptions::default();
        options.max_tokens = 60;
        let before = model.chat(&question, options.clone())?.text()?;
        let options = options.with_lora([tuned.lora().clone().into()]);
        let after = model.chat(&question, options)?.text()?;
        println!(
            "{}\n  before: {before}\n  after: {after}",
            question[0].content
        );
    }
    Ok(())
}

fn print(progress: &Progress) -> ControlFlow<()> {
    let Progress {
        step, steps, loss, ..
    } = progress;
    let (rate, left) = (progress.tokens_per_second, progress.seconds_left);
    print!("step {step} of {steps}: loss {loss:.4}, {rate:.0} tokens/s, {left:.0} s left");
    match progress.held_back_loss {
        Some(loss) => println!(", held back {loss:.4}"),
        None => println!(),
    }
    ControlFlow::Continue(())
}

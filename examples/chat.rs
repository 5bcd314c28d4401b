//! A conversation with a language model in the terminal.
//!
//! `cargo run --release --features llm --example chat -- MODEL.gguf [--threads N] [--max-tokens N]
//! [--backend gpu|cuda] [--temperature T] [--seed N] [--system TEXT]`. An empty line or the end of input ends it.

use relampago::GpuDevice;
use relampago::llm::{GenerateOptions, LanguageModel, LoadOptions, Message, Session};
use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    use lexopt::prelude::{Long, Value, ValueExt};
    let (mut path, mut messages) = (None, Vec::new());
    let (mut load, mut options) = (LoadOptions::default(), GenerateOptions::default());
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Value(value) => path = Some(value),
            Long("threads") => load.threads = Some(parser.value()?.parse()?),
            Long("backend") => {
                let backend = parser.value()?.parse()?;
                load.device = Some(GpuDevice::builder().backend(backend).build()?);
            }
            Long("max-tokens") => options.max_tokens = parser.value()?.parse()?,
            Long("temperature") => options.sampling.temperature = parser.value()?.parse()?,
            Long("seed") => options.sampling.seed = parser.value()?.parse()?,
            Long("system") => messages.push(Message::system(parser.value()?.string()?)),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let model = LanguageModel::load(path.ok_or("usage: chat MODEL.gguf")?, load)?;
    let info = model.info();
    println!(
        "{}: {} million parameters",
        info.name,
        info.parameters / 1_000_000
    );
    // It has read the messages so far, so that only the last one is read for each answer.
    let mut session = model.session()?;
    loop {
        print!("> ");
        std::io::stdout().flush()?;
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        if line.trim().is_empty() {
            return Ok(());
        }
        messages.push(Message::user(line.trim()));
        messages.push(Message::assistant(answer(
            &mut session,
            &messages,
            &options,
        )?));
    }
}

/// Prints an answer as it is generated, and its speed.
fn answer(
    session: &mut Session,
    messages: &[Message],
    options: &GenerateOptions,
) -> Result<String, Box<dyn Error>> {
    let start = Instant::now();
    let mut generation = session.chat(messages, options.clone())?;
    let first = start.elapsed();
    let mut answer = String::new();
    for text in &mut generation {
        let text = text?;
        print!("{text}");
        std::io::stdout().flush()?;
        answer.push_str(&text);
    }
    let seconds = start.elapsed().as_secs_f64() - first.as_secs_f64();
    let speed = generation.tokens().len() as f64 / seconds;
    println!(
        "\n[prompt {:.0} ms, {speed:.1} tokens/s]",
        first.as_secs_f64() * 1e3
    );
    Ok(answer)
}

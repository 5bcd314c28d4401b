//! Runs parts in a second process, beside the parts of this process.
//!
//! Compilers use all cores for a part of the time, browsers one of them most of the time.

use super::{Outcome, Part};
use anyhow::{Context, Result};
use std::env;
use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

/// A process that runs parts, and the lines that it prints.
pub(super) struct Beside {
    child: Child,
    lines: Receiver<Vec<u8>>,
    started: Instant,
}

impl Beside {
    /// Starts the parts, if there are any.
    pub(super) fn start(parts: &[&Part]) -> Result<Option<Self>> {
        if parts.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
        let (reader, writer) = pipe()?;
        let mut command = Command::new(env::current_exe()?);
        command.args(["test", "--only", &names.join(",")]);
        command.stdin(Stdio::null());
        command.stdout(writer.try_clone()?).stderr(writer);
        let child = command.spawn().context("cannot start a second process")?;
        Ok(Some(Self {
            child,
            lines: lines(reader),
            started: Instant::now(),
        }))
    }

    /// Prints the output of the parts so far, and continues until they end.
    pub(super) fn outcome(mut self) -> Result<Outcome> {
        for line in self.lines {
            println!("{}", String::from_utf8_lossy(&line));
        }
        Ok(Outcome {
            name: "package parts",
            passed: self.child.wait()?.success(),
            took: self.started.elapsed(),
        })
    }
}

/// Reads the lines at once, so that the process never waits for this one.
fn lines(output: PipeReader) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).split(b'\n');
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

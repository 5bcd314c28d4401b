//! Progress of one long step: a spinner on a terminal, plain lines in a log.

use anyhow::{Context, Result, bail};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use xshell::Cmd;

/// The number of lines of a failed command's output that are shown: its last ones.
const TAIL: usize = 40;

/// The terminal's lines of steps that run at the same time.
static STEPS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

pub(crate) struct Progress {
    name: String,
    spinner: Option<ProgressBar>,
    started: Instant,
}

impl Progress {
    pub(crate) fn start(name: &str) -> Self {
        let spinner = io::stderr().is_terminal().then(|| spinner(name));
        if spinner.is_none() {
            eprintln!("...  {name}");
        }
        Self {
            name: name.to_owned(),
            spinner,
            started: Instant::now(),
        }
    }

    /// Shows the current action of the step.
    pub(crate) fn note(&self, what: &str) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(what.to_owned()),
            None => eprintln!("       {what}"),
        }
    }

    pub(crate) fn finish(self, outcome: &str) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
        let seconds = self.started.elapsed().as_secs_f64();
        STEPS.suspend(|| eprintln!("{outcome:4} {} ({seconds:.1} s)", self.name));
    }

    /// Runs `cmd` silently but for the spinner; a failure carries the end of its output.
    pub(crate) fn run(&self, cmd: Cmd) -> Result<()> {
        self.note(&cmd.to_string());
        let shown = cmd.to_string();
        let (reader, writer) = io::pipe()?;
        let mut command = Command::from(cmd);
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start `{shown}`"))?;
        // The pipe ends only when this process, too, has closed its writing ends.
        drop(command);
        let tail = self.follow(reader)?;
        let status = child.wait()?;
        if !status.success() {
            bail!("`{shown}` failed ({status}):\n{tail}");
        }
        Ok(())
    }

    fn follow(&self, reader: io::PipeReader) -> Result<String> {
        let mut tail = VecDeque::with_capacity(TAIL);
        for line in BufReader::new(reader).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).trim_end().to_owned();
            if let Some(spinner) = &self.spinner {
                spinner.set_message(line.clone());
            }
            if tail.len() == TAIL {
                tail.pop_front();
            }
            tail.push_back(line);
        }
        Ok(Vec::from(tail).join("\n"))
    }
}

fn spinner(name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {prefix} [{elapsed}] {wide_msg:.dim}")
        .expect("the template is constant");
    let spinner = ProgressBar::new_spinner()
        .with_style(style)
        .with_prefix(name.to_owned());
    let spinner = STEPS.add(spinner);
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

//! `cargo xtask test`: everything CI runs, part by part, and a table at the end.

mod counted;
mod dependent;
mod engines;
mod layers;
mod parts;
mod publish;

use crate::project::Project;
use crate::setup::{self, Scope, Tools};
use anyhow::{Result, bail, ensure};
use clap::Args;
use parts::{EXHAUSTIVE, PARTS};
use std::cell::RefCell;
use std::env;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// Run only these parts, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    only: Vec<String>,
    /// Instead of all parts: try functions of one number at every f32 value, and a million random cases, for hours
    #[arg(long, conflicts_with = "only")]
    exhaustive: bool,
}

/// The context that every part may use.
struct Context<'a> {
    project: &'a Project,
    tools: &'a Tools,
    /// Builds the package while earlier parts run, where both are chosen.
    builder: RefCell<Option<Child>>,
}

struct Part {
    name: &'static str,
    run: fn(&Context) -> Result<()>,
}

struct Outcome {
    name: &'static str,
    passed: bool,
    took: Duration,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let chosen = if options.exhaustive {
        vec![&EXHAUSTIVE]
    } else {
        choose(&options.only)?
    };
    let started = Instant::now();
    let tools = setup::ensure(project, Scope::Everything)?;
    let setup = Outcome {
        name: "setup",
        passed: true,
        took: started.elapsed(),
    };
    let context = Context {
        project,
        tools: &tools,
        builder: RefCell::new(build_ahead(&chosen)?),
    };
    let parts = chosen.iter().map(|part| part.outcome(&context));
    let outcomes: Vec<Outcome> = [setup].into_iter().chain(parts).collect();
    report(&outcomes, started.elapsed());
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| !outcome.passed)
        .map(|outcome| outcome.name)
        .collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Starts to build the package if native tests come before it: these leave a core idle half of the time. Says nothing, since
/// the package's own part finds what was built, or fails in the same way.
fn build_ahead(chosen: &[&Part]) -> Result<Option<Child>> {
    let has = |name| chosen.iter().any(|part| part.name == name);
    if !(has("native") && has("package")) {
        return Ok(None);
    }
    let mut builder = Command::new(env::current_exe()?);
    builder.arg("package").stdin(Stdio::null());
    builder.stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Some(builder.spawn()?))
}

/// The parts in their own order; all of them when none is named.
fn choose(only: &[String]) -> Result<Vec<&'static Part>> {
    for name in only {
        if !PARTS.iter().any(|part| part.name == name) {
            let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
            bail!(
                "there is no part `{name}`; the parts are {}",
                known.join(", ")
            );
        }
    }
    let is_chosen = |part: &&Part| only.is_empty() || only.iter().any(|name| name == part.name);
    Ok(PARTS.iter().filter(is_chosen).collect())
}

impl Part {
    /// A failure does not keep the later parts from running: one run shows all there is to mend.
    fn outcome(&self, context: &Context) -> Outcome {
        println!("\n=== {} ===", self.name);
        let started = Instant::now();
        let result = (self.run)(context);
        if let Err(error) = &result {
            println!("{}: {error:#}", self.name);
        }
        Outcome {
            name: self.name,
            passed: result.is_ok(),
            took: started.elapsed(),
        }
    }
}

fn report(outcomes: &[Outcome], total: Duration) {
    println!("\n{:20} {:8} {:>8}", "part", "", "seconds");
    for Outcome { name, passed, took } in outcomes {
        let verdict = if *passed { "ok" } else { "FAILED" };
        println!("{name:20} {verdict:8} {:>8.1}", took.as_secs_f64());
    }
    println!("{:20} {:8} {:>8.1}", "total", "", total.as_secs_f64());
}

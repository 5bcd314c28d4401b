//! `cargo xtask test`: everything CI runs, part by part, and a table at the end.

mod beside;
mod counted;
mod dependent;
mod engines;
mod exhaustive;
mod layers;
mod parts;
mod publish;

use crate::project::Project;
use crate::setup::{self, Scope, Tools};
use anyhow::{Result, ensure};
use beside::Beside;
use clap::Args;
use parts::{EXHAUSTIVE_PARTS, LAST_PARTS, PACKAGE_PARTS, PARTS};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// Run only these parts, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    only: Vec<String>,
    /// Run the parts that take hours or check what seldom changes, instead of all others
    #[arg(long, conflicts_with = "only")]
    exhaustive: bool,
}

/// The context that every part may use.
struct Context<'a> {
    project: &'a Project,
    tools: &'a Tools,
}

#[derive(Clone, Copy)]
struct Part {
    name: &'static str,
    run: fn(&Context) -> Result<()>,
}

struct Outcome {
    name: &'static str,
    passed: bool,
    took: Duration,
}

/// The parts that need neither browsers nor npm.
const NATIVE_PARTS: [&str; 4] = ["format", "layers", "clippy", "native"];

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let [parts, package_parts, last, exhaustive] = choose(options)?;
    let parts = [parts, exhaustive].concat();
    let started = Instant::now();
    let is_native = |part: &&Part| NATIVE_PARTS.contains(&part.name);
    let chosen = [&parts[..], &package_parts, &last].concat();
    let scope = if chosen.iter().all(is_native) {
        Scope::Native
    } else {
        Scope::Everything
    };
    let tools = setup::ensure(project, scope)?;
    let mut outcomes = vec![Outcome {
        name: "setup",
        passed: true,
        took: started.elapsed(),
    }];
    let tools = &tools;
    let context = Context { project, tools };
    if parts.is_empty() {
        outcomes.extend(all(&package_parts, &context));
    } else {
        let beside = Beside::start(&package_parts)?;
        outcomes.extend(all(&parts, &context));
        outcomes.extend(beside.map(Beside::outcome).transpose()?);
    }
    outcomes.extend(all(&last, &context));
    report(&outcomes, started.elapsed());
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| !outcome.passed)
        .map(|outcome| outcome.name)
        .collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Returns the chosen ones of each list of parts, in its order.
fn choose(options: &Options) -> Result<[Vec<&'static Part>; 4]> {
    let lists = [PARTS, PACKAGE_PARTS, LAST_PARTS, EXHAUSTIVE_PARTS];
    let names = |parts: &[Part]| parts.iter().map(|part| part.name).collect();
    let named: Vec<&str> = match (&options.only[..], options.exhaustive) {
        ([], false) => names(&lists[..3].concat()),
        ([], true) => names(EXHAUSTIVE_PARTS),
        (only, _) => only.iter().map(String::as_str).collect(),
    };
    let known: Vec<&str> = names(&lists.concat());
    for name in &named {
        ensure!(
            known.contains(name),
            "there is no part `{name}`; the parts are {}",
            known.join(", ")
        );
    }
    let is_chosen = |part: &&Part| named.contains(&part.name);
    Ok(lists.map(|parts| parts.iter().filter(is_chosen).collect()))
}

fn all(parts: &[&Part], context: &Context) -> Vec<Outcome> {
    parts.iter().map(|part| part.outcome(context)).collect()
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

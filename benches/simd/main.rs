//! `cargo xtask bench simd`: the SIMD back-end on one thread and on more, beside its peers.
//!
//! Writes `simd.json`, `simd.md` and `simd.svg`, and prints the second of them.

mod graphs;
mod layers;
mod machine;
mod products;
mod race;
mod report;
#[path = "../report_head.rs"]
mod report_head;
#[path = "../resnet.rs"]
mod resnet;
mod tiles;
mod transforms;
mod vectors;
mod weights;

use anyhow::{Context, Result};
use clap::Parser;
use relampago::{Backend, GpuDevice, InstructionSet};
use std::path::PathBuf;

#[derive(Parser)]
#[command(name = "cargo xtask bench simd")]
struct Options {
    /// Samples of each contestant in a row
    #[arg(long, default_value_t = 21)]
    rounds: usize,
    /// Run only rows whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Instruction set, such as avx2; by default the best
    #[arg(long)]
    isa: Option<String>,
    /// Threads for an operation; beside more than one, ours on one thread is a contestant
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Folder of the reports
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
}

/// A line of a table: contestants that did the same work, ours first.
pub(crate) struct Row {
    name: String,
    /// The work of one run, in units of 10⁹: operations of a matmul, bytes of a vector kernel.
    work: f64,
    unit: &'static str,
    contestants: Vec<(String, race::Times)>,
}

/// Our contestants.
pub(crate) struct Team<'a> {
    device: &'a GpuDevice,
    /// The device with one thread.
    alone: &'a GpuDevice,
    threads: usize,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let isa = instruction_set(options.isa.as_deref())?;
    rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build_global()?;
    let builder = GpuDevice::builder()
        .backend(Backend::Simd)
        .instruction_set(isa);
    let device = builder.clone().build()?;
    let team = Team {
        device: &device,
        alone: &builder.threads(1).build()?,
        threads: options.threads,
    };
    let before = machine::describe(&device.info());
    let wanted = |name: &str| name.contains(&options.only);
    let mut rows = products::rows(&team, options.rounds, &wanted)?;
    rows.extend(layers::rows(&team, options.rounds, &wanted)?);
    rows.extend(weights::rows(&team, options.rounds, &wanted)?);
    rows.extend(vectors::rows(&team, options.rounds, &wanted)?);
    rows.extend(graphs::rows(&team, options.rounds, &wanted)?);
    rows.extend(transforms::rows(&team, options.rounds, &wanted)?);
    rows.extend(tiles::rows(&team, options.rounds, &wanted)?);
    let report = report::Report::new(before, options.rounds, options.threads, &rows);
    std::fs::create_dir_all(&options.out)
        .and_then(|()| report.write(&options.out))
        .with_context(|| format!("{} cannot be written", options.out.display()))?;
    println!("{}", report.markdown());
    Ok(())
}

fn instruction_set(name: Option<&str>) -> Result<InstructionSet> {
    let Some(name) = name else {
        return Ok(InstructionSet::best());
    };
    let available = InstructionSet::available();
    let is_meant = |isa: &&InstructionSet| format!("{isa:?}").eq_ignore_ascii_case(name);
    let found = available.iter().find(is_meant);
    let found = found.with_context(|| format!("{name} is none of {available:?}"))?;
    Ok(*found)
}

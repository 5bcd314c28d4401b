//! `cargo xtask bench gpu`: kernels on resident values beside the hardware's ceilings and `PyTorch`,
//! round trips beside a plain wgpu loop, and where the GPU gains on SIMD.
//!
//! One program that needs neither Rust nor a network where it runs. Writes `gpu.json` and
//! `gpu.md`, and prints the second.

mod ceilings;
mod crossover;
mod first_use;
mod peer;
mod plain;
mod race;
mod report;
#[path = "../report_head.rs"]
mod report_head;
mod resident;
#[path = "../resnet.rs"]
mod resnet;
mod streams;
mod trips;
mod tuning;

use anyhow::{Context, Result};
use clap::Parser;
use relampago::{Backend, GpuDevice};
use std::path::PathBuf;

#[derive(Parser)]
#[command(name = "cargo xtask bench gpu")]
struct Options {
    /// Samples of each row
    #[arg(long, default_value_t = 21)]
    rounds: usize,
    /// Run only rows whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Leaves out `PyTorch`, also where it is installed
    #[arg(long)]
    no_peer: bool,
    /// Divides lengths, for adapters that would take minutes
    #[arg(long, default_value_t = 1)]
    divide: usize,
    /// Parts of a stream that are under way at a time
    #[arg(long, default_value_t = 3)]
    in_flight: usize,
    /// Measure only the time to make the first kernels, with pipelines kept in this folder
    #[arg(long)]
    first_use: Option<PathBuf>,
    /// Measure only which kernel is the fastest for each product
    #[arg(long)]
    tune: bool,
    /// Folder of the reports
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
}

/// A kernel or a chain of them on values that are on the GPU already.
pub(crate) struct Row {
    pub(crate) name: String,
    /// Floating-point operations and bytes that must move, in units of 10⁹.
    pub(crate) gflop: f64,
    pub(crate) gbyte: f64,
    /// Seconds, the median.
    pub(crate) time: f64,
    /// Whether the measured ceilings apply to the row: there is none for f16.
    pub(crate) ceiling: bool,
}

/// A way from host memory to host memory: seconds, ours first, then the peers'.
pub(crate) struct Trip {
    pub(crate) name: String,
    pub(crate) times: Vec<(&'static str, f64)>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(folder) = &options.first_use {
        return first_use::measure(folder);
    }
    let device = GpuDevice::builder().backend(Backend::Gpu).build()?;
    println!("{}\n", device.info());
    if options.tune {
        return tuning::measure(&device, options.divide);
    }
    let wanted = |name: &str| name.contains(&options.only);
    let ceilings = ceilings::measure(options.divide);
    let rows = resident::rows(&device, &options, &wanted)?;
    let mut trips = trips::rows(&device, &options, &wanted)?;
    trips.extend(streams::rows(&device, &options, &wanted)?);
    let crossover = crossover::rows(&device, options.rounds, &wanted)?;
    // The peer comes last: it keeps the GPU's memory for itself while it runs.
    let peer = if options.no_peer || options.divide > 1 {
        peer::Times::default()
    } else {
        peer::measure()
    };
    let report = report::Report {
        device: device.info(),
        rounds: options.rounds,
        ceilings,
        rows,
        trips,
        crossover,
        peer,
    };
    std::fs::create_dir_all(&options.out)
        .and_then(|()| report.write(&options.out))
        .with_context(|| format!("{} cannot be written", options.out.display()))?;
    println!("{}", report.markdown());
    Ok(())
}

pub(crate) fn values(len: usize) -> Vec<f32> {
    let mut state = 0x9E37_79B9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / 2_147_483_648.0 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

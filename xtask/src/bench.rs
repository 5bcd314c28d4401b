//! `cargo xtask bench`: the benchmarks, each beside its peers, with what they need in place.

use crate::package;
use crate::project::Project;
use crate::setup::{self, Scope};
use anyhow::Result;
use clap::{Args, ValueEnum};
use xshell::cmd;

#[derive(Args)]
pub(crate) struct Options {
    /// What to measure
    #[arg(value_enum)]
    what: What,
    /// Passed on to the benchmark; `--help` lists what it takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// The SIMD back-end beside gemm, matrixmultiply and plain loops
    Simd,
    /// The npm package beside onnxruntime-web, tfjs, jax-js and plain JavaScript
    Browser,
    /// Every operation on the GPU beside SIMD, and a plain wgpu loop
    Gpu,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let (sh, arguments) = (&project.sh, &options.arguments);
    match options.what {
        What::Simd => cmd!(
            sh,
            "cargo run --release -p relampago-benches -- {arguments...}"
        )
        .run()?,
        What::Browser => browser(project, arguments)?,
        What::Gpu => cmd!(sh, "cargo bench -p relampago {arguments...}").run()?,
    }
    Ok(())
}

fn browser(project: &Project, arguments: &[String]) -> Result<()> {
    let tools = setup::ensure(project, Scope::BrowserBench)?;
    let tarball = package::run(project, &tools)?.tarball;
    let command = cmd!(project.sh, "node benches/browser/run.mjs {arguments...}");
    Ok(command.env("RELAMPAGO_TARBALL", tarball).run()?)
}

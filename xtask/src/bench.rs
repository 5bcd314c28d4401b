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
    /// PTX written beside aprender-gpu, and a folder of kernels, to measure beside cuBLAS where there
    /// is a GPU and no Rust
    Ptx,
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
        What::Ptx => ptx(project)?,
        What::Gpu => cmd!(sh, "cargo bench -p relampago {arguments...}").run()?,
    }
    Ok(())
}

/// Writes the kernels beside the script that measures them: the machine with the GPU needs no Rust.
fn ptx(project: &Project) -> Result<()> {
    let sh = &project.sh;
    let folder = project.target("bench/ptx");
    sh.remove_path(&folder)?;
    let kernels = folder.join("kernels");
    cmd!(
        sh,
        "cargo run --release --no-default-features --features ptx --example ptx_bundle -- sm_90a {kernels}"
    )
    .run()?;
    for script in ["driver.py", "run.py"] {
        sh.copy_file(project.root.join("benches/ptx").join(script), &folder)?;
    }
    let race = project.root.join("benches/ptx/Cargo.toml");
    let target = project.target("");
    cmd!(
        sh,
        "cargo run --release --manifest-path {race} --target-dir {target}"
    )
    .run()?;
    println!(
        "copy {} to the machine, and there: python3 run.py kernels results.json",
        folder.display()
    );
    Ok(())
}

fn browser(project: &Project, arguments: &[String]) -> Result<()> {
    let tools = setup::ensure(project, Scope::BrowserBench)?;
    let tarball = package::run(project, &tools)?.tarball;
    let command = cmd!(project.sh, "node benches/browser/run.mjs {arguments...}");
    Ok(command.env("RELAMPAGO_TARBALL", tarball).run()?)
}

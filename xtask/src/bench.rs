//! `cargo xtask bench`: the benchmarks, each beside its peers, with what they need in place.

use crate::project::Project;
use crate::setup::{self, Model, Scope};
use crate::{package, performance};
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use xshell::cmd;

#[derive(Args)]
pub(crate) struct Options {
    /// The benchmark to run
    #[arg(value_enum)]
    what: Benchmark,
    /// Write the report into the benchmark's page of docs/performance
    #[arg(long)]
    save: bool,
    /// Save this report, which another machine wrote, and measure nothing
    #[arg(long, value_name = "REPORT.md", requires = "save")]
    from: Option<PathBuf>,
    /// Passed on to the benchmark; `--help` lists what it takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Benchmark {
    /// The SIMD back-end beside gemm, matrixmultiply and plain loops
    Simd,
    /// The npm package beside onnxruntime-web, tfjs, jax-js and plain JavaScript
    Browser,
    /// PTX written beside aprender-gpu, and a folder of kernels, to measure beside cuBLAS where there
    /// is a GPU and no Rust
    Ptx,
    /// A language model beside llama.cpp, natively and in Chromium
    Llm,
    /// The GPU back-end beside the hardware's ceilings, `PyTorch`, a plain wgpu loop and SIMD
    Gpu,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let (name, arguments) = (options.what.name(), &options.arguments);
    if let Some(report) = &options.from {
        return performance::save(project, name, report);
    }
    let report = project.target("bench").join(format!("{name}.md"));
    project.sh.remove_path(&report)?;
    match options.what {
        Benchmark::Simd => simd(project, arguments)?,
        Benchmark::Browser => browser(project, arguments)?,
        Benchmark::Ptx => ptx(project, &report)?,
        Benchmark::Llm => llm(project, arguments, &report)?,
        Benchmark::Gpu => gpu(project, arguments)?,
    }
    if options.save {
        performance::save(project, name, &report)?;
    }
    Ok(())
}

impl Benchmark {
    /// The name of the report and of the page.
    fn name(self) -> &'static str {
        match self {
            Self::Simd => "simd",
            Self::Browser => "browser",
            Self::Ptx => "ptx",
            Self::Llm => "llm",
            Self::Gpu => "gpu",
        }
    }
}

fn simd(project: &Project, arguments: &[String]) -> Result<()> {
    let command = cmd!(
        project.sh,
        "cargo run --release -p relampago-benches --bin bench-simd -- {arguments...}"
    );
    Ok(command.run()?)
}

/// Copies the program into a separate folder, too: the machine with the GPU needs no Rust.
fn gpu(project: &Project, arguments: &[String]) -> Result<()> {
    let sh = &project.sh;
    let target = project.target("");
    cmd!(
        sh,
        "cargo build --release --target-dir {target} -p relampago-benches --features gpu --bin bench-gpu"
    )
    .run()?;
    let folder = project.target("bench/gpu");
    sh.create_dir(&folder)?;
    let program = format!("bench-gpu{}", std::env::consts::EXE_SUFFIX);
    sh.copy_file(project.target("release").join(&program), &folder)?;
    let program = folder.join(program);
    println!("{} runs wherever there is a GPU", program.display());
    Ok(cmd!(sh, "{program} {arguments...}").run()?)
}

/// Writes the kernels beside the script that measures them: the machine with the GPU needs no Rust.
fn ptx(project: &Project, report: &Path) -> Result<()> {
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
    let written = cmd!(
        sh,
        "cargo run --release --manifest-path {race} --target-dir {target}"
    );
    let written = written.read()?;
    println!("{written}");
    sh.write_file(report, written)?;
    println!(
        "copy {} to the machine, and there: python3 run.py kernels results.json; it writes results.md, too",
        folder.display()
    );
    Ok(())
}

fn llm(project: &Project, arguments: &[String], report: &Path) -> Result<()> {
    let sh = &project.sh;
    let tools = setup::ensure(project, Scope::LlmBench)?;
    let package = package::run(project, &tools)?.folder;
    let target = project.target("");
    cmd!(
        sh,
        "cargo build --release --target-dir {target} -p relampago --features llm --example llm_bench"
    )
    .run()?;
    let program = format!("llm_bench{}", std::env::consts::EXE_SUFFIX);
    let command = cmd!(sh, "node benches/llm/run.mjs {arguments...}")
        .env(
            "RELAMPAGO_BENCH",
            project.target("release/examples").join(program),
        )
        .env("RELAMPAGO_MODEL", Model::smollm2(project).path())
        .env("RELAMPAGO_PACKAGE", package)
        .env("RELAMPAGO_REPORT", report)
        .env("XLLAMACPP", setup::xllamacpp(project));
    Ok(command.run()?)
}

fn browser(project: &Project, arguments: &[String]) -> Result<()> {
    let tools = setup::ensure(project, Scope::BrowserBench)?;
    let tarball = package::run(project, &tools)?.tarball;
    let command = cmd!(project.sh, "node benches/browser/run.mjs {arguments...}");
    Ok(command.env("RELAMPAGO_TARBALL", tarball).run()?)
}

//! The parts of `cargo xtask test --exhaustive` that run tests.

use super::parts::{clippy_wasm_with, with_gpu};
use super::{Context, counted};
use crate::package;
use crate::setup::{self, Model};
use anyhow::Result;
use xshell::cmd;

/// The number of mutated model files.
const MUTATIONS: &str = "1000000";

/// Reads every shader by WESL's compiler.
pub(super) fn shaders(context: &Context) -> Result<()> {
    let sh = &context.project.sh;
    cmd!(
        sh,
        "cargo clippy -p shaders-check --all-targets -- -D warnings"
    )
    .run()?;
    counted::run(cmd!(sh, "cargo test -p shaders-check"))
}

/// Runs clippy with the features of each entry of the package alone, which finds code that an entry does not use. That each
/// compiles is shown by the part `package`.
pub(super) fn entries(context: &Context) -> Result<()> {
    let features = ["js-llm", "js-chat", "js-tune", "js-numeric", "js-train"];
    features
        .iter()
        .try_for_each(|features| clippy_wasm_with(context, features))
}

/// Tries functions of one number at every `f32`.
pub(super) fn functions(context: &Context) -> Result<()> {
    // One operation after the other: each is shared among all threads.
    let test = cmd!(
        context.project.sh,
        "cargo test --release --no-default-features --lib simd::tests::math
         -- --nocapture --test-threads 1"
    );
    counted::run(test.env("RELAMPAGO_EXHAUSTIVE", "1"))
}

/// Runs random cases that no other run has had, and more faults in PTX and dropped futures.
pub(super) fn fuzz(context: &Context) -> Result<()> {
    let test = cmd!(
        context.project.sh,
        "cargo test --release -p relampago -p relampago-ptx --features relampago/ptx
         --test cancellation --test fuzz --test ptx -- --nocapture"
    );
    let test = test.env("PTXAS", &context.tools.ptxas);
    counted::run(with_gpu(context, test)?.env("RELAMPAGO_EXHAUSTIVE", "1"))
}

/// The programs of `fuzz/`.
const READERS: [&str; 5] = ["gguf", "safetensors", "ptx_text", "template", "wesl"];

/// The compiler's options that count which branches a program takes, for libFuzzer.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Runs readers of files and texts on inputs that libFuzzer derives from the seeds in `fuzz/corpus`, for a minute each.
pub(super) fn readers(context: &Context) -> Result<()> {
    let Context { project, .. } = context;
    let (sh, target) = (&project.sh, project.target("fuzz"));
    let _inside = sh.push_dir(project.root.join("fuzz"));
    // Build scripts and macros are compiled without the options only for a target that is named.
    let host = cmd!(sh, "rustc --print host-tuple").read()?;
    cmd!(
        sh,
        "cargo build --release --target {host} --target-dir {target}"
    )
    .env("RUSTFLAGS", COVERAGE)
    .run()?;
    let programs = target.join(&host).join("release");
    for reader in READERS {
        let (program, found) = (programs.join(reader), target.join("found").join(reader));
        sh.create_dir(&found)?;
        let artifacts = format!("-artifact_prefix={}/", target.display());
        let limits = [
            "-max_total_time=60",
            "-timeout=10",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
        ];
        // Files change a valid one and have no seeds.
        let seeds = project.root.join("fuzz/corpus").join(reader);
        let seeds = seeds.exists().then_some(seeds);
        // The first folder gets new inputs.
        cmd!(sh, "{program} {limits...} {artifacts} {found} {seeds...}").run()?;
    }
    Ok(())
}

/// Reads mutated models.
pub(super) fn hostile(context: &Context) -> Result<()> {
    let test = cmd!(
        context.project.sh,
        "cargo test --release -p relampago --features llm --test llm hostile -- --nocapture"
    );
    counted::run(test.env("RELAMPAGO_MUTATIONS", MUTATIONS))
}

/// Compares the logits and tokens of models with exact ones, natively and in Chromium, and checks the calls of many
/// answers; fetches the model that no other part needs.
pub(super) fn models(context: &Context) -> Result<()> {
    let Context { project, tools, .. } = context;
    let (sh, smollm2, gemma3) = (&project.sh, Model::smollm2(project), Model::gemma3(project));
    setup::ensure_model(project, &gemma3)?;
    let test = cmd!(
        sh,
        "cargo test --release -p relampago --features llm --test llm -- exact_ones llama_cpp calls_that --nocapture"
    );
    let test = test.env("RELAMPAGO_MODELS", smollm2.path().with_file_name(""));
    counted::run(with_gpu(context, test)?.env("RELAMPAGO_EXHAUSTIVE", "1"))?;
    let package = package::run(project, tools)?;
    let _inside = sh.push_dir(project.pkg_tests());
    let test = cmd!(
        sh,
        "node --test --test-reporter=spec tests/llm-exact.test.mjs"
    )
    .env("RELAMPAGO_TARBALL", package.tarball)
    .env("RELAMPAGO_MODEL", smollm2.path())
    .env("RELAMPAGO_GEMMA", gemma3.path());
    Ok(tools.for_browser(test)?.run()?)
}

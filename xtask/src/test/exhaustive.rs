//! The parts of `cargo xtask test --exhaustive` that run tests.

use super::parts::with_gpu;
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

/// Reads mutated models.
pub(super) fn hostile(context: &Context) -> Result<()> {
    let test = cmd!(
        context.project.sh,
        "cargo test --release -p relampago --features llm --test llm hostile -- --nocapture"
    );
    counted::run(test.env("RELAMPAGO_MUTATIONS", MUTATIONS))
}

/// Compares the logits and tokens of models with exact ones, natively and in Chromium; fetches the model that no other
/// part needs.
pub(super) fn models(context: &Context) -> Result<()> {
    let Context { project, tools, .. } = context;
    let (sh, smollm2, gemma3) = (&project.sh, Model::smollm2(project), Model::gemma3(project));
    setup::ensure_model(project, &gemma3)?;
    let test = cmd!(
        sh,
        "cargo test --release -p relampago --features llm --test llm -- exact_ones llama_cpp --nocapture"
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

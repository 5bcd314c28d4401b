//! Engines beside Chromium, and the table of what runs where, `docs/engines.md`.

use super::{Context, counted};
use crate::setup::Tools;
use anyhow::{Context as _, Result};
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use xshell::{Cmd, PushEnv, cmd};

/// The engine that runs the library's own WebAssembly tests.
#[derive(Clone, Copy, Debug)]
pub(super) enum Engine {
    Chromium,
    Firefox,
}

impl Engine {
    /// Returns wasm-pack's arguments for the engine.
    pub(super) fn arguments(self, tools: &Tools) -> Result<[&OsStr; 3]> {
        Ok(match self {
            Self::Chromium => [
                "--chrome".as_ref(),
                "--chromedriver".as_ref(),
                tools.browser()?.chromedriver.as_ref(),
            ],
            Self::Firefox => [
                "--firefox".as_ref(),
                "--geckodriver".as_ref(),
                tools.engines()?.geckodriver.as_ref(),
            ],
        })
    }

    /// Runs the library's own tests there and records that they passed.
    pub(super) fn run(self, context: &Context, tests: Cmd) -> Result<()> {
        let file = records(context, &format!("wasm-{self:?}"))?;
        context.project.sh.remove_path(&file)?;
        counted::run(tests)?;
        let line = format!("{{\"host\":\"{self:?}\",\"what\":\"the crate's tests\"}}\n");
        Ok(fs::write(file, line)?)
    }
}

/// Sets the environment so that the scripts of a part record their results anew, while the return
/// value lives.
pub(super) fn recording<'a>(context: &'a Context, part: &str) -> Result<PushEnv<'a>> {
    let file = records(context, part)?;
    context.project.sh.remove_path(&file)?;
    Ok(context.project.sh.push_env("RELAMPAGO_RAN", file))
}

fn records(context: &Context, part: &str) -> Result<PathBuf> {
    let folder = context.project.target("engines");
    fs::create_dir_all(&folder)?;
    Ok(folder.join(format!("{part}.jsonl")))
}

/// Writes the table from the results that the parts recorded.
pub(super) fn table(context: &Context) -> Result<()> {
    let project = context.project;
    for part in ["wasm-Chromium", "wasm-Firefox", "pkg-tests", "demo"] {
        let file = records(context, part)?;
        let missing = || format!("{part} has recorded nothing: run all parts");
        fs::metadata(file).with_context(missing)?;
    }
    let (script, folder) = (
        project.pkg_tests().join("engines.mjs"),
        project.target("engines"),
    );
    Ok(cmd!(project.sh, "node {script} {folder}").run()?)
}

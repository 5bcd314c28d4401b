//! `cargo xtask bench`: the benchmarks, with what they need in place.

use crate::project::Project;
use anyhow::Result;
use clap::Args;
use xshell::cmd;

#[derive(Args)]
pub(crate) struct Options {
    /// Passed on to `cargo bench`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let arguments = &options.arguments;
    Ok(cmd!(project.sh, "cargo bench --workspace {arguments...}").run()?)
}

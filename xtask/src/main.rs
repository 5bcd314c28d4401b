//! The project's chores: `cargo xtask setup | package | demo | docs | test | bench`.
//!
//! The files:
//!
//! - `docs/` copies the pages with links that fit the site and runs `mdBook`, rustdoc and `TypeDoc`, whose settings are
//!   in `docs/book.toml` and `docs/site/`; `site.rs` puts them beside the pages of `www/`,
//!   and `typescript.rs` the compiler that these load.
//! - `wasm/` builds the WebAssembly modules and their scripts, `package/` makes the npm package of them.
//! - `performance.rs` writes the pages of `docs/performance`.

mod bench;
mod demo;
mod docs;
mod files;
mod package;
mod performance;
mod progress;
mod project;
mod serve;
mod setup;
mod site;
mod test;
mod typescript;
mod wasm;

use anyhow::Result;
use clap::{Parser, Subcommand};
use project::Project;
use setup::Scope;
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Set up, package, show, test and measure relampago"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what packaging, documentation and tests need and this machine lacks
    Setup,
    /// Build the npm package: target/npm/relampago-VERSION.tgz
    Package,
    /// Serve the site's pages, or check them
    Demo(demo::Options),
    /// Build the site with its documentation: target/site/index.html
    Docs,
    /// Run everything CI runs
    Test(test::Options),
    /// Measure beside the peers
    Bench(bench::Options),
}

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // The whole chain of causes, and no backtrace: these are failures of commands.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<()> {
    let project = Project::open()?;
    match command {
        Command::Setup => setup::ensure(&project, Scope::Everything).map(drop),
        Command::Package => {
            let tools = setup::ensure(&project, Scope::Package)?;
            let package = package::run(&project, &tools)?;
            println!("{}", package.tarball.display());
            Ok(())
        }
        Command::Demo(options) => demo::run(&project, options),
        Command::Docs => docs::run(&project),
        Command::Test(options) => test::run(&project, options),
        Command::Bench(options) => bench::run(&project, options),
    }
}

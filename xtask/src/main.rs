//! The project's chores: `cargo xtask setup | package | demo | test | bench`.

mod progress;
mod project;
mod setup;

use anyhow::Result;
use clap::{Parser, Subcommand};
use project::Project;

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
    /// Install whatever the other commands need and this machine lacks
    Setup,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let project = Project::open()?;
    match cli.command {
        Command::Setup => setup::ensure(&project, setup::Scope::Everything).map(drop),
    }
}

//! `cargo xtask package`: the crate becomes `target/npm/relampago-VERSION.tgz`.

mod assemble;
mod entry;
mod exports;
mod glue;
mod names;
mod offsets;
mod size;
mod stamp;
mod variant;

use crate::project::Project;
use crate::setup::Tools;
use anyhow::Result;
use entry::{ENTRIES, Entry};
use std::path::{Path, PathBuf};
use std::thread;
use variant::Built;
pub(crate) use variant::Variant;

/// The installable package, as a folder and as npm's tarball.
pub(crate) struct Package {
    pub(crate) folder: PathBuf,
    pub(crate) tarball: PathBuf,
}

impl Package {
    pub(crate) fn locate(project: &Project) -> Result<Self> {
        let version = project.locked_version("relampago")?;
        Ok(Self {
            folder: project.target("npm/relampago"),
            tarball: project.target(format!("npm/relampago-{version}.tgz")),
        })
    }
}

pub(crate) fn run(project: &Project, tools: &Tools) -> Result<Package> {
    let package = Package::locate(project)?;
    // A failure from here on must not leave an older tarball to be tested in its place.
    project.sh.remove_path(&package.tarball)?;
    project.sh.remove_path(&package.folder)?;
    build(project, tools, &ENTRIES, &package.folder)?;
    assemble::finish(project, &package)?;
    for entry in &ENTRIES {
        size::check(&package, entry)?;
    }
    Ok(package)
}

/// Builds what a page loads, without PTX and the tarball, in a folder of its own; returns the folder.
pub(crate) fn for_page(project: &Project, tools: &Tools) -> Result<PathBuf> {
    let folder = project.target("npm/page");
    project.sh.remove_path(&folder)?;
    build(project, tools, &ENTRIES[..2], &folder)?;
    Ok(folder)
}

/// Builds the modules and assembles the entries. The first entry's modules are built beside those of the others:
/// the optimiser works on a whole module with one thread.
fn build(project: &Project, tools: &Tools, entries: &[Entry], folder: &Path) -> Result<()> {
    let sources = stamp::sources(project, tools)?;
    let (first, others) = entries.split_at(1);
    let lanes = [("first", first), ("others", others)];
    let built = thread::scope(|scope| {
        let lanes = lanes.map(|lane| scope.spawn(move || build_lane(tools, lane, sources)));
        lanes.map(|lane| lane.join().expect("a lane returns its errors"))
    });
    let built = built.into_iter().collect::<Result<Vec<_>>>()?.concat();
    for (entry, modules) in entries.iter().zip(&built) {
        assemble::assemble(project, tools, folder, entry, modules)?;
    }
    Ok(())
}

/// Builds the modules of entries, with a target folder of its own: cargo locks it.
fn build_lane(
    tools: &Tools,
    (name, entries): (&str, &[Entry]),
    sources: u64,
) -> Result<Vec<Vec<Built>>> {
    // A shell belongs to one thread.
    let project = Project::open()?;
    let target = project.target(format!("npm/cargo-{name}"));
    let _target = project.sh.push_env("CARGO_TARGET_DIR", target);
    let modules = entries.iter().map(|entry| {
        let variants = entry.variants.iter();
        let built = variants.map(|variant| variant.build(entry, &project, tools, sources));
        built.collect()
    });
    modules.collect()
}

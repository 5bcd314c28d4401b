//! `cargo xtask package`: the crate becomes `target/npm/relampago-VERSION.tgz`.

mod assemble;
mod entry;
mod scripts;
mod size;

use crate::files;
use crate::project::Project;
use crate::setup::Tools;
use crate::wasm::{self, Built, Module};
use anyhow::{Context, Result};
use entry::{ENTRIES, Entry};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};

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

/// Waits until no other process packages in this checkout, and keeps others from it while the file is open.
fn lock(project: &Project) -> Result<File> {
    files::lock(&project.target("npm"))
}

pub(crate) fn run(project: &Project, tools: &Tools) -> Result<Package> {
    let _lock = lock(project)?;
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

/// Builds the files that the site's pages load, without the tarball, in a separate folder. Returns the folder.
pub(crate) fn for_page(project: &Project, tools: &Tools) -> Result<PathBuf> {
    let _lock = lock(project)?;
    let folder = project.target("npm/page");
    project.sh.remove_path(&folder)?;
    build(project, tools, &ENTRIES, &folder)?;
    Ok(folder)
}

/// Builds one entry of the page without threads and for one instruction set, which takes a sixth of the time, for the
/// page to start with; returns the folder. Its modules stand for the faster ones as well.
pub(crate) fn for_first_page(project: &Project, tools: &Tools, name: &str) -> Result<PathBuf> {
    let _lock = lock(project)?;
    let folder = project.target("npm/first-page");
    project.sh.remove_path(&folder)?;
    let entry = ENTRIES.iter().find(|entry| entry.name == name);
    let entry = entry.context("the page has no such entry")?;
    let sources = wasm::sources(project, tools)?;
    let build = |module: &'static Module| {
        let built = module.variants[0].build((entry.name, module), project, tools, sources)?;
        Ok((module, vec![built]))
    };
    let modules = entry.modules.iter();
    let built = modules.filter(|module| !module.has_threads()).map(build);
    let built = built.collect::<Result<Vec<_>>>()?;
    assemble::assemble(project, tools, &folder, entry, &built)?;
    for (module, built) in &built {
        for faster in &module.variants[1..] {
            let mut faster_module = built[0].clone();
            faster_module.name = faster.name;
            assemble::copy_module(project, &folder, entry, &faster_module)?;
        }
    }
    Ok(folder)
}

/// Builds the modules of all entries side by side, since linking and optimising a module takes one thread, and
/// assembles the entries.
fn build(project: &Project, tools: &Tools, entries: &[Entry], folder: &Path) -> Result<()> {
    let sources = wasm::sources(project, tools)?;
    let built = thread::scope(|scope| {
        let start = |entry| scope.spawn(move || build_modules(tools, entry, sources));
        let threads: Vec<_> = entries.iter().map(start).collect();
        let join = |thread: ScopedJoinHandle<'_, _>| thread.join().expect("errors are returned");
        threads.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    for (entry, built) in entries.iter().zip(&built) {
        assemble::assemble(project, tools, folder, entry, built)?;
    }
    Ok(())
}

/// Builds an entry's modules, each in its variants.
fn build_modules(
    tools: &Tools,
    entry: &Entry,
    sources: u64,
) -> Result<Vec<(&'static Module, Vec<Built>)>> {
    // A shell belongs to one thread.
    let project = Project::open()?;
    let modules = entry.modules.iter().map(|module| {
        let variants = module.variants.iter();
        let built =
            variants.map(|variant| variant.build((entry.name, module), &project, tools, sources));
        Ok((module, built.collect::<Result<_>>()?))
    });
    modules.collect()
}

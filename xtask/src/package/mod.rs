//! `cargo xtask package`: the crate becomes `target/npm/relampago-VERSION.tgz`.

mod assemble;
mod entry;
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

fn build(project: &Project, tools: &Tools, entries: &[Entry], folder: &Path) -> Result<()> {
    let sources = stamp::sources(project, tools)?;
    for entry in entries {
        let variants = entry.variants.iter();
        let built = variants.map(|variant| variant.build(entry, project, tools, sources));
        let built = built.collect::<Result<Vec<_>>>()?;
        assemble::assemble(project, tools, folder, entry, &built)?;
    }
    Ok(())
}

//! Puts the package together: scripts, the glue, and a module for each instruction set.

use super::Package;
use super::entry::Entry;
use super::scripts::Scripts;
use crate::project::Project;
use crate::setup::{Tools, npm};
use crate::wasm::{Built, GLUE, Module, require_same_glue};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use xshell::cmd;

const OF_THE_PROJECT: &[&str] = &[
    "README.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "xtask/src/package/package.json",
];

/// Puts an entry point together of the modules that were built, in its folder of the package. Scripts for threads are
/// left out where no module has threads.
pub(super) fn assemble(
    project: &Project,
    tools: &Tools,
    package: &Path,
    entry: &Entry,
    built: &[(&Module, Vec<Built>)],
) -> Result<()> {
    let folder = package.join(entry.folder);
    fs::create_dir_all(&folder)?;
    let scripts = Scripts::copy(project)?;
    for (module, built) in built {
        require_same_glue(built)?;
        scripts.add_module(module, &built[0].folder)?;
        // Modules with one script have the same types.
        let types = folder.join(format!("{}.d.ts", module.script));
        if !types.is_file() {
            project.sh.copy_file(built[0].folder.join(GLUE[1]), types)?;
        }
    }
    if entry.op_table {
        scripts.add_tables(project, &folder)?;
    }
    let has_threads = built.iter().any(|(module, _)| module.has_threads());
    let bundles = entry.bundles.iter();
    let bundles = bundles.filter(|bundle| has_threads || !bundle.has_threads());
    scripts.bundle(project, tools, entry, bundles, &folder)?;
    scripts.copy_scripts(entry, &folder)?;
    scripts.copy_types(entry, &folder)?;
    for module in built.iter().flat_map(|(_, built)| built) {
        copy_module(project, package, entry, module)?;
    }
    Ok(())
}

/// Copies a module into its entry point under its variant's name.
pub(super) fn copy_module(
    project: &Project,
    package: &Path,
    entry: &Entry,
    built: &Built,
) -> Result<()> {
    let name = format!("relampago_{}.wasm", built.name);
    let to = package.join(entry.folder).join(name);
    Ok(project.sh.copy_file(&built.module, to)?)
}

/// Adds the files that stand once in the package, and writes the tarball.
pub(super) fn finish(project: &Project, package: &Package) -> Result<()> {
    for file in OF_THE_PROJECT {
        let file = project.root.join(file);
        project.sh.copy_file(file, &package.folder)?;
    }
    pack(project, package)
}

/// Writes the version of Cargo.toml into package.json, and the tarball.
fn pack(project: &Project, package: &Package) -> Result<()> {
    let sh = &project.sh;
    let destination = package
        .tarball
        .parent()
        .context("the tarball lies in a folder")?;
    let version = project.locked_version("relampago")?;
    let _inside = sh.push_dir(&package.folder);
    let npm = npm::script("npm");
    cmd!(sh, "{npm} pkg set version={version}").quiet().run()?;
    cmd!(sh, "{npm} pack --silent --pack-destination {destination}")
        .quiet()
        .ignore_stdout()
        .run()?;
    let tarball = &package.tarball;
    ensure!(tarball.is_file(), "npm pack left no {}", tarball.display());
    Ok(())
}

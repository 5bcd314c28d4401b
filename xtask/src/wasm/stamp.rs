//! Stamps: record the inputs of a file, so that it is not built again.

use crate::files;
use crate::project::Project;
use crate::setup::Tools;
use anyhow::{Context, Result};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Runs `make` unless `output` is there and was made from the same `inputs`.
pub(super) fn unless_made(
    output: &Path,
    inputs: &impl Hash,
    make: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mut hasher = DefaultHasher::new();
    inputs.hash(&mut hasher);
    let (hash, stamp) = (hasher.finish().to_string(), output.with_extension("stamp"));
    if output.is_file() && fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == hash) {
        return Ok(());
    }
    // What an interrupted build leaves must not pass for the finished one of earlier inputs.
    if stamp.exists() {
        fs::remove_file(&stamp).context("cannot remove a stamp")?;
    }
    make()?;
    fs::write(stamp, hash).context("cannot write a stamp")
}

/// Returns the hash of everything that a WebAssembly build depends on.
///
/// Cargo knows it too, but rebuilds whenever the variable that selects a variant changes,
/// which between two variants is always.
pub(crate) fn sources(project: &Project, tools: &Tools) -> Result<u64> {
    let mut paths = Vec::new();
    for folder in ["src", "crates", "shaders"] {
        paths.extend(files::list(&project.root.join(folder))?);
    }
    for file in ["build.rs", "Cargo.toml", "Cargo.lock", ".cargo/config.toml"] {
        paths.push(project.root.join(file));
    }
    // Scripts of the package and their types go around the modules, not into them.
    let is_script = |path: &PathBuf| path.extension().is_some_and(|it| it == "js" || it == "ts");
    paths.retain(|path| !is_script(path));
    paths.sort();
    let mut hasher = DefaultHasher::new();
    tools.compiler_version(project)?.hash(&mut hasher);
    for path in paths {
        let content = fs::read(&path).with_context(|| path.display().to_string())?;
        (path.strip_prefix(&project.root)?, content).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

//! Puts the package together: scripts, the glue, and a module for each instruction set.

use super::Package;
use super::entry::{Entry, Script};
use crate::files::{self, copy_tree};
use crate::project::Project;
use crate::setup::Tools;
use crate::wasm::{Built, GLUE, require_same_glue};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use xshell::cmd;

const OF_THE_PROJECT: &[&str] = &[
    "README.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "src/js/package.json",
];

/// Puts an entry point together, in its folder of the package.
pub(super) fn assemble(
    project: &Project,
    tools: &Tools,
    package: &Path,
    entry: &Entry,
    built: &[Vec<Built>],
) -> Result<()> {
    let folder = package.join(entry.folder);
    for sources in entry.sources {
        copy_tree(&project.root.join(sources), &folder)?;
    }
    for (module, built) in entry.modules.iter().zip(built) {
        require_same_glue(built)?;
        copy_glue(project, &built[0].folder, &folder, module.script)?;
    }
    if entry.op_table {
        write_tables(project, &folder)?;
    }
    bundle(project, tools, entry.scripts, &folder)?;
    for module in built.iter().flatten() {
        copy_module(project, package, entry, module)?;
    }
    Ok(())
}

/// Copies the script that loads a module, and its types.
fn copy_glue(project: &Project, from: &Path, folder: &Path, script: &str) -> Result<()> {
    for (file, extension) in GLUE.into_iter().zip(["js", "d.ts"]) {
        let to = folder.join(format!("{script}.{extension}"));
        project.sh.copy_file(from.join(file), to)?;
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

/// Writes the methods that come from the op table, their types, and the shaders' text.
fn write_tables(project: &Project, folder: &Path) -> Result<()> {
    const TABLES: [(&str, &str); 3] = [
        ("js", "ops.js"),
        ("d.ts", "ops.d.ts"),
        ("shaders", "shaders.js"),
    ];
    for (format, file) in TABLES {
        let example = "run --quiet --no-default-features --example op_table".split(' ');
        let table = cmd!(project.sh, "cargo").args(example).args(["--", format]);
        let table = table.quiet().read()? + "\n";
        fs::write(folder.join(file), table)?;
    }
    Ok(())
}

/// Scripts that stay as they are.
const AS_THEY_ARE: [&str; 4] = ["node.js", "shaders.js", "static.js", "full/index.js"];

/// The scripts of the package; everything else goes into them. A browser would ask for each only
/// after it has read the one before: three instead of one cost a third of the start-up.
fn bundle(project: &Project, tools: &Tools, scripts: &[Script], folder: &Path) -> Result<()> {
    let sh = &project.sh;
    let esbuild = tools.npm_bin.join("esbuild");
    let mut keep: Vec<_> = AS_THEY_ARE.iter().map(|name| folder.join(name)).collect();
    for Script { name, external } in scripts {
        let script = folder.join(name);
        let external = external
            .iter()
            .map(|(name, _)| format!("--external:{name}"));
        // Node prints the line of an error that nobody catches, so lines are short.
        let bundle = cmd!(
            sh,
            "{esbuild} {script} --bundle --minify --line-limit=1000 --format=esm --target=es2022 --outfile={script}
             --allow-overwrite --log-level=warning"
        );
        bundle.args(external).quiet().run()?;
        keep.push(script);
    }
    for Script { name, external } in scripts {
        let script = folder.join(name);
        let mut text = fs::read_to_string(&script)?;
        for (from, to) in *external {
            text = text.replace(from, to);
        }
        fs::write(script, text)?;
    }
    for file in files::list(folder)? {
        if file.extension().is_some_and(|extension| extension == "js") && !keep.contains(&file) {
            sh.remove_path(file)?;
        }
    }
    Ok(())
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
    cmd!(sh, "npm pkg set version={version}").quiet().run()?;
    cmd!(sh, "npm pack --silent --pack-destination {destination}")
        .quiet()
        .ignore_stdout()
        .run()?;
    let tarball = &package.tarball;
    ensure!(tarball.is_file(), "npm pack left no {}", tarball.display());
    Ok(())
}

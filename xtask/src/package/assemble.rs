//! Puts the package together: our own files, the glue, one module per instruction set.

use super::Package;
use super::variant::{Built, GLUE, require_same_glue};
use crate::files::copy_tree;
use crate::project::Project;
use crate::setup::Tools;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use xshell::cmd;

const OF_THE_PROJECT: &[&str] = &["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

pub(super) fn assemble(
    project: &Project,
    tools: &Tools,
    package: &Package,
    built: &[Built],
) -> Result<()> {
    require_same_glue(built)?;
    let (sh, folder) = (&project.sh, &package.folder);
    sh.remove_path(folder)?;
    copy_tree(&project.root.join("src/js/npm"), folder)?;
    for file in OF_THE_PROJECT {
        sh.copy_file(project.root.join(file), folder)?;
    }
    let glue = &built[0].folder;
    for file in GLUE {
        sh.copy_file(glue.join(file), folder)?;
    }
    write_op_table(project, folder)?;
    if sh.path_exists(glue.join("snippets")) {
        copy_tree(&glue.join("snippets"), &folder.join("snippets"))?;
    }
    bundle(project, tools, folder)?;
    for variant in built {
        sh.copy_file(
            &variant.module,
            folder.join(format!("relampago_{}.wasm", variant.name)),
        )?;
    }
    set_version(folder, &project.locked_version("relampago")?)?;
    pack(project, package)
}

/// The methods that come from the op table, and their types.
fn write_op_table(project: &Project, folder: &Path) -> Result<()> {
    for format in ["js", "d.ts"] {
        let example = "run --quiet --no-default-features --example op_table".split(' ');
        let table = cmd!(project.sh, "cargo")
            .args(example)
            .arg("--")
            .arg(format);
        let table = table.quiet().read()? + "\n";
        fs::write(folder.join(format!("ops.{format}")), table)?;
    }
    Ok(())
}

/// One script instead of three: a browser would ask for each only after it has read the one
/// before, which cost a third of the start-up. Names are kept, for the sake of stack traces.
fn bundle(project: &Project, tools: &Tools, folder: &Path) -> Result<()> {
    let (sh, esbuild) = (&project.sh, tools.npm_bin.join("esbuild"));
    let index = folder.join("index.js");
    let bundle = cmd!(
        sh,
        "{esbuild} {index} --bundle --format=esm --target=es2022 --minify-whitespace
         --minify-syntax --outfile={index} --allow-overwrite --log-level=warning"
    );
    bundle.quiet().run()?;
    for bundled in ["relampago.js", "error.js", "ops.js"] {
        sh.remove_path(folder.join(bundled))?;
    }
    Ok(sh.remove_path(folder.join("snippets"))?)
}

/// Cargo.toml is where the version is written; package.json has a placeholder for it. Replaced
/// as text, because the order of its `exports` matters and a JSON library may not keep it.
fn set_version(folder: &Path, version: &str) -> Result<()> {
    const PLACEHOLDER: &str = "\"version\": \"0.0.0\"";
    let path = folder.join("package.json");
    let manifest = fs::read_to_string(&path)?;
    ensure!(
        manifest.contains(PLACEHOLDER),
        "package.json does not say {PLACEHOLDER}"
    );
    let versioned = manifest.replace(PLACEHOLDER, &format!("\"version\": \"{version}\""));
    Ok(fs::write(path, versioned)?)
}

fn pack(project: &Project, package: &Package) -> Result<()> {
    let sh = &project.sh;
    let destination = package
        .tarball
        .parent()
        .context("the tarball lies in a folder")?;
    let _inside = sh.push_dir(&package.folder);
    cmd!(sh, "npm pack --silent --pack-destination {destination}")
        .quiet()
        .ignore_stdout()
        .run()?;
    let tarball = &package.tarball;
    ensure!(tarball.is_file(), "npm pack left no {}", tarball.display());
    Ok(())
}

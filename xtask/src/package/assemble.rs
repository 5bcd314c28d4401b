//! Puts the package together: our own files, the glue, one module per edition and instruction set.

use super::Package;
use super::edition::Edition;
use super::variant::{Built, GLUE, require_same_glue};
use crate::files::{self, copy_tree};
use crate::project::Project;
use crate::setup::Tools;
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

/// An edition, in its folder of the package.
pub(super) fn assemble(
    project: &Project,
    tools: &Tools,
    package: &Path,
    edition: &Edition,
    built: &[Built],
) -> Result<()> {
    require_same_glue(built)?;
    let (sh, folder) = (&project.sh, package.join(edition.folder));
    copy_tree(&project.root.join("src/js/npm"), &folder)?;
    if let Some(overlay) = edition.overlay {
        copy_tree(&project.root.join(overlay), &folder)?;
    }
    let glue = &built[0].folder;
    for file in GLUE {
        sh.copy_file(glue.join(file), &folder)?;
    }
    write_tables(project, edition, &folder)?;
    if sh.path_exists(glue.join("snippets")) {
        copy_tree(&glue.join("snippets"), &folder.join("snippets"))?;
    }
    bundle(project, tools, &folder)?;
    for variant in built {
        let name = format!("relampago_{}.wasm", variant.name);
        sh.copy_file(&variant.module, folder.join(name))?;
    }
    Ok(())
}

/// What all editions have in common, and the tarball.
pub(super) fn finish(project: &Project, package: &Package) -> Result<()> {
    for file in OF_THE_PROJECT {
        let file = project.root.join(file);
        project.sh.copy_file(file, &package.folder)?;
    }
    set_version(&package.folder, &project.locked_version("relampago")?)?;
    pack(project, package)
}

/// The methods that come from the op table, their types, and what shaders are made of.
fn write_tables(project: &Project, edition: &Edition, folder: &Path) -> Result<()> {
    const TABLES: [(&str, &str); 3] = [
        ("js", "ops.js"),
        ("d.ts", "ops.d.ts"),
        ("shaders", "shaders.js"),
    ];
    for (format, file) in TABLES {
        let example = "run --quiet --no-default-features --example op_table".split(' ');
        let table = cmd!(project.sh, "cargo")
            .args(example)
            .arg("--")
            .args([format, edition.name]);
        let table = table.quiet().read()? + "\n";
        fs::write(folder.join(file), table)?;
    }
    Ok(())
}

/// The scripts of the package; everything else goes into them. A browser would ask for each only
/// after it has read the one before: three instead of one cost a third of the start-up.
///
/// A worker's has the core once more. If it shared that of `index.js`, which may start workers,
/// webpack would warn everyone of a script that starts itself.
fn bundle(project: &Project, tools: &Tools, folder: &Path) -> Result<()> {
    const SCRIPTS: &[(&str, &[&str])] = &[
        ("workers/relampago_worker.js", &["--external:./shaders.js"]),
        (
            "workers/create.js",
            &["--external:../core.js", "--external:../extras.js"],
        ),
        (
            "index.js",
            &["--external:./workers/create.js", "--external:./shaders.js"],
        ),
    ];
    // By then `index.js` has the core and the extras in it, and a worker's core lies beside that.
    const MOVED: [(&str, &str, &str); 3] = [
        ("workers/create.js", "../core.js", "../index.js"),
        ("workers/create.js", "../extras.js", "../index.js"),
        (
            "workers/relampago_worker.js",
            "./shaders.js",
            "../shaders.js",
        ),
    ];
    let (sh, esbuild) = (&project.sh, tools.npm_bin.join("esbuild"));
    let mut keep = vec![folder.join("node.js"), folder.join("shaders.js")];
    for (name, options) in SCRIPTS {
        let script = folder.join(name);
        let bundle = cmd!(
            sh,
            "{esbuild} {script} --bundle --minify --format=esm --target=es2022 --outfile={script}
             --allow-overwrite --log-level=warning"
        );
        bundle.args(*options).quiet().run()?;
        keep.push(script);
    }
    for (script, from, to) in MOVED {
        let script = folder.join(script);
        let text = fs::read_to_string(&script)?.replace(from, to);
        fs::write(script, text)?;
    }
    for file in files::list(folder)? {
        if file.extension().is_some_and(|extension| extension == "js") && !keep.contains(&file) {
            sh.remove_path(file)?;
        }
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

//! `cargo xtask docs`: the documentation in `target/docs`, and the whole site with it in `target/site`. mdBook makes
//! the guides, rustdoc the folder `rust`, and `TypeDoc` the folder `js`.

mod links;
mod pages;

use crate::files::copy_tree;
use crate::package::{self, Package};
use crate::project::{Project, find_program};
use crate::setup::{self, Scope, Tools};
use crate::site;
use anyhow::{Context, Result, ensure};
pub(crate) use links::REPOSITORY;
use std::path::{Path, PathBuf};
use xshell::cmd;

pub(crate) fn run(project: &Project) -> Result<()> {
    let tools = setup::ensure(project, Scope::Docs)?;
    let package = package::run(project, &tools)?;
    let site = build(project, &tools, &package)?;
    site::add_cases(project, &site)?;
    println!("{}", site.join("index.html").display());
    Ok(())
}

/// Builds the documentation and the site with the files of `package`, and returns the site's folder.
pub(crate) fn build(project: &Project, tools: &Tools, package: &Package) -> Result<PathBuf> {
    let types = package.folder.join("index.d.ts");
    ensure!(
        types.is_file(),
        "there is no {}: run `cargo xtask package`",
        types.display()
    );
    let documentation = folder(project);
    project.sh.remove_path(&documentation)?;
    add_book(project, tools, &documentation)?;
    rustdoc(project, &documentation)?;
    typedoc(project, &documentation)?;
    site::assemble(project, tools, &package.folder)
}

/// Fails if a link within the site leads nowhere, or an anchor is missing. Links to other sites are not followed.
/// rustdoc checks the links of its own pages when it writes them.
pub(crate) fn check_links(project: &Project, site: &Path) -> Result<()> {
    let (sh, node) = (&project.sh, node()?);
    let linkinator = tool(project, "linkinator/build/src/cli.js");
    let skip = ["^https?://(?!localhost)", "/rust/.*/"];
    let skip = skip.iter().flat_map(|pattern| ["--skip", pattern]);
    let _inside = sh.push_dir(site);
    Ok(
        cmd!(sh, "{node} {linkinator} . --recurse --check-fragments")
            .args(skip)
            .run()?,
    )
}

/// The folder of the documentation.
pub(crate) fn folder(project: &Project) -> PathBuf {
    project.target("docs")
}

/// Writes the guides and the other pages of the book into `folder`.
pub(crate) fn add_book(project: &Project, tools: &Tools, folder: &Path) -> Result<()> {
    let sh = &project.sh;
    let sources = project.target("book");
    sh.remove_path(&sources)?;
    pages::write(&project.root, &sources)?;
    let mdbook = &tools.mdbook;
    Ok(cmd!(sh, "{mdbook} build --dest-dir {folder} {sources}").run()?)
}

fn rustdoc(project: &Project, documentation: &Path) -> Result<()> {
    let sh = &project.sh;
    let written = project.target("doc");
    // Other packages documented there would appear in the search.
    sh.remove_path(&written)?;
    let target = project.target("");
    cmd!(
        sh,
        "cargo doc --package relampago --no-deps --all-features --target-dir {target}"
    )
    .env("RUSTDOCFLAGS", "-D warnings")
    .run()?;
    copy_tree(&written, &documentation.join("rust"))
}

fn typedoc(project: &Project, documentation: &Path) -> Result<()> {
    let (sh, node) = (&project.sh, node()?);
    let (typedoc, out) = (
        tool(project, "typedoc/bin/typedoc"),
        documentation.join("js"),
    );
    let _inside = sh.push_dir(project.root.join("docs/site"));
    Ok(cmd!(sh, "{node} {typedoc} --out {out}").run()?)
}

fn node() -> Result<PathBuf> {
    find_program(&["node"]).context("there is no node on PATH")
}

/// A script of the npm packages in `docs/site`.
fn tool(project: &Project, script: &str) -> PathBuf {
    project.root.join("docs/site/node_modules").join(script)
}

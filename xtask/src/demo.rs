//! `cargo xtask demo`: the page in `www/` with the package beside it.

use crate::docs;
use crate::files::copy_tree;
use crate::package::{self, Package};
use crate::project::{Project, find_program};
use crate::serve;
use crate::setup::{self, Scope, Tools};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use xshell::cmd;

#[derive(Args)]
pub(crate) struct Options {
    /// Compare every filter with its oracle in a headless browser, print one line of JSON
    #[arg(long)]
    check: bool,
    /// Port to serve on; 0 takes a free one
    #[arg(long, default_value_t = 8080, conflicts_with = "check")]
    port: u16,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let scope = if options.check {
        Scope::Browsers
    } else {
        Scope::Package
    };
    let tools = setup::ensure(project, scope)?;
    if options.check {
        let package = package::run(project, &tools)?;
        return check(project, &tools, &package);
    }
    let package = package::for_page(project, &tools)?;
    let url = serve::start(&assemble(project, &package)?, options.port)?;
    println!("{url}");
    loop {
        thread::park();
    }
}

/// The page proves itself in a headless browser.
pub(crate) fn check(project: &Project, tools: &Tools, package: &Package) -> Result<()> {
    let sh = &project.sh;
    let script = project.pkg_tests().join("demo-check.mjs");
    ensure!(script.is_file(), "there is no {}", script.display());
    let node = find_program(&["node"]).context("there is no node on PATH")?;
    let url = serve::start(&assemble(project, &package.folder)?, 0)?;
    tools
        .for_browser(cmd!(sh, "{node} {script} {url}"))?
        .quiet()
        .run()?;
    Ok(())
}

fn assemble(project: &Project, package: &Path) -> Result<PathBuf> {
    let folder = project.target("demo");
    project.sh.remove_path(&folder)?;
    copy_tree(&project.root.join("www"), &folder)?;
    copy_tree(package, &folder.join("relampago"))?;
    add_documentation(project, &folder)?;
    Ok(folder)
}

/// Copies the site that `cargo xtask docs` built; without one, the page links to the repository's pages.
fn add_documentation(project: &Project, folder: &Path) -> Result<()> {
    let site = docs::folder(project);
    if site.join("index.html").is_file() {
        return copy_tree(&site, &folder.join("docs"));
    }
    let page = folder.join("index.html");
    let text = fs::read_to_string(&page)?;
    let address = format!("{}/blob/main/docs/index.md", docs::REPOSITORY);
    Ok(fs::write(page, text.replace("docs/index.html", &address))?)
}

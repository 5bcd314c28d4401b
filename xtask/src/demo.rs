//! `cargo xtask demo`: serves the site.

use crate::docs;
use crate::files::copy_tree;
use crate::package::{self, Package};
use crate::progress::Progress;
use crate::project::{Project, find_program};
use crate::serve;
use crate::setup::{self, Model, Scope, Tools};
use crate::site;
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use std::fs;
use std::path::Path;
use std::thread;
use xshell::cmd;

#[derive(Args)]
pub(crate) struct Options {
    /// Check the pages in every browser: filters, operations, samples; print one line of JSON
    #[arg(long)]
    check: bool,
    /// Port to serve on; 0 takes a free one
    #[arg(long, default_value_t = 8080, conflicts_with = "check")]
    port: u16,
    /// Fetch a language model unless it is there, and open the page on it
    #[arg(long, conflicts_with = "check")]
    model: Option<ModelName>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModelName {
    /// 135 million parameters, 98 MB; answers
    Smollm2,
    /// 270 million parameters, 253 MB; continues texts
    Gemma3,
}

impl ModelName {
    fn model(self, project: &Project) -> Model<'_> {
        match self {
            Self::Smollm2 => Model::smollm2(project),
            Self::Gemma3 => Model::gemma3(project),
        }
    }
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
    // Before the build, which takes minutes.
    let listener = serve::listen(options.port)?;
    let model = options.model.map(|name| name.model(project));
    let (entry, page) = match &model {
        Some(model) => ("llm", format!("talk.html?model={}", served(model))),
        None => ("relampago", String::new()),
    };
    let first = package::for_first_page(project, &tools, entry)?;
    let folder = site::assemble(project, &tools, &first)?;
    if let Some(model) = &model {
        add_model(project, model, &folder)?;
    }
    let url = serve::start(listener, &folder)?;
    println!("{url}{page}");
    if let Err(error) = complete(project, &tools, &folder) {
        eprintln!("the page stays as it is: {error:#}");
    }
    loop {
        thread::park();
    }
}

/// Builds the parts that the page does not need at first, while it is served: faster modules, and the entry of its
/// other view.
fn complete(project: &Project, tools: &Tools, folder: &Path) -> Result<()> {
    let progress = Progress::start("the rest of the page");
    site::add_cases(project, folder)?;
    let built = folder.join("relampago.new");
    copy_tree(&package::for_page(project, tools)?, &built)?;
    let served = folder.join("relampago");
    // Renamed, so that no visitor meets half of it.
    fs::rename(&served, folder.join("relampago.old"))?;
    fs::rename(&built, &served)?;
    progress.finish("ok");
    Ok(())
}

/// The pages prove themselves in every browser.
pub(crate) fn check(project: &Project, tools: &Tools, package: &Package) -> Result<()> {
    let sh = &project.sh;
    let script = project.pkg_tests().join("demo-check.mjs");
    ensure!(script.is_file(), "there is no {}", script.display());
    let node = find_program(&["node"]).context("there is no node on PATH")?;
    let folder = site::assemble(project, tools, &package.folder)?;
    site::add_cases(project, &folder)?;
    docs::add_book(project, tools, &folder.join("docs"))?;
    let url = serve::start(serve::listen(0)?, &folder)?;
    tools
        .for_browser(cmd!(sh, "{node} {script} {url}"))?
        .quiet()
        .run()?;
    Ok(())
}

/// The model's place in the served folder.
fn served(model: &Model) -> String {
    format!("models/{}", model.file)
}

/// Puts the model into the served folder.
fn add_model(project: &Project, model: &Model, folder: &Path) -> Result<()> {
    let (from, to) = (model.path(), folder.join(served(model)));
    setup::ensure_model(project, model)?;
    fs::create_dir_all(to.with_file_name(""))?;
    // A link takes no room; other file systems get a copy.
    if fs::hard_link(&from, &to).is_err() {
        project.sh.copy_file(from, to)?;
    }
    Ok(())
}

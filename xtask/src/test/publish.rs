//! Tests of the published crate: the packaged crate, its documents and its dependencies.

use super::Context;
use crate::setup::TARGET;
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::Path;
use xshell::cmd;

/// The crate as it would be published: its tests and examples build from what is in the package, and
/// the library also with the oldest direct dependencies that its manifest allows.
pub(super) fn package(context: &Context) -> Result<()> {
    let (sh, project) = (&context.project.sh, context.project);
    for document in ["README.md", "CHANGELOG.md"] {
        links_are_absolute(&project.root.join(document))?;
    }
    // What the packaged crate contains is compiled below, more of it than cargo would.
    let crate_as_it_is = ["-p", "relampago", "--allow-dirty", "--no-verify"];
    cmd!(sh, "cargo publish --dry-run {crate_as_it_is...}").run()?;
    cmd!(sh, "cargo package {crate_as_it_is...}").run()?;
    let version = project.locked_version("relampago")?;
    let archive = project.target(format!("package/relampago-{version}.crate"));
    // Outside the checkout, whose workspace and configuration a stranger does not have.
    let unpacked = sh.create_temp_dir()?;
    let folder = unpacked.path();
    // With the present as their time: cargo would take the same old time for the same files.
    cmd!(sh, "tar -xzmf {archive} --strip-components 1 -C {folder}").run()?;
    // The folder of the other parts, which have checked most dependencies.
    let target = project.target("");
    let _inside = sh.push_dir(folder);
    cmd!(
        sh,
        "cargo check --locked --all-targets --all-features --target-dir {target}"
    )
    .run()?;
    check_with_oldest(context, &target)
}

/// Resolves every direct dependency to its lower bound and compiles the library with these.
fn check_with_oldest(context: &Context, target: &Path) -> Result<()> {
    let sh = &context.project.sh;
    // Resolving so is cargo's own option, though not yet stable.
    cmd!(sh, "cargo update --quiet -Z direct-minimal-versions")
        .env("RUSTC_BOOTSTRAP", "1")
        .run()?;
    let check = cmd!(sh, "cargo check --lib --all-features --target-dir {target}");
    check.run()?;
    let check = cmd!(
        sh,
        "cargo check --lib --all-features --target-dir {target} --target {TARGET}"
    );
    Ok(context.tools.for_wasm(check).run()?)
}

/// Relative links lead nowhere on crates.io and npm, which show the document by itself.
fn links_are_absolute(document: &Path) -> Result<()> {
    let text = fs::read_to_string(document).with_context(|| document.display().to_string())?;
    let links = text.split("](").skip(1);
    let targets = links.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let relative: Vec<&str> = targets
        .filter(|target| !target.starts_with("https://") && !target.starts_with('#'))
        .collect();
    let name = document.display();
    ensure!(
        relative.is_empty(),
        "{name} has relative links: {relative:?}"
    );
    Ok(())
}

/// Licences and sources of everything that is depended on; known faults where a network reaches the
/// list of them.
pub(super) fn deny(context: &Context) -> Result<()> {
    let (sh, deny) = (&context.project.sh, &context.tools.cargo_deny);
    cmd!(sh, "{deny} check bans licenses sources").run()?;
    let list = cmd!(sh, "{deny} fetch db").quiet().ignore_stderr();
    if list.run().is_err() {
        println!("the list of known faults is out of reach: advisories are not checked");
        return Ok(());
    }
    Ok(cmd!(sh, "{deny} check advisories").run()?)
}

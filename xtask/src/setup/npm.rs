//! The bundlers, the browser driver, TypeScript and wasm-opt, as pkg-tests' lock file names them.

use super::Requirement;
use crate::progress::Progress;
use crate::project::Project;
use anyhow::Result;
use std::fs;
use std::path::PathBuf;
use xshell::cmd;

pub(super) struct NpmDependencies<'a> {
    pub(super) project: &'a Project,
}

impl NpmDependencies<'_> {
    fn lock(&self) -> PathBuf {
        self.project.pkg_tests().join("package-lock.json")
    }

    /// A copy of the lock file that the installed modules come from.
    fn stamp(&self) -> PathBuf {
        self.project
            .pkg_tests()
            .join("node_modules/.installed-lock.json")
    }
}

impl Requirement for NpmDependencies<'_> {
    fn name(&self) -> String {
        "npm packages of pkg-tests (bundlers, playwright, binaryen)".to_owned()
    }

    fn is_met(&self) -> bool {
        let installed = fs::read(self.stamp());
        installed.is_ok_and(|stamp| fs::read(self.lock()).is_ok_and(|lock| lock == stamp))
    }

    fn install(&self, progress: &Progress) -> Result<()> {
        let sh = &self.project.sh;
        let _inside = sh.push_dir(self.project.pkg_tests());
        progress.run(cmd!(sh, "npm ci"))?;
        Ok(sh.copy_file(self.lock(), self.stamp())?)
    }

    fn by_hand(&self) -> String {
        "Node 20.19 or later with npm, then `npm ci` in pkg-tests".to_owned()
    }
}

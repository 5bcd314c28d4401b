//! Tools built by `cargo install`, each version in a separate folder.

use super::Requirement;
use crate::progress::Progress;
use crate::project::Project;
use anyhow::Result;
use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;
use xshell::cmd;

const WASM_PACK: &str = "0.15.1";
const GECKODRIVER: &str = "0.37.1";

pub(super) struct CargoTool<'a> {
    project: &'a Project,
    package: &'static str,
    version: String,
    program: &'static str,
    /// Whether to build with the dependencies that the package's own lock file names.
    locked: bool,
    /// Whether it computes, as wasm-bindgen does; others only start programs.
    computes: bool,
}

impl<'a> CargoTool<'a> {
    /// The tool refuses modules made for any other version of the library, hence `version`.
    /// Its lock file names a crate that was withdrawn, hence not `locked`.
    pub(super) fn wasm_bindgen(project: &'a Project, version: &str) -> Self {
        let (package, program) = ("wasm-bindgen-cli", "wasm-bindgen");
        Self {
            project,
            package,
            version: version.to_owned(),
            program,
            locked: false,
            computes: true,
        }
    }

    pub(super) fn wasm_pack(project: &'a Project) -> Self {
        let (package, version) = ("wasm-pack", WASM_PACK.to_owned());
        Self {
            project,
            package,
            version,
            program: package,
            locked: true,
            computes: false,
        }
    }

    /// Firefox's driver.
    pub(super) fn geckodriver(project: &'a Project) -> Self {
        let (package, version) = ("geckodriver", GECKODRIVER.to_owned());
        Self {
            project,
            package,
            version,
            program: package,
            locked: true,
            computes: false,
        }
    }

    fn root(&self) -> PathBuf {
        self.project
            .cache
            .join("tools")
            .join(format!("{}-{}", self.package, self.version))
    }

    pub(super) fn bin(&self) -> PathBuf {
        self.root().join("bin")
    }

    pub(super) fn program(&self) -> PathBuf {
        self.bin().join(format!("{}{EXE_SUFFIX}", self.program))
    }
}

impl Requirement for CargoTool<'_> {
    fn name(&self) -> String {
        format!("{} {}", self.package, self.version)
    }

    fn is_met(&self) -> bool {
        self.program().is_file()
    }

    fn install(&self, progress: &Progress) -> Result<()> {
        let sh = &self.project.sh;
        let (root, package) = (self.root(), format!("{}@{}", self.package, self.version));
        let build = self.project.cache.join("build").join(self.package);
        let locked = self.locked.then_some("--locked");
        let level = if self.computes { "1" } else { "0" };
        // Run from the cache: the checkout's .cargo/config.toml is none of the tool's business.
        let _cache = sh.push_dir(&self.project.cache);
        let install = cmd!(sh, "cargo install {package} {locked...} --root {root}")
            .env("CARGO_TARGET_DIR", &build)
            // These run for seconds; optimising them fully would cost minutes.
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", level)
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
        progress.run(install)?;
        Ok(sh.remove_path(build)?)
    }

    fn by_hand(&self) -> String {
        let (package, version) = (self.package, &self.version);
        format!(
            "`cargo install {package}@{version} --root {}`",
            self.root().display()
        )
    }
}

//! Paths: the checkout, the artefacts, the per-user cache.

use anyhow::{Context, Result, anyhow};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use xshell::{Shell, cmd};

/// The checkout, and a shell that stands in its root.
pub(crate) struct Project {
    pub(crate) sh: Shell,
    pub(crate) root: PathBuf,
    /// Tools live here and not in the checkout, so that a second clone is quick.
    pub(crate) cache: PathBuf,
}

impl Project {
    pub(crate) fn open() -> Result<Self> {
        // Cargo sets it when it runs a program, too, and only that names this checkout for sure:
        // two checkouts that share a target folder share the program.
        let xtask = env::var_os("CARGO_MANIFEST_DIR");
        let xtask = xtask.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&xtask)
            .parent()
            .context("xtask lies in the workspace root")?
            .to_path_buf();
        let sh = Shell::new()?;
        sh.change_dir(&root);
        Ok(Self {
            sh,
            root,
            cache: user_cache()?.join("relampago"),
        })
    }

    /// Artefacts that other tools look for by path; not moved by `CARGO_TARGET_DIR`.
    pub(crate) fn target(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join("target").join(path)
    }

    pub(crate) fn pkg_tests(&self) -> PathBuf {
        self.root.join("pkg-tests")
    }

    /// Returns the output of one of the crate's examples, which needs no features.
    pub(crate) fn example(&self, name: &str, arguments: &[&str]) -> Result<String> {
        let command = cmd!(
            self.sh,
            "cargo run --quiet --no-default-features --example {name} -- {arguments...}"
        );
        Ok(command.quiet().read()?)
    }

    /// The version of `package` that Cargo.lock pins.
    pub(crate) fn locked_version(&self, package: &str) -> Result<String> {
        let lock = fs::read_to_string(self.root.join("Cargo.lock"))?;
        let entry = format!("name = \"{package}\"\nversion = \"");
        let version = lock
            .split_once(&entry)
            .and_then(|(_, rest)| rest.split('"').next());
        version
            .map(str::to_owned)
            .ok_or_else(|| anyhow!("Cargo.lock does not name {package}"))
    }
}

fn user_cache() -> Result<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .or_else(|| absolute("LOCALAPPDATA"))
        .context("neither XDG_CACHE_HOME nor HOME names a directory for the tools")
}

/// The first of `names` that PATH leads to.
pub(crate) fn find_program(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    names.iter().find_map(|name| {
        let file = format!("{name}{}", env::consts::EXE_SUFFIX);
        folders
            .iter()
            .map(|folder| folder.join(&file))
            .find(|program| program.is_file())
    })
}

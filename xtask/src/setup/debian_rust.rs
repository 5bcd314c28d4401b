//! The way to a WebAssembly target where rustup cannot download one: Debian's
//! `rustc-web`, with the standard library built once from `rust-web-src`.
//!
//! The result is a toolchain folder in the cache that `RUSTUP_TOOLCHAIN` can
//! name. Nothing outside the cache is written, apt's packages apart.

use super::apt;
use super::wasm_target::{LIBRARY, TARGET};
use crate::progress::Progress;
use crate::project::Project;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use xshell::{Shell, cmd};

const PACKAGES: &[&str] = &["rustc-web", "cargo-web", "rust-web-src", "rust-web-clippy"];
/// Debian's, not rustup's proxy of the same name that comes first on PATH.
const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";
const HOST: &str = "x86_64-unknown-linux-gnu";

pub(super) struct DebianRust<'a> {
    project: &'a Project,
    toolchain: PathBuf,
}

impl<'a> DebianRust<'a> {
    pub(super) fn new(project: &'a Project) -> Self {
        Self {
            project,
            toolchain: project.cache.join("rust-debian"),
        }
    }

    pub(super) fn toolchain(&self) -> &Path {
        &self.toolchain
    }

    /// Whether the folder was built by the compiler that is installed now: a library of
    /// another version cannot be linked.
    pub(super) fn is_built(&self) -> bool {
        let built_by = fs::read_to_string(self.stamp());
        self.rustlib(LIBRARY).is_dir()
            && built_by.is_ok_and(|version| self.compiler_version().is_ok_and(|now| now == version))
    }

    pub(super) fn install(&self, progress: &Progress) -> Result<()> {
        apt::install(self.project, progress, PACKAGES)?;
        let sh = &self.project.sh;
        sh.remove_path(&self.toolchain)?;
        self.build_std(progress)?;
        self.add_host()?;
        self.add_programs()?;
        // Last: without the stamp, an interrupted run counts for nothing.
        Ok(sh.write_file(self.stamp(), self.compiler_version()?)?)
    }

    fn stamp(&self) -> PathBuf {
        self.toolchain.join("built-by")
    }

    fn compiler_version(&self) -> Result<String> {
        let sh = &self.project.sh;
        Ok(cmd!(sh, "{RUSTC} -vV").quiet().ignore_stderr().read()?)
    }

    fn rustlib(&self, target: &str) -> PathBuf {
        self.toolchain.join("lib/rustlib").join(target)
    }

    /// Builds an empty crate with `-Zbuild-std` and keeps the libraries it needed.
    fn build_std(&self, progress: &Progress) -> Result<()> {
        let sh = &self.project.sh;
        let scratch = sh.create_temp_dir()?;
        sh.write_file(scratch.path().join("src/lib.rs"), "")?;
        sh.write_file(
            scratch.path().join("Cargo.toml"),
            "[package]\nname = \"empty\"\n",
        )?;
        let _inside = sh.push_dir(scratch.path());
        let build = cmd!(
            sh,
            "{CARGO} build --release --target {TARGET} -Zbuild-std=std,panic_abort,test"
        )
        .env("RUSTC", RUSTC)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", scratch.path().join("target"))
        .env_remove("RUSTFLAGS");
        progress.run(build)?;
        let built = scratch
            .path()
            .join("target")
            .join(TARGET)
            .join("release/deps");
        copy_libraries(sh, &built, &self.rustlib(TARGET).join("lib"))
    }

    /// Build scripts and macros run on this machine, so its own standard library is needed too.
    fn add_host(&self) -> Result<()> {
        let sh = &self.project.sh;
        let debian = Path::new("/usr/lib/rustlib").join(HOST).join("lib");
        let host = self.rustlib(HOST);
        let source = "src/rust";
        link(
            &Path::new("/usr/lib/rustlib").join(source),
            &self.rustlib(source),
        )?;
        link(&debian, &host.join("lib"))?;
        // Debian ships no rust-lld; rustup's is of nearly the same LLVM, apt's lld is years older.
        let rustup = cmd!(sh, "rustc --print sysroot").quiet().read()?;
        let lld = Path::new(&rustup)
            .join("lib/rustlib")
            .join(HOST)
            .join("bin/rust-lld");
        link(&lld, &host.join("bin/rust-lld"))
    }

    fn add_programs(&self) -> Result<()> {
        link(Path::new(CARGO), &self.toolchain.join("bin/cargo"))?;
        let sysroot = self.toolchain.display();
        for program in ["rustc", "rustdoc"] {
            self.add_script(
                program,
                &format!("/usr/bin/{program} --sysroot '{sysroot}'"),
            )?;
        }
        // Clippy is started with a compiler's command line, to which nothing may be added.
        self.add_script(
            "cargo-clippy",
            &format!("env SYSROOT='{sysroot}' /usr/bin/cargo-clippy"),
        )
    }

    fn add_script(&self, name: &str, command: &str) -> Result<()> {
        let sh = &self.project.sh;
        let script = self.toolchain.join("bin").join(name);
        sh.write_file(&script, format!("#!/bin/sh\nexec {command} \"$@\"\n"))?;
        Ok(cmd!(sh, "chmod +x {script}").quiet().run()?)
    }
}

fn copy_libraries(sh: &Shell, from: &Path, to: &Path) -> Result<()> {
    sh.create_dir(to)?;
    for path in sh.read_dir(from)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".rlib") && !name.starts_with("libempty-") {
            sh.copy_file(&path, to)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> Result<()> {
    fs::create_dir_all(at.parent().context("a link lies in a folder")?)?;
    let linked = std::os::unix::fs::symlink(to, at);
    linked.with_context(|| format!("cannot link {}", at.display()))
}

#[cfg(not(unix))]
fn link(_to: &Path, _at: &Path) -> Result<()> {
    anyhow::bail!("Debian's toolchain needs Debian")
}

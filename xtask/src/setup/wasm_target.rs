//! A Rust toolchain that compiles to wasm32-unknown-unknown, with the standard library's source:
//! the package builds its own.

use super::Requirement;
use super::debian_rust::DebianRust;
use crate::progress::Progress;
use crate::project::Project;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use xshell::cmd;

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
/// The path of the standard library's source in a toolchain.
pub(super) const LIBRARY: &str = "src/rust/library";

pub(super) struct WasmTarget<'a> {
    pub(super) project: &'a Project,
}

impl WasmTarget<'_> {
    /// The toolchain to select by `RUSTUP_TOOLCHAIN` for wasm builds; `None` when the
    /// developer's own has the target.
    pub(super) fn toolchain(&self) -> Option<PathBuf> {
        let debian = DebianRust::new(self.project);
        (!self.rustup_has_it() && debian.is_built()).then(|| debian.toolchain().to_owned())
    }

    fn rustup_has_it(&self) -> bool {
        let sh = &self.project.sh;
        let sysroot = cmd!(sh, "rustc --print sysroot").quiet().read();
        let complete = |root: String| {
            let rustlib = Path::new(&root).join("lib/rustlib");
            rustlib.join(TARGET).is_dir() && rustlib.join(LIBRARY).is_dir()
        };
        sysroot.is_ok_and(complete)
    }
}

impl Requirement for WasmTarget<'_> {
    fn name(&self) -> String {
        "WebAssembly target".to_owned()
    }

    fn is_met(&self) -> bool {
        self.rustup_has_it() || DebianRust::new(self.project).is_built()
    }

    fn install(&self, progress: &Progress) -> Result<()> {
        let sh = &self.project.sh;
        let target = progress.run(cmd!(sh, "rustup target add {TARGET}"));
        let source = || progress.run(cmd!(sh, "rustup component add rust-src"));
        let Err(no_rustup) = target.and_then(|()| source()) else {
            return Ok(());
        };
        progress.note("rustup cannot add it; building it with Debian's Rust");
        let debian = DebianRust::new(self.project).install(progress);
        debian.with_context(|| format!("{no_rustup:#}\nand without rustup"))
    }

    fn by_hand(&self) -> String {
        format!("`rustup target add {TARGET}` and `rustup component add rust-src`")
    }
}

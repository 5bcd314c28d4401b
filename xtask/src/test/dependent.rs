//! `tests/dependent`, a program of a user, which cargo builds without this workspace's configuration.

use super::Context;
use crate::setup::TARGET;
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use walrus::Module;
use walrus::ir::{BinaryOp, Binop, Visitor, dfs_in_order};
use xshell::cmd;

pub(super) fn run(context: &Context) -> Result<()> {
    let (sh, root) = (&context.project.sh, &context.project.root);
    // The versions that the workspace has; cargo leaves out what the program does not need.
    sh.copy_file(root.join("Cargo.lock"), root.join("tests/dependent"))?;
    // Cargo reads the configuration of the folder that it is started in.
    let _outside = sh.push_dir(&context.project.cache);
    links_no_shared_library(context)?;
    let module = build_module(context)?;
    has_vectors(&module)?;
    let script = root.join("tests/dependent/run.mjs");
    Ok(cmd!(sh, "node {script} {module}").run()?)
}

fn manifest(context: &Context) -> [PathBuf; 2] {
    let project = context.project;
    [
        project.root.join("tests/dependent/Cargo.toml"),
        project.target("dependent"),
    ]
}

/// Cargo would link a cdylib of the library for everyone, 107 MB of it in a debug build.
fn links_no_shared_library(context: &Context) -> Result<()> {
    let [manifest, target] = manifest(context);
    let check = cmd!(
        context.project.sh,
        "cargo check --quiet --manifest-path {manifest} --target-dir {target}
         --message-format json"
    );
    let messages = check.quiet().env_remove("RUSTFLAGS").read()?;
    let of_library = |line: &&str| {
        line.contains("\"compiler-artifact\"") && line.contains("\"name\":\"relampago\"")
    };
    let library = messages.lines().find(of_library);
    let library = library.context("cargo tells nothing of the library")?;
    ensure!(
        library.contains("\"crate_types\":[\"lib\"]"),
        "the library is more than an rlib for those who depend on it: {library}"
    );
    Ok(())
}

fn build_module(context: &Context) -> Result<PathBuf> {
    let [manifest, target] = manifest(context);
    let build = cmd!(
        context.project.sh,
        "cargo build --release --target {TARGET} --manifest-path {manifest}
         --target-dir {target}"
    );
    context.tools.for_wasm(build).run()?;
    Ok(target.join(TARGET).join("release/dependent.wasm"))
}

/// Kernels multiply by simd128's instructions, and not by functions of one instruction each.
fn has_vectors(module: &Path) -> Result<()> {
    let module = Module::from_file(module)?;
    let mut products = Products(0);
    for (_, function) in module.funcs.iter_local() {
        dfs_in_order(&mut products, function, function.entry_block());
    }
    let mut names = module
        .funcs
        .iter()
        .filter_map(|function| function.name.as_deref());
    let called = names.find(|name| name.contains("core_arch"));
    ensure!(
        called.is_none(),
        "an instruction is a function of its own: {called:?}"
    );
    ensure!(
        products.0 >= LEAST_PRODUCTS,
        "kernels have {} products of vectors, not {LEAST_PRODUCTS}",
        products.0
    );
    println!(
        "the dependent's module has {} products of vectors",
        products.0
    );
    Ok(())
}

/// The least number of multiplications, those of the tiles of a matmul alone.
const LEAST_PRODUCTS: usize = 40;

struct Products(usize);

impl Visitor<'_> for Products {
    fn visit_binop(&mut self, instruction: &Binop) {
        if matches!(instruction.op, BinaryOp::F32x4Mul) {
            self.0 += 1;
        }
    }
}

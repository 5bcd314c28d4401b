//! Composes the shaders, so that nothing searches or cuts WGSL at run time, and declares the instruction set.

use std::{env, fs, path::Path, process};

use compose::{Library, Target};
use relampago_coefficients::SHADER_CONSTANTS;

#[path = "src/gpu/kernels/compose/mod.rs"]
mod compose;

#[path = "src/gpu/kernels/table.rs"]
mod table;

#[path = "src/ops/custom/words.rs"]
mod words;

fn main() {
    for path in [
        "build.rs",
        "shaders",
        "src/gpu/kernels",
        "src/ops/custom/words.rs",
    ] {
        println!("cargo::rerun-if-changed={path}");
    }
    let target = declare_instruction_set();
    if let Err(error) = compose_shaders(target) {
        eprintln!("{error}");
        process::exit(1);
    }
}

/// Writes what `src/gpu/kernels.rs`, `src/ops/custom/wgsl.rs` and `examples/op_table.rs` include.
fn compose_shaders(target: Target) -> Result<(), Box<dyn std::error::Error>> {
    let library = Library::read(Path::new("shaders"), SHADER_CONSTANTS)?;
    let tables = compose::tables(&library, target)?;
    let out = env::var("OUT_DIR")?;
    let write = |file: &str, text: String| fs::write(Path::new(&out).join(file), text);
    write("kernels.rs", tables.rust)?;
    write("shaders.wgsl", tables.text)?;
    // A native build writes the text that the npm package loads: the one that its modules were built with.
    write("wasm.wgsl", compose::tables(&library, Target::Wasm)?.text)?;
    write("nan.wgsl", compose::own_text(&library, "lib/nan")?)?;
    Ok(())
}

/// Declares the instruction set and returns the target. The npm package has a module for each instruction set.
/// Selecting it by a variable and not by `RUSTFLAGS` leaves crate hashes alone, so that the modules share their
/// JavaScript and dependencies.
fn declare_instruction_set() -> Target {
    const RELAXED: &str = "RELAMPAGO_WASM_RELAXED";
    println!("cargo::rustc-check-cfg=cfg(relampago_package, relampago_relaxed, relampago_threads)");
    println!("cargo::rerun-if-env-changed={RELAXED}");
    let is_wasm = env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("wasm32");
    let target_features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    // Memory that threads share takes atomic instructions.
    let may_share = !is_wasm || target_features.split(',').any(|name| name == "atomics");
    if may_share && env::var_os("CARGO_FEATURE_THREADS").is_some() {
        println!("cargo::rustc-cfg=relampago_threads");
    }
    if !is_wasm {
        return Target::Native;
    }
    if env::var(RELAXED).as_deref() == Ok("1") || target_features.contains("relaxed-simd") {
        println!("cargo::rustc-cfg=relampago_relaxed");
    }
    Target::Wasm
}

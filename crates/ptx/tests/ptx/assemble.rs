//! Every variant for every target, assembled by NVIDIA's assembler; `PTXAS` names it.

use super::registers::{self, Registers};
use super::variants;
use relampago_ptx::{PtxModule, Target};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// ptxas 13 has forgotten Volta, but still takes its text for the next GPU.
fn assembled_for(target: Target) -> &'static str {
    match target {
        Target::Sm70 => "sm_75",
        target => target.name(),
    }
}

#[test]
fn ptxas_accepts_every_kernel_for_every_target() {
    let Some(ptxas) = std::env::var_os("PTXAS") else {
        println!("PTXAS does not name an assembler: nothing is assembled");
        return;
    };
    let folder = std::env::temp_dir().join(format!("relampago-ptx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let texts = texts();
    let (next, failures) = (AtomicUsize::new(0), std::sync::Mutex::new(Vec::new()));
    let compared = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match assemble(ptxas.as_ref(), &folder, text) {
                        Err(message) => failures.lock().unwrap().push(message),
                        Ok(used) => compared.lock().unwrap().extend(used),
                    }
                }
            });
        }
    });
    let _ = std::fs::remove_dir_all(&folder);
    let (variants, failures) = (variants::all().len(), failures.into_inner().unwrap());
    println!(
        "assembled: {} texts of {variants} variants for {} targets",
        texts.len(),
        Target::ALL.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    registers::compare(&compared.into_inner().unwrap());
}

struct Text {
    name: String,
    target: Target,
    ptx: String,
    /// The verifier's estimate.
    registers: u32,
}

/// Each variant for each target that has what it needs. Epilogues differ in nothing that
/// depends on the target, but are few enough.
fn texts() -> Vec<Text> {
    let mut texts = Vec::new();
    for variant in variants::all() {
        for target in Target::ALL {
            let name = variant.kernel.name();
            match variant.kernel.build(target) {
                Ok(kernel) => texts.push(Text {
                    name,
                    target,
                    registers: kernel.registers(),
                    ptx: PtxModule::new(target).with(kernel).unwrap().emit(),
                }),
                Err(relampago_ptx::Error::Target { .. }) => {}
                Err(error) => panic!("{name} for {target}: {error}"),
            }
        }
    }
    texts
}

/// Returns the number of bytes that ptxas may keep in memory instead of registers: constants of a loop. Matmuls by
/// quantised weights use all registers that their number of blocks leaves. Layer norm of rows that fill the registers
/// was slower if its loads could not be moved forward. Attention's tiles of 64 keys spill 8 to 64 bytes for some
/// targets; with 32 keys they spill nothing, but attention was slower by 6%. Wide tiles of f32 weights leave two blocks
/// a few registers less than they need.
fn spills(name: &str) -> u32 {
    match name {
        _ if name.starts_with("gemm_q") => 64,
        _ if name.starts_with("attention_flash_mma") => 64,
        "multiply_floats_mma_wide" => 16,
        _ if name.starts_with("layer_norm") && name.ends_with("ahead") => 16,
        _ => 0,
    }
}

/// Fails on whatever ptxas has to say: spills, serialised `wgmma`, ignored directives. Its
/// words on registers are kept, unless the kernel asks for them itself.
fn assemble(ptxas: &Path, folder: &Path, text: &Text) -> Result<Option<Registers>, String> {
    let (name, target) = (&text.name, text.target);
    let file = folder.join(format!("{name}_{target}.ptx"));
    std::fs::write(&file, &text.ptx).map_err(|error| error.to_string())?;
    let output = Command::new(ptxas)
        .args(["-v", "-arch", assembled_for(target), "-o"])
        .arg(file.with_extension("cubin"))
        .arg(&file)
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let stores = said.split(" bytes spill stores").next().unwrap_or_default();
    let stores: Option<u32> = stores
        .rsplit([' ', '\n'])
        .next()
        .and_then(|n| n.parse().ok());
    let spilled = stores.is_some_and(|bytes| bytes > spills(name));
    let warned = said.contains("C75") || said.to_lowercase().contains("warning");
    if !output.status.success() || spilled || warned {
        return Err(format!("{name} for {target}:\n{said}"));
    }
    let _ = std::fs::remove_file(file);
    let registers = Registers {
        name: format!("{name} for {target}"),
        estimated: text.registers,
        used: registers::of(&said).ok_or_else(|| format!("no registers in {said}"))?,
    };
    Ok((!text.ptx.contains("setmaxnreg")).then_some(registers))
}

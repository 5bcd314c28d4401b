//! Every variant for every target, assembled by NVIDIA's assembler; `PTXAS` names it.

use super::variants;
use relampago::ptx::Target;
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
fn ptxas_takes_every_kernel_for_every_target() {
    let Some(ptxas) = std::env::var_os("PTXAS") else {
        println!("PTXAS does not name an assembler: nothing is assembled");
        return;
    };
    let folder = std::env::temp_dir().join(format!("relampago-ptx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let texts = texts();
    let (next, failures) = (AtomicUsize::new(0), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((name, target, text)) =
                    texts.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Err(message) = assemble(ptxas.as_ref(), &folder, name, *target, text) {
                        failures.lock().unwrap().push(message);
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
}

/// Each variant for each target that has what it needs. Epilogues differ in nothing that
/// depends on the target, but are few enough.
fn texts() -> Vec<(String, Target, String)> {
    let mut texts = Vec::new();
    for variant in variants::all() {
        for target in Target::ALL {
            match variant.kernel.emit_ptx_for_target(target) {
                Ok(text) => texts.push((variant.kernel.name(), target, text)),
                Err(relampago::ptx::Error::Target { .. }) => {}
                Err(error) => panic!("{} for {target}: {error}", variant.kernel.name()),
            }
        }
    }
    texts
}

/// Fails on whatever ptxas has to say: spills, serialised `wgmma`, ignored directives.
fn assemble(
    ptxas: &Path,
    folder: &Path,
    name: &str,
    target: Target,
    text: &str,
) -> Result<(), String> {
    let file = folder.join(format!("{name}_{target}.ptx"));
    std::fs::write(&file, text).map_err(|error| error.to_string())?;
    let output = Command::new(ptxas)
        .args(["-v", "-arch", assembled_for(target), "-o"])
        .arg(file.with_extension("cubin"))
        .arg(&file)
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let spilled =
        said.contains("spill") && !said.contains("0 bytes spill stores, 0 bytes spill loads");
    let warned = said.contains("C75") || said.to_lowercase().contains("warning");
    if !output.status.success() || spilled || warned {
        return Err(format!("{name} for {target}:\n{said}"));
    }
    let _ = std::fs::remove_file(file);
    Ok(())
}

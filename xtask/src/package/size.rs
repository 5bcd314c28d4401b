//! The download size, and its limit.

use super::Package;
use super::entry::{ENTRIES, Entry};
use crate::files;
use anyhow::{Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;

/// Files that are loaded only with a GPU, for workers, for chat templates and JSON schemas, or for tuning, and their limits.
const ON_DEMAND: [(&str, usize); 14] = [
    ("relampago_shared_simd128.wasm", 360 * 1024),
    ("relampago_shared_relaxed.wasm", 360 * 1024),
    ("relampago_chat.wasm", 480 * 1024),
    ("shaders.js", 18 * 1024),
    ("workers/create.js", 6 * 1024),
    // With a copy of the module's script.
    ("workers/relampago_worker.js", 11 * 1024),
    ("workers/relampago_threads.js", 11 * 1024),
    // With a copy of the engine.
    ("llm_threads.js", 40 * 1024),
    ("tune_worker.js", 40 * 1024),
    ("tune_threads.js", 40 * 1024),
    ("relampago_tune_simd128.wasm", 560 * 1024),
    ("relampago_tune_relaxed.wasm", 560 * 1024),
    ("relampago_tune_shared_simd128.wasm", 560 * 1024),
    ("relampago_tune_shared_relaxed.wasm", 560 * 1024),
];
/// Further entry points: for Node, for service workers, and under an earlier name.
const NOT_DOWNLOADED: [&str; 4] = [
    "node.js",
    "static.js",
    "full/index.js",
    "workers/create_node.js",
];

/// Prints the compressed sizes of an entry's files, and checks the script with the larger module.
pub(super) fn check(package: &Package, entry: &Entry) -> Result<()> {
    let folder = package.folder.join(entry.folder);
    let (mut scripts, mut modules) = (0, BTreeMap::new());
    for path in files::list(&folder)? {
        let relative = path.strip_prefix(&folder)?;
        let name = relative.to_string_lossy().into_owned();
        let has = |other: &Entry| !other.folder.is_empty() && relative.starts_with(other.folder);
        if ENTRIES.iter().any(has) || NOT_DOWNLOADED.contains(&name.as_str()) {
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        match (extension, ON_DEMAND.iter().find(|file| file.0 == name)) {
            (Some("wasm" | "js"), Some(file)) => {
                within(&name, gzipped(&fs::read(&path)?)?, file.1)?;
            }
            (Some("wasm"), None) => _ = modules.insert(name, gzipped(&fs::read(&path)?)?),
            (Some("js"), None) => scripts += gzipped(&fs::read(&path)?)?,
            _ => {}
        }
    }
    for (module, size) in modules {
        let download = format!("{}: {scripts} of scripts and {module}", entry.name);
        within(&download, scripts + size, entry.limit)?;
    }
    Ok(())
}

fn within(name: &str, size: usize, limit: usize) -> Result<()> {
    eprintln!("{name:60} {size:>8} bytes (gzip), of at most {limit}");
    ensure!(size <= limit, "{name}: {size} bytes, over {limit}");
    Ok(())
}

/// Returns the compressed size of bytes, as servers send them.
fn gzipped(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

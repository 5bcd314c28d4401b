//! What a visitor downloads, and the limit that it must stay under.

use super::Package;
use super::edition::{EDITIONS, Edition};
use anyhow::{Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What only pages that have a GPU or ask for workers load, and its limits.
const ON_DEMAND: [(&str, usize); 3] = [
    ("shaders.js", 12 * 1024),
    ("create.js", 5 * 1024),
    // With a copy of the core.
    ("relampago_worker.js", 27 * 1024 / 2),
];
/// Node's own entry, which no browser loads, and the one for service workers.
const NOT_DOWNLOADED: [&str; 2] = ["node.js", "static.js"];

pub(super) fn check(package: &Package, edition: &Edition) -> Result<()> {
    let (name_of_edition, limit) = (edition.name, edition.limit);
    let mut scripts = 0;
    let mut modules = Vec::new();
    for path in files(package, edition)? {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("js") => scripts += script(&path)?,
            Some("wasm") => {
                let module = fs::read(&path)?;
                modules.push((name(&path), module.len(), gzipped(&module)?));
            }
            _ => {}
        }
    }
    modules.sort();
    eprintln!(
        "{:28} {:>10} {:>10} {:>14}",
        format!("{name_of_edition} module"),
        "bytes",
        "gzip -9",
        "download (gzip)"
    );
    for (name, bytes, gzipped) in &modules {
        eprintln!(
            "{name:28} {bytes:>10} {gzipped:>10} {:>14}",
            gzipped + scripts
        );
    }
    eprintln!("of each download, JavaScript is {scripts}; the limit is {limit}");
    let largest = modules
        .iter()
        .map(|module| module.2 + scripts)
        .max()
        .unwrap_or(0);
    ensure!(
        largest <= limit,
        "the {name_of_edition} download is {largest} bytes, over the limit of {limit}"
    );
    Ok(())
}

/// An edition's; another one may lie in a folder of its own folder.
fn files(package: &Package, edition: &Edition) -> Result<Vec<PathBuf>> {
    let mut files = crate::files::list(&package.folder.join(edition.folder))?;
    let others = EDITIONS.iter().filter(|other| other.name != edition.name);
    for other in others.filter(|other| other.folder.starts_with(edition.folder)) {
        files.retain(|file| !file.starts_with(package.folder.join(other.folder)));
    }
    Ok(files)
}

/// How much of every download the script is.
fn script(path: &Path) -> Result<usize> {
    let (name, size) = (name(path), gzipped(&fs::read(path)?)?);
    if let Some((_, limit)) = ON_DEMAND.iter().find(|(on_demand, _)| *on_demand == name) {
        eprintln!("on demand, {name} is {size}; the limit is {limit}");
        ensure!(
            size <= *limit,
            "{name} is {size} bytes, over the limit of {limit}"
        );
        return Ok(0);
    }
    Ok(if NOT_DOWNLOADED.contains(&&*name) {
        0
    } else {
        size
    })
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// How long bytes are when servers have compressed them.
pub(super) fn gzipped(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

//! The download size, and its limit.

use super::Package;
use super::entry::{ENTRIES, Entry};
use anyhow::{Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Files that are loaded only with a GPU or for workers, and their limits.
const ON_DEMAND: [(&str, usize); 3] = [
    ("shaders.js", 16 * 1024),
    ("create.js", 5 * 1024),
    // With a copy of the core.
    ("relampago_worker.js", 15 * 1024),
];
/// Further entry points: for Node, for service workers, and under an earlier name.
const NOT_DOWNLOADED: [&str; 3] = ["node.js", "static.js", "full/index.js"];

pub(super) fn check(package: &Package, entry: &Entry) -> Result<()> {
    let (title, limit) = (entry.name, entry.limit);
    let mut scripts = 0;
    let mut modules = Vec::new();
    for path in files(package, entry)? {
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
        format!("{title} module"),
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
        "the {title} download is {largest} bytes, over the limit of {limit}"
    );
    Ok(())
}

/// Returns the files of an entry point, without those of entry points in its subfolders.
fn files(package: &Package, entry: &Entry) -> Result<Vec<PathBuf>> {
    let mut files = crate::files::list(&package.folder.join(entry.folder))?;
    let others = ENTRIES.iter().filter(|other| other.name != entry.name);
    for other in others.filter(|other| other.folder.starts_with(entry.folder)) {
        files.retain(|file| !file.starts_with(package.folder.join(other.folder)));
    }
    Ok(files)
}

/// Returns the compressed size of the script in every download.
fn script(path: &Path) -> Result<usize> {
    if NOT_DOWNLOADED.iter().any(|other| path.ends_with(other)) {
        return Ok(0);
    }
    let (name, size) = (name(path), gzipped(&fs::read(path)?)?);
    if let Some((_, limit)) = ON_DEMAND.iter().find(|(on_demand, _)| *on_demand == name) {
        eprintln!("on demand, {name} is {size}; the limit is {limit}");
        ensure!(
            size <= *limit,
            "{name} is {size} bytes, over the limit of {limit}"
        );
        return Ok(0);
    }
    Ok(size)
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns the compressed size of bytes, as servers send them.
fn gzipped(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

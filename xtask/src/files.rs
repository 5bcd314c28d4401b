//! Folders, whole.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Every file below `folder`.
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(list(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// Makes a folder and locks it: waits for other processes that do, until the file is closed.
pub(crate) fn lock(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder)?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()
        .with_context(|| format!("cannot lock {}", folder.display()))?;
    Ok(lock)
}

/// Copies every file below `from` to the same place below `to`.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    for file in list(from)? {
        let copy = to.join(file.strip_prefix(from)?);
        fs::create_dir_all(copy.parent().context("a file lies in a folder")?)?;
        fs::copy(&file, &copy).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

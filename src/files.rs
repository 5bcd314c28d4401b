//! Atomic replacement of files.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io, process};

/// Writes a file atomically, and creates its folder if necessary. Concurrent readers see the old
/// contents or the new, whichever process writes.
pub(crate) fn replace(path: &Path, data: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // A name of its own: other threads may write the same file, or one that differs in its ending alone.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let partial = path.with_extension(format!("{}-{number}.partial", process::id()));
    let written = fs::write(&partial, data).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // Nobody would write over it.
        let _ = fs::remove_file(&partial);
    }
    written
}

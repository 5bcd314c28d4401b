//! A cache of machine code on disk. The driver trusts the headers of machine code, so damaged files
//! must be rejected: each file ends with a hash of its contents.

use crate::files;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Returns the folder for caches, if there is one.
pub(super) fn folder() -> Option<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .or_else(|| absolute("LOCALAPPDATA"));
    folder.map(|folder| folder.join("relampago/cubin"))
}

/// Returns a file name that is a hash of everything the code depends on.
pub(super) fn name(key: &str) -> String {
    let [first, second] = hashes(key.as_bytes());
    format!("{first:016x}{second:016x}.cubin")
}

/// Reads the code in a file. Returns `None` if the file is missing or damaged.
pub(super) fn read(file: &Path) -> Option<Vec<u8>> {
    let mut code = fs::read(file).ok()?;
    let end = seal(code.get(..code.len().checked_sub(SEAL)?)?);
    let whole = code.ends_with(&end);
    code.truncate(code.len() - SEAL);
    whole.then_some(code)
}

/// Writes the code and its hash to a file, atomically.
pub(super) fn write(file: &Path, code: &[u8]) -> std::io::Result<()> {
    files::replace(file, &[code, &seal(code)].concat())
}

/// The size of the hash in bytes.
const SEAL: usize = 16;

fn seal(code: &[u8]) -> [u8; SEAL] {
    let mut seal = [0; SEAL];
    for (place, hash) in seal.chunks_exact_mut(8).zip(hashes(code)) {
        place.copy_from_slice(&hash.to_le_bytes());
    }
    seal
}

/// Computes FNV-1a (Fowler, Noll and Vo) from two offsets. It is not cryptographic, but the same on
/// every machine.
fn hashes(bytes: &[u8]) -> [u64; 2] {
    [0, 1].map(|start| {
        let hash = 0xcbf2_9ce4_8422_2325 ^ start;
        bytes.iter().fold(hash, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process;

    /// Returns a folder for one test.
    fn scratch(test: &str) -> PathBuf {
        let folder = format!("relampago-cubin-{test}-{}", process::id());
        env::temp_dir().join(folder)
    }

    #[test]
    fn only_what_was_written_is_read() {
        let folder = scratch("whole");
        let file = folder.join(name("a text"));
        let code = b"\x7fELF and more".to_vec();
        assert_eq!(read(&file), None);
        write(&file, &code).unwrap();
        assert_eq!(read(&file), Some(code.clone()));
        let stored = fs::read(&file).unwrap();
        for end in 0..stored.len() {
            fs::write(&file, &stored[..end]).unwrap();
            assert_eq!(read(&file), None, "{end} bytes");
        }
        for at in 0..stored.len() {
            let mut other = stored.clone();
            other[at] ^= 1;
            fs::write(&file, &other).unwrap();
            assert_eq!(read(&file), None, "byte {at}");
        }
        // The next compilation replaces the file.
        write(&file, &code).unwrap();
        assert_eq!(read(&file), Some(code));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn whoever_writes_at_once_leaves_one_whole_file() {
        let folder = scratch("threads");
        let file = folder.join(name("a text"));
        let code = vec![7; 1 << 20];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..8 {
                        write(&file, &code).unwrap();
                        assert!(read(&file).as_ref() == Some(&code));
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}

//! What is kept on disk from one process to the next: pipelines, where the driver lets them be.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What every file begins with; its number changes with what follows.
const MAGIC: &[u8; 8] = b"relamp\x00\x01";

/// A driver's cache and the file that it is kept in.
pub(super) struct PipelineFile {
    pub(super) cache: wgpu::PipelineCache,
    path: PathBuf,
    /// What the file holds, by its hash.
    kept: Mutex<Option<u64>>,
}

impl PipelineFile {
    /// The file of a device in a folder, read if it is there and whole; `None` where the driver
    /// has no such cache.
    pub(super) fn open(device: &wgpu::Device, folder: &Path) -> Option<Self> {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let path = folder.join(file_name(&device.adapter_info(), "pipelines"));
        let data = fs::read(&path).ok().and_then(|file| unwrapped(&file));
        let descriptor = wgpu::PipelineCacheDescriptor {
            label: Some("relampago"),
            data: data.as_deref(),
            fallback: true,
        };
        // SAFETY: the data are what `save` took from such a cache: the file has its mark and its
        // sum, and its name those of this crate, the adapter and the driver, which checks again.
        let cache = unsafe { device.create_pipeline_cache(&descriptor) };
        let kept = Mutex::new(data.as_deref().map(hash));
        Some(Self { cache, path, kept })
    }

    /// Writes the file anew if there are pipelines that it lacks. Whoever reads it meanwhile sees
    /// the old one or the new one.
    pub(super) fn save(&self) {
        let Some(data) = self.cache.get_data() else {
            return;
        };
        let sum = hash(&data);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if *kept == Some(sum) {
            return;
        }
        match write(&self.path, &data) {
            Ok(()) => *kept = Some(sum),
            // It is but a cache.
            Err(error) => log::warn!("{} cannot be written: {error}", self.path.display()),
        }
    }
}

impl Drop for PipelineFile {
    fn drop(&mut self) {
        self.save();
    }
}

/// A name that nothing else has whose pipelines, or whose times, differ.
pub(super) fn file_name(adapter: &wgpu::AdapterInfo, extension: &str) -> String {
    let wgpu::AdapterInfo {
        vendor,
        device,
        driver,
        driver_info,
        backend,
        ..
    } = adapter;
    let driver = hash(format!("{driver} {driver_info} {backend}").as_bytes());
    let version = env!("CARGO_PKG_VERSION");
    format!("relampago-{version}-{vendor:x}-{device:x}-{driver:016x}.{extension}")
}

/// Writes a file with its mark and its sum, or none at all.
pub(super) fn write(path: &Path, data: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let mut file = fs::File::create(&partial)?;
    file.write_all(MAGIC)?;
    file.write_all(&hash(data).to_le_bytes())?;
    file.write_all(data)?;
    drop(file);
    fs::rename(&partial, path)
}

/// What `write` was given, unless something happened to the file.
pub(super) fn unwrapped(file: &[u8]) -> Option<Vec<u8>> {
    let (magic, rest) = file.split_first_chunk::<8>()?;
    let (sum, data) = rest.split_first_chunk::<8>()?;
    let whole = magic == MAGIC && hash(data) == u64::from_le_bytes(*sum);
    whole.then(|| data.to_vec())
}

/// FNV-1a of 64 bits, which does not differ from one build to the next.
fn hash(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_back_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("relampago-cache-{}", std::process::id()));
        let path = folder.join("some.pipelines");
        let data: Vec<u8> = (0..1000).map(|i| (i * 7 % 251) as u8).collect();
        write(&path, &data).unwrap();
        let file = fs::read(&path).unwrap();
        assert_eq!(unwrapped(&file), Some(data));
        for cut in [0, 7, 8, 15, 16, file.len() - 1] {
            assert_eq!(unwrapped(&file[..cut]), None, "cut at {cut}");
        }
        for place in [0, 7, 8, 16, file.len() - 1] {
            let mut changed = file.clone();
            changed[place] ^= 1;
            assert_eq!(unwrapped(&changed), None, "changed at {place}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

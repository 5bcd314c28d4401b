//! Cache on disk, kept between processes: compiled pipelines, if the driver supports it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::files;
use crate::gpu::persist;

/// A driver's pipeline cache and its file.
pub(in crate::gpu) struct PipelineFile {
    pub(in crate::gpu) cache: wgpu::PipelineCache,
    path: PathBuf,
    /// The hash of the file's contents.
    kept: Mutex<Option<u64>>,
}

impl PipelineFile {
    /// The file of a device in a folder, read if it is there and whole; `None` where the driver
    /// has no such cache.
    pub(in crate::gpu) fn open(device: &wgpu::Device, folder: &Path) -> Option<Self> {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let path = folder.join(file_name(&device.adapter_info(), "pipelines"));
        let data = read(&path);
        let descriptor = wgpu::PipelineCacheDescriptor {
            label: Some("relampago"),
            data: data.as_deref(),
            fallback: true,
        };
        // SAFETY: the data are what `save` took from such a cache: the file has its mark and its
        // sum, and its name those of this crate, the adapter and the driver, which checks again.
        let cache = unsafe { device.create_pipeline_cache(&descriptor) };
        let kept = Mutex::new(data.as_deref().map(persist::hash));
        Some(Self { cache, path, kept })
    }

    /// Writes the file anew if there are pipelines that it lacks. Whoever reads it meanwhile sees
    /// the old one or the new one.
    pub(in crate::gpu) fn save(&self) {
        let Some(data) = self.cache.get_data() else {
            return;
        };
        let sum = persist::hash(&data);
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
pub(in crate::gpu) fn file_name(adapter: &wgpu::AdapterInfo, extension: &str) -> String {
    let wgpu::AdapterInfo {
        vendor,
        device,
        driver,
        driver_info,
        backend,
        ..
    } = adapter;
    let driver = persist::hash(format!("{driver} {driver_info} {backend}").as_bytes());
    let version = env!("CARGO_PKG_VERSION");
    format!("relampago-{version}-{vendor:x}-{device:x}-{driver:016x}.{extension}")
}

/// Writes a file with its mark and its sum, or none at all.
pub(in crate::gpu) fn write(path: &Path, data: &[u8]) -> std::io::Result<()> {
    files::replace(path, &persist::wrapped(data))
}

/// Reads data written by `write`; `None` if there is no file or it is damaged.
pub(in crate::gpu) fn read(path: &Path) -> Option<Vec<u8>> {
    let file = fs::read(path).ok()?;
    persist::unwrapped(&file).map(<[u8]>::to_vec)
}

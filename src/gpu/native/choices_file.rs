//! The file in which choices of kernels and measured thresholds are kept between processes.

use std::path::Path;

use super::cache;
use crate::gpu::context::Gpu;

impl Gpu {
    /// Loads the choices of a folder, and saves later ones there.
    pub(super) fn keep_choices_in(&mut self, folder: &Path) {
        let path = folder.join(cache::file_name(&self.device.adapter_info(), "choices"));
        self.adopt_choices_of(&path);
        self.state.choices_file = Some(path);
    }

    /// Loads the choices of a file for shapes without a choice.
    fn adopt_choices_of(&self, path: &Path) {
        let read = cache::read(path).and_then(|text| String::from_utf8(text).ok());
        self.adopt_measurements(&read.unwrap_or_default());
    }

    pub(in crate::gpu) fn save_choices(&self) {
        let Some(path) = &self.state.choices_file else {
            return;
        };
        // Another device may have measured, too, since this one was made.
        self.adopt_choices_of(path);
        // It is but a cache.
        if let Err(error) = cache::write(path, self.measurements().as_bytes()) {
            log::warn!("{} cannot be written: {error}", path.display());
        }
    }
}

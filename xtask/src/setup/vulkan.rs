//! The Vulkan loader and llvmpipe, so that the GPU code runs where there is no GPU.

use super::{Requirement, apt};
use crate::progress::Progress;
use crate::project::Project;
use anyhow::Result;
use std::fs;

const PACKAGES: &[&str] = &["libvulkan1", "mesa-vulkan-drivers"];
const DRIVERS: &str = "/usr/share/vulkan/icd.d";

pub(super) struct Vulkan<'a> {
    pub(super) project: &'a Project,
}

impl Requirement for Vulkan<'_> {
    fn name(&self) -> String {
        "Vulkan loader and llvmpipe".to_owned()
    }

    /// Metal and DX12 are part of their systems.
    fn is_met(&self) -> bool {
        let is_llvmpipe = |name: &str| name.starts_with("lvp_icd");
        !cfg!(target_os = "linux")
            || fs::read_dir(DRIVERS).is_ok_and(|drivers| {
                drivers
                    .flatten()
                    .any(|entry| is_llvmpipe(&entry.file_name().to_string_lossy()))
            })
    }

    fn install(&self, progress: &Progress) -> Result<()> {
        apt::install(self.project, progress, PACKAGES)
    }

    fn by_hand(&self) -> String {
        format!(
            "`{}`, or your system's packages of that content",
            apt::by_hand(PACKAGES)
        )
    }
}

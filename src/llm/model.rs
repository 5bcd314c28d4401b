//! A model: its hyperparameters, its weights, and the forward pass.

mod architecture;
mod attention;
mod forward;
mod kv_cache;
mod weights;

use super::gguf::Gguf;
use crate::error::Result;
use crate::simd::Cpu;
pub(super) use architecture::Config;
pub(super) use forward::{BLOCK, Wanted};
pub(super) use kv_cache::KvCache;
use weights::Layout;

/// A model whose weights stay in the file's blocks.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) file: Gguf,
    pub(super) config: Config,
    layout: Layout,
    cpu: Cpu,
}

impl Model {
    pub(super) fn new(file: Gguf, cpu: Cpu) -> Result<Self> {
        let config = Config::new(&file)?;
        let layout = Layout::new(&file, &config)?;
        Ok(Self {
            file,
            config,
            layout,
            cpu,
        })
    }
}

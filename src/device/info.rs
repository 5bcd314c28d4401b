//! What a device is and why it was chosen.

use std::fmt;
use std::sync::Arc;

use super::Backend;
use crate::gpu::Gpu;
use crate::ops::HalfPrecision;
use crate::simd::InstructionSet;

/// What a [`crate::GpuDevice`] came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// As [`crate::GpuDevice::backend`] tells.
    pub backend: Backend,
    /// Why that one, in a sentence.
    pub reason: String,
    /// The GPU's name; `None` without one. Browsers tell vendor and architecture only.
    pub adapter: Option<String>,
    /// What the GPU is driven through: `vulkan`, `metal`, `dx12`, `webgpu` or `cuda`.
    pub api: Option<String>,
    /// Whether that GPU is a program: a rasteriser on the CPU.
    pub software: bool,
    /// The vector instructions that operations on the CPU use.
    pub instruction_set: InstructionSet,
    /// The most values that one buffer holds; `None` where only memory limits them.
    pub max_buffer_len: Option<usize>,
    /// Whether the GPU multiplies matrices in binary16, or why it does not.
    pub half_precision: HalfPrecision,
}

impl DeviceInfo {
    pub(super) fn new(
        backend: Backend,
        gpu: Option<&Arc<Gpu>>,
        instruction_set: InstructionSet,
        reason: String,
    ) -> Self {
        let adapter = gpu.map(|gpu| gpu.adapter());
        Self {
            backend,
            reason,
            adapter: adapter.map(|adapter| adapter.name.clone()),
            api: adapter.map(|adapter| adapter.api.clone()),
            software: adapter.is_some_and(|adapter| adapter.software),
            instruction_set,
            max_buffer_len: gpu.map(|gpu| gpu.max_len()),
            half_precision: gpu.map_or(HalfPrecision::NoGpu, |gpu| gpu.half_precision()),
        }
    }
}

impl DeviceInfo {
    /// The same of an NVIDIA GPU.
    pub(super) fn of_cuda(self, name: &str) -> Self {
        Self {
            adapter: Some(name.to_owned()),
            api: Some("cuda".to_owned()),
            ..self
        }
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(adapter), Some(api)) = (&self.adapter, &self.api) {
            write!(f, "{adapter} ({api}), ")?;
        }
        write!(f, "{} instructions: {}", self.instruction_set, self.reason)
    }
}

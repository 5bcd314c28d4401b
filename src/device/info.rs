//! Information about a device and the reason for its choice.

use std::fmt;

use super::Backend;
use super::routing::TurnedOff;
use crate::ops::HalfPrecision;
use crate::ops::policy::{Policy, PolicySource};
use crate::simd::InstructionSet;

/// Information about a [`crate::GpuDevice`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The back-end, like [`crate::GpuDevice::backend`].
    pub backend: Backend,
    /// The reason for the choice, as a sentence.
    pub reason: String,
    /// The GPU's name; `None` without a GPU. Browsers report vendor and architecture only.
    pub adapter: Option<String>,
    /// The API of the GPU: `vulkan`, `metal`, `dx12`, `webgpu` or `cuda`.
    pub api: Option<String>,
    /// Whether the adapter is a software rasteriser on the CPU.
    pub software: bool,
    /// The vector instructions used by operations on the CPU.
    pub instruction_set: InstructionSet,
    /// The number of threads that share an operation on the CPU, at most.
    pub threads: usize,
    /// The largest number of elements in one buffer; `None` if only memory limits it.
    pub max_buffer_len: Option<usize>,
    /// Whether the GPU multiplies matrices in f16, or the reason why not.
    pub half_precision: HalfPrecision,
    /// The thresholds from which single operations run on the GPU.
    pub policy: Policy,
    /// The origin of the thresholds.
    pub policy_source: PolicySource,
    /// The kernels that checks of the GPU's results turned off, in this order.
    pub turned_off: Vec<TurnedOff>,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(adapter), Some(api)) = (&self.adapter, &self.api) {
            write!(f, "{adapter} ({api}), ")?;
        }
        write!(f, "{} instructions: {}", self.instruction_set, self.reason)?;
        for TurnedOff { what, reason } in &self.turned_off {
            write!(f, "; {what} is off: {reason}")?;
        }
        Ok(())
    }
}

//! Checks and measurements of a GPU.

use super::{Executor, Running};
use crate::error::Result;
use crate::ops::{KernelGroup, Op};
use crate::simd::Cpu;

/// A run whose result is on the way to the host unless the driver refused a kernel, and the names of its kernels.
pub(crate) type Started = (Result<Running>, Vec<&'static str>);

impl Executor {
    /// Starts an operation on a wgpu GPU for a check, by the kernel named `raced` if it has one of that name. Returns
    /// `None` on another back-end.
    pub(crate) fn start(
        &self,
        op: &Op,
        inputs: &[&[f32]],
        len: usize,
        raced: Option<&'static str>,
    ) -> Result<Option<Started>> {
        match self {
            Self::Gpu(gpu) => with_gpu!(gpu, {
                let (running, kernels) = gpu.start(op, inputs, len, raced)?;
                Ok(Some((running.map(|run| Running(Some(run))), kernels)))
            }),
            Self::Cpu(_) | Self::Cuda(_) => Ok(None),
        }
    }

    /// Turns a group of kernels on or off. Returns whether the back-end has the group and its state changed.
    pub(crate) fn switch(&self, group: KernelGroup, on: bool) -> bool {
        match self {
            Self::Gpu(gpu) => with_gpu!(gpu, gpu.switch(group, on)),
            Self::Cpu(_) | Self::Cuda(_) => false,
        }
    }

    /// Returns the thresholds that were measured for this GPU beside a CPU.
    pub(crate) fn measured_thresholds(&self, cpu: Cpu) -> Option<[u64; 7]> {
        match self {
            Self::Gpu(gpu) => with_gpu!(gpu, gpu.measured_thresholds(&word(cpu))),
            Self::Cpu(_) | Self::Cuda(_) => None,
        }
    }

    /// Stores the thresholds that were measured for this GPU beside a CPU.
    pub(crate) fn remember_thresholds(&self, cpu: Cpu, thresholds: [u64; 7]) {
        if let Self::Gpu(gpu) = self {
            with_gpu!(gpu, gpu.remember_thresholds(&word(cpu), thresholds));
        }
    }
}

/// Returns a word that names a CPU's instructions and threads.
#[cfg(feature = "gpu")]
fn word(cpu: Cpu) -> String {
    let instructions = cpu.isa.name().replace(' ', "_");
    format!("{instructions}-{}", cpu.threads)
}

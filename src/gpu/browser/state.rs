//! The part of a device's state that depends on the target.

use std::time::Duration;

use crate::gpu::context::Gpu;
use crate::gpu::health::Health;

/// The part of a device's state that only native targets have: nothing.
pub(in crate::gpu) struct TargetState;

impl TargetState {
    pub(in crate::gpu) fn new(_: &wgpu::Device, _: &wgpu::Queue, _: &Health) -> Self {
        Self
    }
}

impl Gpu {
    /// Does nothing: browsers answer by themselves.
    #[allow(clippy::unused_self)] // Native targets wait.
    pub(in crate::gpu) fn wait(&self, _: Option<wgpu::SubmissionIndex>) {}

    /// Does nothing, because browsers do not wait.
    #[allow(clippy::unused_self)] // Native targets wait.
    pub(crate) fn set_wait_limit(&mut self, _: Option<Duration>) {}
}

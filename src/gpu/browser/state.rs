//! The part of a device's state that depends on the target.

/// The part of a device's state that only native targets have: nothing.
pub(in crate::gpu) struct TargetState;

impl TargetState {
    pub(in crate::gpu) fn new(_: &wgpu::Device, _: &wgpu::Queue) -> Self {
        Self
    }
}

//! Profiles, which there are none of in browsers.

use crate::gpu::context::Gpu;
use crate::gpu::timestamps::Timestamps;

/// A submission's timestamps for a profiler. Browsers have none.
pub(in crate::gpu) struct Profiled {
    pub(in crate::gpu) stamps: Timestamps,
}

impl Gpu {
    /// Submits commands.
    pub(in crate::gpu) fn submit(
        &self,
        commands: wgpu::CommandBuffer,
        _: Option<Profiled>,
    ) -> wgpu::SubmissionIndex {
        self.queue.submit([commands])
    }
}

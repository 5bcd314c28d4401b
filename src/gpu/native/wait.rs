//! Waiting for a GPU, which may never answer: custom kernels can loop for ever, and drivers can deadlock.

use std::time::Duration;

use crate::gpu::context::Gpu;
use crate::gpu::health::Health;

/// The time after which a GPU that has not finished counts as lost, unless the builder sets another. Software adapters
/// take minutes for work that a GPU does in a second.
pub(in crate::gpu) const WAIT_LIMIT: Duration = Duration::from_mins(10);

impl Gpu {
    /// Waits until the GPU has finished a submission, or all of them. After the limit the device counts as lost.
    pub(in crate::gpu) fn wait(&self, submission: Option<wgpu::SubmissionIndex>) {
        wait(
            &self.device,
            &self.health,
            submission,
            self.state.wait_limit,
        );
    }

    /// Returns a function that waits as [`Gpu::wait`] does, on any thread, without keeping the rest of the device.
    pub(in crate::gpu) fn wait_elsewhere(
        &self,
        submission: Option<wgpu::SubmissionIndex>,
    ) -> impl FnOnce() + Send + 'static {
        let (device, health) = (self.device.clone(), self.health.clone());
        let limit = self.state.wait_limit;
        move || wait(&device, &health, submission, limit)
    }

    /// Sets the limit of [`Gpu::wait`].
    pub(crate) fn set_wait_limit(&mut self, limit: Option<Duration>) {
        self.state.wait_limit = limit.unwrap_or(WAIT_LIMIT);
    }
}

/// Waits as [`Gpu::wait`] does.
pub(in crate::gpu) fn wait(
    device: &wgpu::Device,
    health: &Health,
    submission_index: Option<wgpu::SubmissionIndex>,
    limit: Duration,
) {
    if health.has_given_up() {
        return;
    }
    let wait = wgpu::PollType::Wait {
        submission_index,
        timeout: Some(limit),
    };
    // Other errors are those of a lost device, which its callback reports.
    if let Err(wgpu::PollError::Timeout) = device.poll(wait) {
        health.give_up(limit);
    }
}

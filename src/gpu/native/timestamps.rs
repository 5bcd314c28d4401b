//! Timestamps around every dispatch, while someone profiles.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::Result;
use crate::gpu::context::Gpu;
use crate::gpu::readback::Readback;
use crate::gpu::timestamps::{Timestamps, ticks};
use crate::runtime::block_on;

/// The time at which a kernel ran, by the GPU's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelTime {
    /// The kernel's name: that of the operation, or of a step of it.
    pub kernel: &'static str,
    /// The start, relative to the start of the profile's first kernel.
    pub start: Duration,
    /// The duration.
    pub duration: Duration,
}

#[derive(Default)]
pub(in crate::gpu) struct Stamps {
    timing: Mutex<Timing>,
}

#[derive(Default)]
struct Timing {
    /// The number of profilers so far; the last one owns the timed submissions.
    profilers: u64,
    /// The submissions timed since profiling began; `None` if no profiler is active.
    submissions: Option<Vec<Submission>>,
}

/// One submission's timestamps, for a profiler.
pub(in crate::gpu) struct Submission {
    kernels: Vec<&'static str>,
    pub(in crate::gpu) stamps: Timestamps,
}

impl Gpu {
    /// Starts timing every dispatch, and discards earlier times. Returns the profiler's number.
    pub(crate) fn start_profiling(&self) -> Result<u64> {
        self.check_timestamps()?;
        let mut timing = self.lock_stamps();
        timing.profilers += 1;
        timing.submissions = Some(Vec::new());
        Ok(timing.profilers)
    }

    /// Stops timing for a profiler. Returns the timed submissions, or none if another profiler has
    /// taken over.
    fn take_timed(&self, profiler: u64) -> Vec<Submission> {
        let mut timing = self.lock_stamps();
        let is_last = timing.profilers == profiler;
        let timed = timing.submissions.take_if(|_| is_last);
        timed.unwrap_or_default()
    }

    /// Stops timing for a dropped profiler, and releases its times.
    pub(crate) fn stop_profiling(&self, profiler: u64) {
        drop(self.take_timed(profiler));
    }

    /// Returns the query sets for a submission of these kernels, if a profiler is active.
    pub(in crate::gpu) fn stamps_for(
        &self,
        kernels: impl Iterator<Item = &'static str>,
    ) -> Option<Submission> {
        let profiling = self.lock_stamps().submissions.is_some();
        profiling.then(|| {
            let kernels: Vec<_> = kernels.collect();
            let stamps = Timestamps::new(&self.device, kernels.len());
            Submission { kernels, stamps }
        })
    }

    /// Submits commands, and keeps the timestamps that they leave.
    pub(in crate::gpu) fn submit(
        &self,
        commands: wgpu::CommandBuffer,
        stamps: Option<Submission>,
    ) -> wgpu::SubmissionIndex {
        let Some(stamps) = stamps else {
            return self.queue.submit([commands]);
        };
        // Nobody reads timestamps that are still to be taken, and they are kept in order.
        let mut timing = self.lock_stamps();
        let submission = self.queue.submit([commands]);
        if let Some(submissions) = &mut timing.submissions {
            submissions.push(stamps);
        }
        submission
    }

    /// Stops timing and returns the times in the order of submission.
    pub(crate) fn finish_profiling(self: &Arc<Self>, profiler: u64) -> Result<Vec<KernelTime>> {
        let mut times = Vec::new();
        let mut first = None;
        for submission in &self.take_timed(profiler) {
            let mut ticks = Vec::new();
            for buffer in submission.stamps.ticks() {
                ticks.extend(self.read_ticks(buffer)?);
            }
            for (kernel, &[start, end]) in submission.kernels.iter().zip(ticks.as_chunks().0) {
                let origin = *first.get_or_insert(start);
                let span = |from: u64, to: u64| self.duration(to.saturating_sub(from));
                times.push(KernelTime {
                    kernel,
                    start: span(origin, start),
                    duration: span(start, end),
                });
            }
        }
        Ok(times)
    }

    /// Copies ticks to the host, and waits for them.
    fn read_ticks(self: &Arc<Self>, buffer: &wgpu::Buffer) -> Result<Vec<u64>> {
        let descriptor = wgpu::CommandEncoderDescriptor::default();
        let mut encoder = self.device.create_command_encoder(&descriptor);
        let mut readback = Readback::copy(self, buffer, &mut encoder)?;
        readback.start(&self.queue.submit([encoder.finish()]));
        block_on(readback.arrived())?;
        Ok(readback.look(|view| ticks(&view))?.unwrap_or_default())
    }

    fn lock_stamps(&self) -> MutexGuard<'_, Timing> {
        let locked = self.state.stamps.timing.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

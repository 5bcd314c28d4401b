//! Timestamps around every dispatch, while someone profiles.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::gpu::context::Gpu;

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

/// Most dispatches that one query set times: it holds 4,096 timestamps.
const MAX_TIMED: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;

#[derive(Default)]
pub(in crate::gpu) struct Stamps {
    timing: Mutex<Timing>,
}

#[derive(Default)]
struct Timing {
    /// The number of profilers so far; the last one owns the timed submissions.
    profilers: u64,
    /// The submissions timed since profiling began; `None` if nobody profiles.
    submissions: Option<Vec<Submission>>,
}

/// One submission's timestamps.
pub(in crate::gpu) struct Submission {
    kernels: Vec<&'static str>,
    /// Query sets of [`MAX_TIMED`] kernels each; the last may have fewer.
    sets: Vec<Set>,
}

struct Set {
    queries: wgpu::QuerySet,
    ticks: wgpu::Buffer,
}

impl Submission {
    pub(in crate::gpu) fn new(
        device: &wgpu::Device,
        kernels: impl Iterator<Item = &'static str>,
    ) -> Self {
        let kernels: Vec<_> = kernels.collect();
        let sets = kernels.chunks(MAX_TIMED);
        let sets = sets.map(|kernels| Set::new(device, 2 * kernels.len() as u32));
        let sets = sets.collect();
        Self { kernels, sets }
    }

    /// Returns the timestamp writes for a dispatch's pass.
    pub(in crate::gpu) fn around(
        &self,
        dispatch: usize,
    ) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let first = 2 * (dispatch % MAX_TIMED) as u32;
        let set = self.sets.get(dispatch / MAX_TIMED)?;
        Some(wgpu::ComputePassTimestampWrites {
            query_set: &set.queries,
            beginning_of_pass_write_index: Some(first),
            end_of_pass_write_index: Some(first + 1),
        })
    }

    pub(in crate::gpu) fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        for Set { queries, ticks } in &self.sets {
            encoder.resolve_query_set(queries, 0..(ticks.size() / 8) as u32, ticks, 0);
        }
    }
}

impl Set {
    fn new(device: &wgpu::Device, count: u32) -> Self {
        let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count,
        });
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let ticks = buffer(device, count, usage);
        Self { queries, ticks }
    }
}

fn buffer(device: &wgpu::Device, ticks: u32, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: u64::from(ticks) * 8,
        usage,
        mapped_at_creation: false,
    })
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

    /// Returns an error if the adapter has no timestamps.
    pub(in crate::gpu) fn check_timestamps(&self) -> Result<()> {
        let features = self.device.features();
        if features.contains(wgpu::Features::TIMESTAMP_QUERY) {
            return Ok(());
        }
        Err(Error::Gpu {
            message: format!("{} keeps no timestamps", self.adapter.name),
        })
    }

    /// Waits for a submission, and returns the time of each of its dispatches.
    pub(in crate::gpu) fn durations(&self, submission: &Submission) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        for set in &submission.sets {
            for &[start, end] in self.read_ticks(&set.ticks)?.as_chunks().0 {
                times.push(self.ticks(end.saturating_sub(start)));
            }
        }
        Ok(times)
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
        profiling.then(|| Submission::new(&self.device, kernels))
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
    pub(crate) fn finish_profiling(&self, profiler: u64) -> Result<Vec<KernelTime>> {
        let mut times = Vec::new();
        let mut first = None;
        for submission in &self.take_timed(profiler) {
            let mut ticks = Vec::new();
            for set in &submission.sets {
                ticks.extend(self.read_ticks(&set.ticks)?);
            }
            for (kernel, &[start, end]) in submission.kernels.iter().zip(ticks.as_chunks().0) {
                let origin = *first.get_or_insert(start);
                let span = |from: u64, to: u64| self.ticks(to.saturating_sub(from));
                times.push(KernelTime {
                    kernel,
                    start: span(origin, start),
                    duration: span(start, end),
                });
            }
        }
        Ok(times)
    }

    fn ticks(&self, ticks: u64) -> Duration {
        let nanoseconds = ticks as f64 * f64::from(self.queue.get_timestamp_period());
        Duration::from_nanos(nanoseconds as u64)
    }

    fn read_ticks(&self, ticks: &wgpu::Buffer) -> Result<Vec<u64>> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = buffer(&self.device, (ticks.size() / 8) as u32, usage);
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(ticks, 0, &staging, 0, None);
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |_| ());
        let polled = self.device.poll(wgpu::PollType::wait_indefinitely());
        let refused = |message: String| self.check().and(Err(Error::Gpu { message }));
        if let Err(error) = polled {
            return refused(error.to_string());
        }
        match staging.get_mapped_range(..) {
            Ok(view) => Ok(view
                .as_chunks::<8>()
                .0
                .iter()
                .map(|bytes| u64::from_le_bytes(*bytes))
                .collect()),
            Err(error) => refused(error.to_string()),
        }
    }

    fn lock_stamps(&self) -> MutexGuard<'_, Timing> {
        let locked = self.state.stamps.timing.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

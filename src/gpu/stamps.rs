//! Timestamps around every dispatch, while someone profiles.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::context::Gpu;
use crate::error::{Error, Result};
use crate::profile::KernelTime;

/// Most dispatches of one submission that are timed: a query set holds 4,096 timestamps.
const MAX_TIMED: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;

/// What was timed since profiling began; `None` while nobody profiles.
#[derive(Default)]
pub(super) struct Stamps {
    submissions: Mutex<Option<Vec<Submission>>>,
}

/// One submission's timestamps.
pub(super) struct Submission {
    kernels: Vec<&'static str>,
    queries: wgpu::QuerySet,
    ticks: wgpu::Buffer,
}

impl Submission {
    fn new(device: &wgpu::Device, kernels: impl Iterator<Item = &'static str>) -> Self {
        let kernels: Vec<_> = kernels.take(MAX_TIMED).collect();
        let count = 2 * kernels.len() as u32;
        let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count,
        });
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let ticks = buffer(device, count, usage);
        Self {
            kernels,
            queries,
            ticks,
        }
    }

    /// Where the dispatch's pass leaves its timestamps.
    pub(super) fn around(&self, dispatch: usize) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let first = 2 * dispatch as u32;
        (dispatch < self.kernels.len()).then_some(wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: Some(first),
            end_of_pass_write_index: Some(first + 1),
        })
    }

    pub(super) fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        let count = 2 * self.kernels.len() as u32;
        encoder.resolve_query_set(&self.queries, 0..count, &self.ticks, 0);
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
    /// Times every dispatch from now on, and forgets what was timed before.
    pub(crate) fn start_profiling(&self) -> Result<()> {
        let features = self.device.features();
        if !features.contains(wgpu::Features::TIMESTAMP_QUERY) {
            return Err(Error::Gpu {
                message: format!("{} keeps no timestamps", self.adapter.name),
            });
        }
        *self.lock_stamps() = Some(Vec::new());
        Ok(())
    }

    /// What a submission of these kernels leaves its timestamps in, while someone profiles.
    pub(super) fn stamps_for(
        &self,
        kernels: impl Iterator<Item = &'static str>,
    ) -> Option<Submission> {
        let profiling = self.lock_stamps().is_some();
        profiling.then(|| Submission::new(&self.device, kernels))
    }

    /// Submits commands, and keeps the timestamps that they leave.
    pub(super) fn submit(
        &self,
        commands: wgpu::CommandBuffer,
        stamps: Option<Submission>,
    ) -> wgpu::SubmissionIndex {
        let Some(stamps) = stamps else {
            return self.queue.submit([commands]);
        };
        // Nobody reads timestamps that are still to be taken, and they are kept in order.
        let mut submissions = self.lock_stamps();
        let submission = self.queue.submit([commands]);
        if let Some(submissions) = &mut *submissions {
            submissions.push(stamps);
        }
        submission
    }

    /// Stops timing; what was timed, in the order of submission.
    pub(crate) fn finish_profiling(&self) -> Result<Vec<KernelTime>> {
        let submissions = self.lock_stamps().take().unwrap_or_default();
        let mut times = Vec::new();
        let mut first = None;
        for submission in &submissions {
            let ticks = self.read_ticks(&submission.ticks)?;
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

    fn lock_stamps(&self) -> std::sync::MutexGuard<'_, Option<Vec<Submission>>> {
        let locked = self.stamps.submissions.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

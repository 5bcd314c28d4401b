//! Timestamps around dispatches.

use std::time::Duration;

use super::context::Gpu;
use super::readback::Readback;
use crate::error::{Error, Result};

/// Most dispatches that one query set times: it holds 4,096 timestamps.
const MAX_TIMED: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;

/// The timestamps of a submission's dispatches, in query sets of [`MAX_TIMED`] dispatches each; the last may have fewer.
pub(super) struct Timestamps(Vec<Set>);

struct Set {
    queries: wgpu::QuerySet,
    ticks: wgpu::Buffer,
}

impl Timestamps {
    pub(super) fn new(device: &wgpu::Device, dispatches: usize) -> Self {
        let firsts = (0..dispatches).step_by(MAX_TIMED);
        let sets = firsts.map(|first| {
            let dispatches = (dispatches - first).min(MAX_TIMED);
            Set::new(device, 2 * dispatches as u32)
        });
        Self(sets.collect())
    }

    /// Returns the timestamp writes for a dispatch's pass.
    pub(super) fn around(&self, dispatch: usize) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let first = 2 * (dispatch % MAX_TIMED) as u32;
        let set = self.0.get(dispatch / MAX_TIMED)?;
        Some(wgpu::ComputePassTimestampWrites {
            query_set: &set.queries,
            beginning_of_pass_write_index: Some(first),
            end_of_pass_write_index: Some(first + 1),
        })
    }

    pub(super) fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        for Set { queries, ticks } in &self.0 {
            encoder.resolve_query_set(queries, 0..(ticks.size() / 8) as u32, ticks, 0);
        }
    }

    /// The buffers with the ticks at the start and at the end of each dispatch, 64 bits each.
    pub(super) fn ticks(&self) -> impl Iterator<Item = &wgpu::Buffer> {
        self.0.iter().map(|set| &set.ticks)
    }
}

impl Set {
    fn new(device: &wgpu::Device, count: u32) -> Self {
        let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count,
        });
        let ticks = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: u64::from(count) * 8,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        Self { queries, ticks }
    }
}

/// The ticks in a buffer's bytes.
pub(super) fn ticks(bytes: &[u8]) -> Vec<u64> {
    let ticks = bytes.as_chunks::<8>().0.iter();
    ticks.map(|&tick| u64::from_le_bytes(tick)).collect()
}

impl Gpu {
    /// Returns an error if the adapter has no timestamps.
    pub(super) fn check_timestamps(&self) -> Result<()> {
        let features = self.device.features();
        if features.contains(wgpu::Features::TIMESTAMP_QUERY) {
            return Ok(());
        }
        Err(Error::Gpu {
            message: format!("{} keeps no timestamps", self.adapter.name),
        })
    }

    /// Converts ticks to time.
    pub(super) fn duration(&self, ticks: u64) -> Duration {
        let nanoseconds = ticks as f64 * f64::from(self.queue.get_timestamp_period());
        Duration::from_nanos(nanoseconds as u64)
    }

    /// Returns the time of each dispatch, from ticks that have arrived.
    pub(super) fn durations(&self, arrived: &[Readback]) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        for readback in arrived {
            let ticks = readback.look(|view| ticks(&view))?.unwrap_or_default();
            let spans = ticks.as_chunks().0.iter();
            times.extend(spans.map(|&[start, end]| self.duration(end.saturating_sub(start))));
        }
        Ok(times)
    }
}

//! Copies results from the GPU to the host, without blocking an async caller.

#[cfg_attr(target_arch = "wasm32", path = "readback/browser.rs")]
#[cfg_attr(not(target_arch = "wasm32"), path = "readback/native.rs")]
mod target;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::context::Gpu;
use super::pool::{PooledBuffer, Usage};
use super::recorder::GpuBuffer;
use crate::error::{Error, Result};
use crate::graph::Fetched;

/// A buffer that a submission writes, itself or by a copy, mapped once the values are there.
pub(crate) struct Readback {
    gpu: Arc<Gpu>,
    /// `None` where there are no values.
    staging: Option<Arc<PooledBuffer>>,
    len: usize,
    mapping: Arc<Mapping>,
    submission: Option<wgpu::SubmissionIndex>,
}

/// The state shared with wgpu's mapping callback.
#[derive(Default)]
struct Mapping {
    state: Mutex<MappingState>,
}

#[derive(Default)]
struct MappingState {
    result: Option<Result<(), wgpu::BufferAsyncError>>,
    waker: Option<Waker>,
    /// The buffer of a readback that was dropped before wgpu answered.
    abandoned: Option<Arc<PooledBuffer>>,
}

impl Mapping {
    fn lock(&self) -> std::sync::MutexGuard<'_, MappingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, result: Result<(), wgpu::BufferAsyncError>) {
        let (waker, abandoned) = {
            let mut state = self.lock();
            state.result = Some(result);
            (state.waker.take(), state.abandoned.take())
        };
        if let Some(staging) = abandoned {
            self.release(staging);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Unmaps a buffer and lets go of it, now or as soon as wgpu answers.
    ///
    /// A mapping that is under way is never cancelled. wgpu lists the buffer with the submission that
    /// wrote it and maps whatever is asked of that buffer when this submission ends: a later user's
    /// mapping would be answered before the later work is done.
    fn release(&self, staging: Arc<PooledBuffer>) {
        let mut state = self.lock();
        match state.result {
            None => state.abandoned = Some(staging),
            Some(Ok(())) => {
                drop(state);
                staging.unmap();
            }
            Some(Err(_)) => {
                drop(state);
                staging.discard();
            }
        }
    }
}

impl Readback {
    /// Records the copy out of `source`, if it takes one.
    pub(super) fn record(
        gpu: &Arc<Gpu>,
        source: &GpuBuffer,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<Self> {
        let mut staging = None;
        if source.is_mappable() {
            staging = Some(source.storage.clone());
        } else if source.len > 0 {
            staging = Some(copied(gpu, source.raw(), source.len, encoder)?);
        }
        Ok(Self::of(gpu, staging, source.len))
    }

    /// Records the copy of a buffer that has bytes of any kind.
    pub(super) fn copy(
        gpu: &Arc<Gpu>,
        source: &wgpu::Buffer,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<Self> {
        let len = source.size() as usize / 4;
        let staging = copied(gpu, source, len, encoder)?;
        Ok(Self::of(gpu, Some(staging), len))
    }

    fn of(gpu: &Arc<Gpu>, staging: Option<Arc<PooledBuffer>>, len: usize) -> Self {
        Self {
            gpu: gpu.clone(),
            staging,
            len,
            mapping: Arc::default(),
            submission: None,
        }
    }

    /// Asks for the mapping, after the submission.
    pub(super) fn start(&mut self, submission: &wgpu::SubmissionIndex) {
        let Some(staging) = &self.staging else {
            self.mapping.finish(Ok(()));
            return;
        };
        let mapping = self.mapping.clone();
        let slice = staging.buffer.slice(..self.len as u64 * 4);
        slice.map_async(wgpu::MapMode::Read, move |result| mapping.finish(result));
        self.submission = Some(submission.clone());
    }

    /// Waits until the values are there.
    pub(super) async fn arrived(&self) -> Result<()> {
        self.ask().await;
        let arrival = Arrival {
            readback: self,
            watched: false,
        };
        arrival.await
    }

    /// The values, which must have arrived.
    pub(super) fn fetched(&self) -> Result<Fetched> {
        #[cfg(not(all(target_arch = "wasm32", feature = "js")))]
        return self.values();
        #[cfg(all(target_arch = "wasm32", feature = "js"))]
        self.array()
    }

    /// Shows the values' bytes, if there are any.
    pub(super) fn look<T>(&self, f: impl FnOnce(wgpu::BufferView) -> T) -> Result<Option<T>> {
        let Some(staging) = &self.staging else {
            return Ok(None);
        };
        let slice = staging.buffer.slice(..self.len as u64 * 4);
        match slice.get_mapped_range() {
            Ok(view) => Ok(Some(f(view))),
            Err(error) => {
                // The device may be lost since the values arrived, and its buffers with it.
                self.gpu.deliver_callbacks();
                let message = error.to_string();
                self.gpu.check().and(Err(Error::Gpu { message }))
            }
        }
    }
}

/// Records the copy of a buffer's first `len` words to one that the host can map.
fn copied(
    gpu: &Gpu,
    source: &wgpu::Buffer,
    len: usize,
    encoder: &mut wgpu::CommandEncoder,
) -> Result<Arc<PooledBuffer>> {
    let target = gpu.pool.take(Usage::Staging, len)?;
    encoder.copy_buffer_to_buffer(source, 0, &target.buffer, 0, len as u64 * 4);
    Ok(Arc::new(target))
}

impl Drop for Readback {
    fn drop(&mut self) {
        if let Some(staging) = self.staging.take() {
            self.mapping.release(staging);
        }
    }
}

struct Arrival<'r> {
    readback: &'r Readback,
    watched: bool,
}

impl Future for Arrival<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let readback = self.readback;
        if readback.mapping.lock().result.is_none() {
            readback.mapping.lock().waker = Some(context.waker().clone());
            readback.watch(self.watched);
            self.watched = true;
        }
        let result = readback.mapping.lock().result.clone();
        match result {
            None => Poll::Pending,
            Some(Ok(())) => Poll::Ready(Ok(())),
            Some(Err(error)) => {
                readback.gpu.deliver_callbacks();
                let fallback = Error::Gpu {
                    message: format!("the result could not be read: {error}"),
                };
                Poll::Ready(readback.gpu.health.check().and(Err(fallback)))
            }
        }
    }
}

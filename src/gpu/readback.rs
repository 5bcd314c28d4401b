//! Results on their way from the GPU to the host, without blocking an async caller.

use std::mem::MaybeUninit;
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
    #[cfg(not(target_arch = "wasm32"))]
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
            let target = gpu.pool.take(Usage::Staging, source.len)?;
            let size = source.len as u64 * 4;
            encoder.copy_buffer_to_buffer(source.raw(), 0, &target.buffer, 0, size);
            staging = Some(Arc::new(target));
        }
        Ok(Self {
            gpu: gpu.clone(),
            staging,
            len: source.len,
            mapping: Arc::default(),
            #[cfg(not(target_arch = "wasm32"))]
            submission: None,
        })
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
        #[cfg(not(target_arch = "wasm32"))]
        {
            self.submission = Some(submission.clone());
        }
        #[cfg(target_arch = "wasm32")]
        let _ = submission;
    }

    /// Waits until the values are there.
    pub(super) async fn arrived(&self) -> Result<()> {
        #[cfg(target_arch = "wasm32")]
        self.ask().await;
        let arrival = Arrival {
            readback: self,
            watched: false,
        };
        arrival.await
    }

    /// Browsers look whether work is done whenever they are called, and else milliseconds apart.
    /// An empty error scope is the cheapest call that answers.
    #[cfg(target_arch = "wasm32")]
    async fn ask(&self) {
        for _ in 0..QUESTIONS {
            if self.mapping.lock().result.is_some() {
                return;
            }
            let scope = self
                .gpu
                .device
                .push_error_scope(wgpu::ErrorFilter::Internal);
            scope.pop().await;
        }
    }

    /// A copy of the values, which must have arrived.
    pub(crate) fn values(&self) -> Result<Vec<f32>> {
        #[cfg(not(target_arch = "wasm32"))]
        // SAFETY: there are as many places as values.
        return unsafe { crate::alloc::try_written(self.len, |places| self.write_to(places)) };
        #[cfg(target_arch = "wasm32")]
        {
            let mut values = crate::alloc::try_zeros(self.len)?;
            self.copy_to(&mut values)?;
            Ok(values)
        }
    }

    /// The values, which must have arrived.
    pub(super) fn fetched(&self) -> Result<Fetched> {
        #[cfg(not(all(target_arch = "wasm32", feature = "js")))]
        return self.values();
        #[cfg(all(target_arch = "wasm32", feature = "js"))]
        self.array()
    }

    /// Copies the values, which must have arrived, to `out`, which is as long.
    pub(crate) fn copy_to(&self, out: &mut [f32]) -> Result<()> {
        #[cfg(not(target_arch = "wasm32"))]
        {
            // SAFETY: nothing but values is written there.
            self.write_to(unsafe { crate::alloc::as_places(out) })
        }
        // As bytes of Rust's they would be copied once more.
        #[cfg(target_arch = "wasm32")]
        {
            let seen = self.look(|view| {
                view.as_uint8array()
                    .copy_to(bytemuck::cast_slice_mut(&mut out[..self.len]));
            });
            seen.map(drop)
        }
    }

    fn write_to(&self, places: &mut [MaybeUninit<f32>]) -> Result<()> {
        let seen = self.look(|view| super::transfer::read(&view, places));
        seen.map(drop)
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

    #[cfg(not(target_arch = "wasm32"))]
    fn watch(&self, already_watched: bool) {
        let wait = wgpu::PollType::Wait {
            submission_index: self.submission.clone(),
            timeout: None,
        };
        if crate::runtime::is_blocking() {
            self.wait_here(wait);
        } else if !already_watched {
            let device = self.gpu.device.clone();
            let mapping = self.mapping.clone();
            let thread = std::thread::Builder::new().name("relampago-readback".into());
            let watcher = thread.spawn(move || {
                let _ = device.poll(wait);
                // Another thread's poll may have found the mapping done, and be about to call back.
                let start = std::time::Instant::now();
                while mapping.lock().result.is_none() && start.elapsed() < PATIENCE {
                    std::thread::sleep(ATTENTIVE / 10);
                }
                // wgpu calls back even where the device is lost; if it ever does not, the
                // waiting task must learn it all the same.
                if mapping.lock().result.is_none() {
                    mapping.finish(Err(wgpu::BufferAsyncError));
                }
            });
            if watcher.is_err() {
                let _ = self.gpu.device.poll(wgpu::PollType::wait_indefinitely());
            }
        }
    }
}

/// A tenth of a millisecond each: longer work need not be known to be done at once.
#[cfg(target_arch = "wasm32")]
const QUESTIONS: usize = 50;

/// The time for which a waiting thread polls. A wake-up takes up to 40 µs, as long as the rest of a
/// small operation.
const ATTENTIVE: std::time::Duration = std::time::Duration::from_millis(1);

/// The time for which a watching thread waits for another thread's callback.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

#[cfg(not(target_arch = "wasm32"))]
impl Readback {
    /// Waits on the caller's thread, which has nothing else to do. A software adapter has: its
    /// threads need the processor.
    fn wait_here(&self, wait: wgpu::PollType) {
        let start = std::time::Instant::now();
        while !self.gpu.adapter.software && start.elapsed() < ATTENTIVE {
            let _ = self.gpu.device.poll(wgpu::PollType::Poll);
            if self.mapping.lock().result.is_some() {
                return;
            }
            std::hint::spin_loop();
        }
        let _ = self.gpu.device.poll(wait);
    }
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
            #[cfg(not(target_arch = "wasm32"))]
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

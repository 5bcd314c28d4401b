//! Events: points in the work of a stream.

use super::context::Context;
use super::driver::check;
use super::error::Result;
use cudarc::driver::sys::{self, CUevent_flags};
use std::sync::Arc;
use std::time::Duration;

/// An event of the driver.
#[derive(Debug)]
pub(super) struct RawEvent {
    context: Arc<Context>,
    pub(super) handle: sys::CUevent,
}

// SAFETY: the driver takes calls on an event from any thread.
unsafe impl Send for RawEvent {}
// SAFETY: see `Send`.
unsafe impl Sync for RawEvent {}

impl Drop for RawEvent {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: this owns the event. The driver keeps it alive for work that still waits for
            // it.
            let _ = unsafe { sys::cuEventDestroy_v2(self.handle) };
        }
    }
}

impl RawEvent {
    /// Creates an event without a timestamp, which costs less.
    pub(super) fn untimed(context: &Arc<Context>) -> Result<Self> {
        Self::new(context, CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn new(context: &Arc<Context>, flags: CUevent_flags) -> Result<Self> {
        context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointer is to a living handle.
        check("cuEventCreate", unsafe {
            sys::cuEventCreate(&raw mut handle, flags as u32)
        })?;
        Ok(RawEvent {
            context: context.clone(),
            handle,
        })
    }

    /// Records the event after all work submitted to the stream so far.
    pub(super) fn record(&self, stream: sys::CUstream) -> Result<()> {
        self.context.enter()?;
        // SAFETY: event and stream exist and are of one context.
        check("cuEventRecord", unsafe {
            sys::cuEventRecord(self.handle, stream)
        })
    }

    pub(super) fn wait(&self) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the event exists.
        check("cuEventSynchronize", unsafe {
            sys::cuEventSynchronize(self.handle)
        })
    }

    pub(super) fn is_done(&self) -> Result<bool> {
        self.context.enter()?;
        // SAFETY: the event exists.
        let code = unsafe { sys::cuEventQuery(self.handle) };
        if code == sys::CUresult::CUDA_ERROR_NOT_READY {
            return Ok(false);
        }
        check("cuEventQuery", code).map(|()| true)
    }
}

/// Blocks until all work submitted to a GPU so far has finished, by an event on the default queue.
/// Synchronising the context instead would invalidate the captures of all threads.
pub(super) fn synchronize(context: &Arc<Context>) -> Result<()> {
    let end = RawEvent::untimed(context)?;
    end.record(std::ptr::null_mut())?;
    end.wait()
}

/// A point in the work of a stream ([`super::Stream::record`]), with the time at which it was
/// reached.
#[derive(Debug)]
pub struct Event {
    pub(super) raw: RawEvent,
}

impl Event {
    pub(super) fn record(context: &Arc<Context>, stream: sys::CUstream) -> Result<Self> {
        let raw = RawEvent::new(context, CUevent_flags::CU_EVENT_DEFAULT)?;
        raw.record(stream)?;
        Ok(Event { raw })
    }

    /// Returns whether all work before the event has finished, without blocking.
    ///
    /// # Errors
    /// [`Error::Driver`](super::Error::Driver) if any of that work failed.
    pub fn is_done(&self) -> Result<bool> {
        self.raw.is_done()
    }

    /// Blocks until all work before the event has finished.
    ///
    /// # Errors
    /// [`Error::Driver`](super::Error::Driver) if any of that work failed.
    pub fn wait(&self) -> Result<()> {
        self.raw.wait()
    }

    /// Returns the GPU time from `earlier` to this event, with a resolution of half a microsecond,
    /// and zero if `earlier` came later. Blocks until both are reached.
    ///
    /// # Errors
    /// [`Error::Driver`](super::Error::Driver) if the events belong to different GPUs, or work
    /// before them failed.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        earlier.wait()?;
        self.wait()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: the pointer is to a living number, and both events exist.
        check("cuEventElapsedTime", unsafe {
            sys::cuEventElapsedTime(&raw mut milliseconds, earlier.raw.handle, self.raw.handle)
        })?;
        Ok(Duration::from_secs_f64(
            f64::from(milliseconds.max(0.0)) / 1e3,
        ))
    }
}

//! Queues for work, and the order between them.
//!
//! The default queue is the driver's own: its work waits for all earlier work of the context, and
//! all later work waits for it. Streams are ordered by memory: each allocation stores events of its
//! last uses, and the next use waits for them. A capture runs nothing and records the memory that
//! it uses.

use super::buffer::Memory;
use super::context::Context;
use super::driver::check;
use super::error::{Error, Result};
use super::event::RawEvent;
use super::launch::Loaded;
use cudarc::driver::sys;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The queue of a device's operations.
#[derive(Clone, Debug)]
pub(super) enum Queue {
    Default,
    Stream(Arc<RawStream>),
    Capture(Arc<Recording>),
}

/// A stream of the driver.
#[derive(Debug)]
pub(super) struct RawStream {
    pub(super) context: Arc<Context>,
    pub(super) handle: sys::CUstream,
    /// An id that is never reused, unlike the handle.
    number: u64,
}

// SAFETY: the driver takes calls on a stream from any thread.
unsafe impl Send for RawStream {}
// SAFETY: see `Send`.
unsafe impl Sync for RawStream {}

impl RawStream {
    pub(super) fn new(context: &Arc<Context>, flags: sys::CUstream_flags) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointer is to a living handle.
        check("cuStreamCreate", unsafe {
            sys::cuStreamCreate(&raw mut handle, flags as u32)
        })?;
        Ok(RawStream {
            context: context.clone(),
            handle,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        })
    }
}

impl Drop for RawStream {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: this owns the stream. The driver finishes its pending work after the call,
            // and events report when.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.handle) };
        }
    }
}

/// A read or write of memory by submitted work.
#[derive(Clone, Copy)]
pub(super) struct MemoryUse<'a> {
    pub(super) last_uses: &'a LastUses,
    /// The allocation that captured work keeps alive; `None` for memory that cannot be captured.
    pub(super) memory: Option<&'a Arc<Memory>>,
    pub(super) writes: bool,
}

/// The last uses of an allocation.
#[derive(Debug, Default)]
pub(super) struct LastUses(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    written: Option<WorkEnd>,
    /// The last read of each stream since the write.
    read: Vec<WorkEnd>,
}

/// The number of recorded reads from which finished ones are removed.
const MANY: usize = 16;

/// The end of some work on a stream.
#[derive(Clone, Debug)]
struct WorkEnd {
    stream: u64,
    end: Arc<RawEvent>,
}

impl LastUses {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the uses that must end before the memory is read, or written.
    fn before(&self, writes: bool) -> Vec<WorkEnd> {
        let last = self.last();
        let readers = if writes { &last.read[..] } else { &[] };
        last.written.iter().chain(readers).cloned().collect()
    }

    fn used(&self, mark: WorkEnd, writes: bool) {
        let mut last = self.last();
        if writes {
            last.read.clear();
            last.written = Some(mark);
        } else {
            last.read.retain(|other| other.stream != mark.stream);
            // Memory that is only read would otherwise record every stream that ever existed.
            if last.read.len() >= MANY {
                let done = |other: &WorkEnd| other.end.is_done() == Ok(true);
                last.read.retain(|other| !done(other));
            }
            last.read.push(mark);
        }
    }

    /// Blocks until the memory may be read, or written.
    pub(super) fn wait(&self, writes: bool) -> Result<()> {
        self.before(writes)
            .iter()
            .try_for_each(|mark| mark.end.wait())
    }
}

/// An open capture.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) stream: RawStream,
    pub(super) kept: Mutex<Option<Captured>>,
}

/// The memory and the kernels that captured work uses, which must outlive it.
#[derive(Debug, Default)]
pub(super) struct Captured {
    /// Memory, and whether it is written.
    pub(super) memory: Vec<(Arc<Memory>, bool)>,
    pub(super) kernels: Vec<Arc<Loaded>>,
}

impl Captured {
    fn memory(&mut self, memory: &Arc<Memory>, writes: bool) {
        let known = |(other, _): &&mut (Arc<Memory>, bool)| Arc::ptr_eq(other, memory);
        match self.memory.iter_mut().find(known) {
            Some((_, written)) => *written |= writes,
            None => self.memory.push((memory.clone(), writes)),
        }
    }
}

/// A submission in progress: the stream, and the resources that a capture records.
pub(super) struct Submission<'a> {
    pub(super) stream: sys::CUstream,
    kept: Option<&'a mut Captured>,
}

impl Submission<'_> {
    /// Returns the node that the last submission to a stream that is captured became.
    #[cfg(feature = "llm-core")]
    pub(super) fn last_node(&self) -> Result<sys::CUgraphNode> {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut last, mut count) = (std::ptr::null(), 0);
        // SAFETY: the stream exists, and the pointers are to living values or null.
        check("cuStreamGetCaptureInfo", unsafe {
            sys::cuStreamGetCaptureInfo_v2(
                self.stream,
                &raw mut status,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                &raw mut last,
                &raw mut count,
            )
        })?;
        if count != 1 {
            return Err(Error::CaptureEnded);
        }
        // SAFETY: there is one element, which lives until the next call on the stream.
        Ok(unsafe { *last })
    }

    /// Keeps a kernel alive if the work is captured.
    pub(super) fn keep(&mut self, kernel: &Arc<Loaded>) {
        if let Some(kept) = &mut self.kept {
            kept.kernels.push(kernel.clone());
        }
    }
}

impl Queue {
    /// Submits `work` after the earlier uses of its memory, and records its end.
    pub(super) fn turn(
        &self,
        uses: &[MemoryUse<'_>],
        work: impl FnOnce(&mut Submission<'_>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Queue::Default => work(&mut Submission {
                stream: std::ptr::null_mut(),
                kept: None,
            }),
            Queue::Stream(stream) => stream.turn(uses, work),
            Queue::Capture(recording) => {
                let mut kept = recording
                    .kept
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                let kept = kept.as_mut().ok_or(Error::CaptureEnded)?;
                for used in uses {
                    if let Some(memory) = used.memory {
                        kept.memory(memory, used.writes);
                    }
                }
                work(&mut Submission {
                    stream: recording.stream.handle,
                    kept: Some(kept),
                })
            }
        }
    }
}

impl RawStream {
    fn turn(
        &self,
        uses: &[MemoryUse<'_>],
        work: impl FnOnce(&mut Submission<'_>) -> Result<()>,
    ) -> Result<()> {
        for used in uses {
            for mark in used.last_uses.before(used.writes) {
                if mark.stream != self.number {
                    self.wait_for(&mark.end)?;
                }
            }
        }
        let mut turn = Submission {
            stream: self.handle,
            kept: None,
        };
        if uses.is_empty() {
            return work(&mut turn);
        }
        let mark = WorkEnd {
            stream: self.number,
            end: Arc::new(RawEvent::untimed(&self.context)?),
        };
        // Record the end even if `work` failed: a part of it may have been submitted.
        let done = work(&mut turn);
        if let Err(error) = mark.end.record(self.handle) {
            // Without an event nobody could wait for the work later.
            self.synchronize()?;
            return Err(error);
        }
        for used in uses {
            used.last_uses.used(mark.clone(), used.writes);
        }
        done
    }

    /// Blocks until all work submitted to the stream so far has finished.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the stream exists.
        check("cuStreamSynchronize", unsafe {
            sys::cuStreamSynchronize(self.handle)
        })
    }

    /// Makes later work of the stream wait for the event.
    pub(super) fn wait_for(&self, event: &RawEvent) -> Result<()> {
        self.context.enter()?;
        // SAFETY: stream and event exist; the event may be of another context.
        check("cuStreamWaitEvent", unsafe {
            sys::cuStreamWaitEvent(self.handle, event.handle, 0)
        })
    }
}

//! Where work goes, and what it has to wait for.
//!
//! The default queue is the driver's own, which starts when everything asked of the context before
//! is done, and holds back everything asked later. Streams know no such order: memory remembers by
//! events who used it last, and whoever uses it next waits for that. A capture runs nothing, and
//! remembers what it would have used.

use super::buffer::Memory;
use super::context::Context;
use super::driver::check;
use super::error::{Error, Result};
use super::event::RawEvent;
use super::launch::Loaded;
use cudarc::driver::sys;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a device's operations go.
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
    /// Unlike the handle never used again.
    number: u64,
}

// SAFETY: the driver takes calls on a stream from any thread.
unsafe impl Send for RawStream {}
// SAFETY: as above.
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
            // SAFETY: the stream is its own. What it has still to do is done after this, as the
            // driver promises, and events tell when.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.handle) };
        }
    }
}

/// Memory that work reads or writes.
#[derive(Clone, Copy)]
pub(super) struct Use<'a> {
    pub(super) marks: &'a Marks,
    /// What captured work keeps alive; none for what is never captured.
    pub(super) memory: Option<&'a Arc<Memory>>,
    pub(super) writes: bool,
}

/// Who used a piece of memory last.
#[derive(Debug, Default)]
pub(super) struct Marks(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    written: Option<Mark>,
    /// Since it was written, the last one of each stream.
    read: Vec<Mark>,
}

/// Streams' reads of a piece of memory from which on it is asked which of them are over.
const MANY: usize = 16;

/// The end of some work on a stream.
#[derive(Clone, Debug)]
struct Mark {
    stream: u64,
    end: Arc<RawEvent>,
}

impl Marks {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has to end before the memory is read, or written.
    fn before(&self, writes: bool) -> Vec<Mark> {
        let last = self.last();
        let readers = if writes { &last.read[..] } else { &[] };
        last.written.iter().chain(readers).cloned().collect()
    }

    fn used(&self, mark: Mark, writes: bool) {
        let mut last = self.last();
        if writes {
            last.read.clear();
            last.written = Some(mark);
        } else {
            last.read.retain(|other| other.stream != mark.stream);
            // Streams come and go, and memory that is only read would remember all of them.
            if last.read.len() >= MANY {
                let done = |other: &Mark| other.end.is_done() == Ok(true);
                last.read.retain(|other| !done(other));
            }
            last.read.push(mark);
        }
    }

    /// Has the calling thread wait until the memory may be read, or written.
    pub(super) fn wait(&self, writes: bool) -> Result<()> {
        self.before(writes)
            .iter()
            .try_for_each(|mark| mark.end.wait())
    }
}

/// What a capture has recorded so far; nothing once it has ended.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) stream: RawStream,
    pub(super) kept: Mutex<Option<Kept>>,
}

/// What captured work refers to, and so must outlive it.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Memory, and whether it is written.
    pub(super) memory: Vec<(Arc<Memory>, bool)>,
    pub(super) kernels: Vec<Arc<Loaded>>,
}

impl Kept {
    fn memory(&mut self, memory: &Arc<Memory>, writes: bool) {
        let known = |(other, _): &&mut (Arc<Memory>, bool)| Arc::ptr_eq(other, memory);
        match self.memory.iter_mut().find(known) {
            Some((_, written)) => *written |= writes,
            None => self.memory.push((memory.clone(), writes)),
        }
    }
}

/// The right to ask for work, now.
pub(super) struct Turn<'a> {
    pub(super) stream: sys::CUstream,
    kept: Option<&'a mut Kept>,
}

impl Turn<'_> {
    /// Has captured work keep a kernel.
    pub(super) fn keep(&mut self, kernel: &Arc<Loaded>) {
        if let Some(kept) = &mut self.kept {
            kept.kernels.push(kernel.clone());
        }
    }
}

impl Queue {
    /// Asks for `work` after all that must be done before, and remembers its end.
    pub(super) fn turn(
        &self,
        uses: &[Use<'_>],
        work: impl FnOnce(&mut Turn<'_>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Queue::Default => work(&mut Turn {
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
                work(&mut Turn {
                    stream: recording.stream.handle,
                    kept: Some(kept),
                })
            }
        }
    }
}

impl RawStream {
    fn turn(&self, uses: &[Use<'_>], work: impl FnOnce(&mut Turn<'_>) -> Result<()>) -> Result<()> {
        for used in uses {
            for mark in used.marks.before(used.writes) {
                if mark.stream != self.number {
                    self.wait_for(&mark.end)?;
                }
            }
        }
        let mut turn = Turn {
            stream: self.handle,
            kept: None,
        };
        if uses.is_empty() {
            return work(&mut turn);
        }
        let mark = Mark {
            stream: self.number,
            end: Arc::new(RawEvent::untimed(&self.context)?),
        };
        // Half of work that failed may be under way, too.
        let done = work(&mut turn);
        if let Err(error) = mark.end.record(self.handle) {
            // Nobody could wait for it later.
            self.synchronize()?;
            return Err(error);
        }
        for used in uses {
            used.marks.used(mark.clone(), used.writes);
        }
        done
    }

    /// Has the calling thread wait for everything asked of the stream so far.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the stream exists.
        check("cuStreamSynchronize", unsafe {
            sys::cuStreamSynchronize(self.handle)
        })
    }

    /// Nothing asked of the stream later starts before the event.
    pub(super) fn wait_for(&self, event: &RawEvent) -> Result<()> {
        self.context.enter()?;
        // SAFETY: stream and event exist; the event may be of another context.
        check("cuStreamWaitEvent", unsafe {
            sys::cuStreamWaitEvent(self.handle, event.handle, 0)
        })
    }
}

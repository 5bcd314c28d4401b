//! Steps that run when their pass is submitted, in slices of work that the threads of all passes share.

use super::threads::Threads;
use super::{Elements, Span};
use crate::alloc::try_resize;
use crate::error::{Error, Result};
use crate::runtime::{Slice, pause};
use crate::simd::Cpu;
use std::ops::Range;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

/// Memory of a pass for values between two kernels of a step.
pub(super) type Scratch = [Vec<f32>; 3];

/// The work of a step, which reads some elements and writes others.
type Work = dyn FnOnce(Cpu, &mut Scratch, &[f32], &mut [f32]) -> Result<()> + Send;

/// A recorded step.
struct RecordedStep {
    from: (Elements, Range<usize>),
    to: (Elements, Range<usize>),
    work: Box<Work>,
    /// Whether it may take as long as a slice of work.
    may_be_long: bool,
}

/// Steps of a pass over tokens of a sequence.
pub(crate) struct CpuPass {
    cpu: Cpu,
    sequence: u64,
    steps: Vec<RecordedStep>,
}

impl CpuPass {
    pub(super) fn new(cpu: Cpu, sequence: u64) -> Self {
        Self {
            cpu,
            sequence,
            steps: Vec::new(),
        }
    }

    /// Records a step.
    pub(super) fn push(
        &mut self,
        may_be_long: bool,
        (from, read): Span<'_>,
        (to, written): Span<'_>,
        work: impl FnOnce(Cpu, &mut Scratch, &[f32], &mut [f32]) -> Result<()> + Send + 'static,
    ) {
        self.steps.push(RecordedStep {
            from: (from.clone(), read),
            to: (to.clone(), written),
            work: Box::new(work),
            may_be_long,
        });
    }

    /// Runs the steps. Pauses after each [`Slice`] of work.
    pub(super) async fn run(self) -> Result<()> {
        let threads = Threads::new(self.cpu);
        let mut steps = self.steps.into_iter();
        let mut scratch = Scratch::default();
        while steps.len() > 0 {
            threads.run(self.sequence, |threads| {
                let cpu = Cpu {
                    threads,
                    ..self.cpu
                };
                run_slice(cpu, &mut steps, &mut scratch)
            })?;
            if steps.len() > 0 {
                pause().await;
            }
        }
        Ok(())
    }
}

/// Runs steps until a slice of work is over.
fn run_slice(
    cpu: Cpu,
    steps: &mut impl Iterator<Item = RecordedStep>,
    scratch: &mut Scratch,
) -> Result<()> {
    let slice = Slice::new();
    for step in steps {
        let (from, mut to) = (read(&step.from.0)?, write(&step.to.0)?);
        let from = elements(&from, step.from.1)?;
        let to = elements_mut(&mut to, step.to.1)?;
        (step.work)(cpu, scratch, from, to)?;
        if step.may_be_long && slice.is_over() {
            break;
        }
    }
    Ok(())
}

/// Locks elements for reading. Only one pass writes to them, so that nothing waits here.
pub(crate) fn read<T>(lock: &RwLock<T>) -> Result<RwLockReadGuard<'_, T>> {
    lock.try_read().or_else(unlocked)
}

/// Locks elements for writing.
pub(crate) fn write<T>(lock: &RwLock<T>) -> Result<RwLockWriteGuard<'_, T>> {
    lock.try_write().or_else(unlocked)
}

/// Returns the lock of a step that panicked, or the error of a buffer that a step reads and writes.
fn unlocked<T>(error: TryLockError<T>) -> Result<T> {
    match error {
        TryLockError::Poisoned(lock) => Ok(lock.into_inner()),
        TryLockError::WouldBlock => Err(Error::invalid("buffer", "in use", "of one pass")),
    }
}

/// Returns some elements.
///
/// # Errors
/// `LengthMismatch` if no step wrote them.
pub(super) fn elements(values: &[f32], range: Range<usize>) -> Result<&[f32]> {
    let (expected, actual) = (range.end, values.len());
    values.get(range).ok_or(Error::LengthMismatch {
        what: "buffer",
        expected,
        actual,
        reason: "",
    })
}

/// Returns some elements to write, which are made if there are not as many.
fn elements_mut(values: &mut Vec<f32>, range: Range<usize>) -> Result<&mut [f32]> {
    if values.len() < range.end {
        try_resize(values, range.end)?;
    }
    Ok(&mut values[range])
}

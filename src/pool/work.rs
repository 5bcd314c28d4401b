//! Parts of a job, and the devices that work on them at the same time.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use crate::error::{Error, Result};
use crate::pool::program::Sizes;

/// A marker for types that threads share. In WebAssembly it has no requirement, because a GPU's handles belong to one
/// thread.
#[cfg(not(target_arch = "wasm32"))]
pub(super) trait Shared: Sync {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Sync> Shared for T {}
#[cfg(target_arch = "wasm32")]
pub(super) trait Shared {}
#[cfg(target_arch = "wasm32")]
impl<T> Shared for T {}

/// Work divided into parts; any device can do each part.
pub(super) trait Job: Shared {
    type Part: Send;
    /// Whether parts are read before they are computed and written afterwards, so that the host is
    /// busy while a device computes.
    const COMES_AND_GOES: bool;

    /// Takes a part that is still to be done, once there is room for it.
    fn take(&self, context: &mut Context<'_>) -> Poll<Option<Self::Part>>;
    fn rows(&self, part: &Self::Part) -> Range<usize>;
    /// Returns a part's inputs in order, and the slices for its results.
    fn bind<'p>(&'p self, part: &'p mut Self::Part) -> (Vec<&'p [f32]>, Vec<&'p mut [f32]>);
    /// Returns all elements of a leaf.
    fn whole(&self, leaf: usize) -> &[f32];
    /// Takes back a part with its results.
    fn finish(&self, part: Self::Part);
    /// Takes back a part that a lost device did not finish.
    fn give_back(&self, part: Self::Part);
    /// Ends the job with an error.
    fn fail(&self, error: Error);
    /// Returns whether all parts are done, once no task works any more.
    ///
    /// # Errors
    /// The error that ended the job.
    fn is_done(&self) -> Result<bool>;
}

/// A range of rows, and the slices for their results.
pub(super) struct Part<'a> {
    pub(super) rows: Range<usize>,
    pub(super) outputs: Vec<&'a mut [f32]>,
}

/// The parts that no task works on.
pub(super) struct Queue<'a> {
    state: Mutex<State<'a>>,
}

struct State<'a> {
    /// The parts, the next one last.
    parts: Vec<Part<'a>>,
    /// The first error other than the loss of a device.
    error: Option<Error>,
}

impl<'a> Queue<'a> {
    /// Divides the job into parts of these numbers of rows; `results` have rows of `widths`
    /// elements.
    pub(super) fn new(
        sizes: Sizes,
        results: &'a mut [Vec<f32>],
        widths: impl Iterator<Item = usize>,
    ) -> Self {
        let mut rest: Vec<(&mut [f32], usize)> = results
            .iter_mut()
            .map(Vec::as_mut_slice)
            .zip(widths)
            .collect();
        let mut parts = Vec::new();
        let mut start = 0;
        for rows in sizes.iter() {
            let mut outputs = Vec::new();
            for (rest, width) in &mut rest {
                let (output, after) = std::mem::take(rest).split_at_mut(rows * *width);
                *rest = after;
                outputs.push(output);
            }
            let rows = start..start + rows;
            start = rows.end;
            parts.push(Part { rows, outputs });
        }
        parts.reverse();
        let state = Mutex::new(State { parts, error: None });
        Self { state }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a part that is still to be done.
    pub(super) fn take(&self) -> Option<Part<'a>> {
        self.lock().parts.pop()
    }

    /// Returns a part that a lost device did not finish.
    pub(super) fn give_back(&self, part: Part<'a>) {
        self.lock().parts.push(part);
    }

    /// Ends the job with an error.
    pub(super) fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.parts.clear();
        state.error.get_or_insert(error);
    }

    /// Returns whether all parts are done, once no task works any more.
    pub(super) fn is_done(&self) -> Result<bool> {
        let state = self.lock();
        state.error.clone().map_or(Ok(()), Err)?;
        Ok(state.parts.is_empty())
    }
}

/// Runs futures at the same time: each on its own thread if the caller's thread would block, and
/// otherwise interleaved on one.
#[cfg(not(target_arch = "wasm32"))]
pub(super) async fn at_once<F: Future<Output = ()> + Send>(futures: Vec<F>) {
    if futures.len() < 2 || !crate::runtime::is_blocking() {
        return in_turn(futures).await;
    }
    std::thread::scope(|scope| {
        for future in futures {
            scope.spawn(|| crate::runtime::block_on(future));
        }
    });
}

#[cfg(target_arch = "wasm32")]
pub(super) async fn at_once<F: Future<Output = ()>>(futures: Vec<F>) {
    in_turn(futures).await;
}

async fn in_turn<F: Future<Output = ()>>(futures: Vec<F>) {
    let mut waiting: Vec<_> = futures.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|context| {
        waiting.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if waiting.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

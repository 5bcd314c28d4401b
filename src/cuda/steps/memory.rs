//! Graphs and buffers that a pass leaves to the next one.

use super::Elements;
use super::passes::Passes;
use crate::cuda::buffer::CudaBuffer;
use crate::cuda::device::CudaDevice;
use crate::cuda::error::Result;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The memory of passes. One pass at a time holds it, so that no other pass interrupts its steps.
#[derive(Default)]
pub(in crate::cuda) struct PassTurns(Mutex<PassMemory>);

impl PassTurns {
    /// Waits for the passes of other threads, and keeps them out.
    pub(super) fn take(&self) -> MutexGuard<'_, PassMemory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The largest number of buffers that are kept.
const SPARE: usize = 16;

/// The graphs of passes, and buffers that no pass needs any more. Work on the default queue runs in order, so the next pass
/// may write to them before the last one has ended.
#[derive(Default)]
pub(super) struct PassMemory {
    pub(super) passes: Passes,
    spare: Vec<Elements>,
    /// The planes of the rows and of the weights of one product.
    planes: [Option<Elements>; 2],
    /// Planes of earlier products of this pass that were too short for a later one.
    outgrown: Vec<Elements>,
}

impl PassMemory {
    /// Returns memory for at least this many elements of the planes of rows (`which` is 0) or of weights (1), which the next
    /// product overwrites.
    pub(super) fn planes(
        &mut self,
        device: &CudaDevice,
        which: usize,
        len: usize,
    ) -> Result<Elements> {
        let planes = &mut self.planes[which];
        if let Some(planes) = planes.as_ref().filter(|planes| planes.len() >= len) {
            return Ok(planes.clone());
        }
        let longer = Arc::new(CudaBuffer::uninitialised(device, len)?);
        self.outgrown.extend(planes.replace(longer.clone()));
        Ok(longer)
    }

    /// Takes a buffer of this length, if there is one.
    pub(super) fn spare(&mut self, len: usize) -> Option<Elements> {
        let place = self.spare.iter().position(|spare| spare.len() == len)?;
        Some(self.spare.swap_remove(place))
    }

    /// Takes the buffers back that nothing else has, after their pass was submitted.
    pub(super) fn take_back(&mut self, own: &mut Vec<Elements>) {
        let free = own
            .drain(..)
            .filter(|buffer| Arc::strong_count(buffer) == 1);
        self.spare.extend(free);
        self.outgrown.clear();
        let surplus = self.spare.len().saturating_sub(SPARE);
        self.spare.drain(..surplus);
    }
}

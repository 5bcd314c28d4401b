//! Compiled graphs, by their structure.

use std::sync::Arc;

use crate::batch::{BufferId, GpuCommandBatch, Program};
use crate::device::GpuDevice;
use crate::error::Result;
use crate::lazy::lower::{Lowering, Place};
use crate::lazy::structure::{Described, Structure};

/// The number of programs that are cached.
const MAX_PROGRAMS: usize = 64;

/// A compiled graph.
pub(super) struct Planned {
    /// `None` if all results are leaves.
    pub(super) program: Option<Program>,
    /// The position of each result.
    pub(super) places: Vec<Place>,
}

impl Planned {
    pub(super) async fn new(device: &GpuDevice, graph: &Structure) -> Result<Self> {
        let mut batch = GpuCommandBatch::new(device.clone());
        let (outputs, places) = lower(&mut batch, graph)?;
        let program = match &outputs[..] {
            [] => None,
            outputs => Some(batch.compile_async(outputs).await?),
        };
        Ok(Self { program, places })
    }
}

/// Records a graph in a batch; returns the outputs, and where each result is found.
fn lower(batch: &mut GpuCommandBatch, graph: &Structure) -> Result<(Vec<BufferId>, Vec<Place>)> {
    let mut lowering = Lowering::new(batch);
    for Described { shape, operation } in &graph.nodes {
        match operation {
            None => lowering.leaf(shape)?,
            Some((kind, inputs)) => lowering.operation(kind, inputs, shape)?,
        }
    }
    lowering.finish(&graph.results)
}

/// The programs that were used last.
#[derive(Default)]
pub(super) struct Programs {
    /// Keys of structures with their programs, the least recently used one first.
    entries: Vec<(Vec<u8>, Arc<Planned>)>,
    /// The number of graphs that were planned.
    pub(super) planned: usize,
}

impl Programs {
    /// Returns the program of a structure, if it is cached.
    pub(super) fn find(&mut self, key: &[u8]) -> Option<Arc<Planned>> {
        let found = self.entries.iter().position(|(own, _)| own == key)?;
        self.entries[found..].rotate_left(1);
        self.entries.last().map(|(_, planned)| Arc::clone(planned))
    }

    /// Adds a program, and drops the least recently used one beyond the limit.
    pub(super) fn insert(&mut self, key: Vec<u8>, planned: &Arc<Planned>) {
        self.planned += 1;
        self.entries.push((key, Arc::clone(planned)));
        let beyond = self.entries.len().saturating_sub(MAX_PROGRAMS);
        self.entries.drain(..beyond);
    }

    /// Returns the number of cached programs.
    pub(super) fn cached(&self) -> usize {
        self.entries.len()
    }
}

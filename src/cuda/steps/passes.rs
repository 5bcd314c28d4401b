//! The launches of passes. A pass with the kernels of an earlier one is launched by one call, as a graph whose arguments are
//! changed where they differ: a launch takes some 5 µs of the host, which is longer than kernels of small models.

use crate::cuda::device::CudaDevice;
use crate::cuda::error::{Error, Result};
use crate::cuda::graph::{Run, Template};
use crate::cuda::launch::{Argument, CudaKernel};
use cudarc::driver::sys;

/// The number of launches from which a graph pays off.
const MANY: usize = 16;

/// The number of passes that are remembered: with and without a token that the GPU chose, of few and of many positions,
/// and of some tokens of a prompt.
const KNOWN: usize = 8;

/// A launch that is not submitted yet.
pub(super) struct PlannedLaunch {
    pub(super) kernel: CudaKernel,
    pub(super) arguments: Vec<Argument>,
}

/// The passes so far.
#[derive(Default)]
pub(super) struct Passes {
    /// The last pass of each list of kernels, the latest one at the end.
    known: Vec<Pass>,
    /// Whether the driver made no graph of some kernels.
    lacks_graphs: bool,
}

struct Pass {
    launches: Vec<PlannedLaunch>,
    /// A graph of these launches.
    graph: Option<PassGraph>,
}

impl Passes {
    /// Submits the launches of a pass to the default queue.
    ///
    /// # Safety
    /// See [`CudaKernel::launch`].
    pub(super) unsafe fn launch(
        &mut self,
        device: &CudaDevice,
        launches: Vec<PlannedLaunch>,
    ) -> Result<()> {
        if launches.len() < MANY {
            return launch_each(&launches);
        }
        let same = |pass: &Pass| same_kernels(&pass.launches, &launches);
        let graph = match self.known.iter().position(same) {
            Some(place) => {
                let before = self.known.remove(place);
                self.graph_of(device, before, &launches)?
            }
            None => None,
        };
        match &graph {
            Some(graph) => graph.launch(device)?,
            None => launch_each(&launches)?,
        }
        if self.known.len() == KNOWN {
            self.known.remove(0);
        }
        self.known.push(Pass { launches, graph });
        Ok(())
    }

    /// Returns a graph of launches with the kernels of a pass before, if the driver makes one.
    fn graph_of(
        &mut self,
        device: &CudaDevice,
        before: Pass,
        launches: &[PlannedLaunch],
    ) -> Result<Option<PassGraph>> {
        if let Some(graph) = before.graph {
            graph.update(device, &before.launches, launches)?;
            return Ok(Some(graph));
        }
        if self.lacks_graphs {
            return Ok(None);
        }
        let graph = PassGraph::capture(device, launches).ok();
        self.lacks_graphs = graph.is_none();
        Ok(graph)
    }
}

fn launch_each(launches: &[PlannedLaunch]) -> Result<()> {
    launches.iter().try_for_each(|launch| {
        // SAFETY: the caller of `Passes::launch` guarantees the same.
        unsafe { launch.kernel.launch(&launch.arguments) }
    })
}

fn same_kernels(a: &[PlannedLaunch], b: &[PlannedLaunch]) -> bool {
    let same = |(a, b): (&PlannedLaunch, &PlannedLaunch)| a.kernel.is(&b.kernel);
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// A graph of launches, one after the other.
struct PassGraph {
    run: Run,
    /// The node of each launch in the graph of the run.
    nodes: Vec<sys::CUgraphNode>,
    _template: Template,
}

// SAFETY: the driver accepts calls from any thread, but from one thread at a time: who has the passes.
unsafe impl Send for PassGraph {}

impl PassGraph {
    fn capture(device: &CudaDevice, launches: &[PlannedLaunch]) -> Result<Self> {
        let mut nodes = Vec::with_capacity(launches.len());
        let (template, _) = device.record(|device| {
            launches.iter().try_for_each(|launch| {
                device.ordered(&[], |turn| {
                    // SAFETY: nothing runs until the graph is launched.
                    unsafe { turn.launch(&launch.kernel, &launch.arguments)? };
                    let node = turn.last_node()?;
                    // A launch without blocks becomes no node.
                    if nodes.last() == Some(&node) {
                        return Err(Error::CaptureEnded);
                    }
                    nodes.push(node);
                    Ok(())
                })
            })
        })?;
        Ok(Self {
            run: Run::new(device, &template)?,
            nodes,
            _template: template,
        })
    }

    /// Changes the arguments that differ from those before.
    fn update(
        &self,
        device: &CudaDevice,
        before: &[PlannedLaunch],
        now: &[PlannedLaunch],
    ) -> Result<()> {
        device.context().enter()?;
        for ((node, before), now) in self.nodes.iter().zip(before).zip(now) {
            if before.arguments != now.arguments {
                self.run.change(*node, &now.kernel, &now.arguments)?;
            }
        }
        Ok(())
    }

    fn launch(&self, device: &CudaDevice) -> Result<()> {
        device.ordered(&[], |turn| self.run.launch(turn))
    }
}

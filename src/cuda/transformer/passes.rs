//! The launches of passes. A pass with the kernels of the one before is launched by one call, as a graph whose arguments
//! are changed where they differ: a launch takes some 5 µs of the host, which is longer than kernels of small models.

use crate::cuda::device::CudaDevice;
use crate::cuda::error::Result;
use crate::cuda::graph::{Run, Template};
use crate::cuda::launch::{Argument, CudaKernel};
use cudarc::driver::sys;

/// Launches that are worth a graph.
const MANY: usize = 16;

/// A launch that is not submitted yet.
pub(super) struct PlannedLaunch {
    pub(super) kernel: CudaKernel,
    pub(super) arguments: Vec<Argument>,
}

/// The last pass.
#[derive(Default)]
pub(in crate::cuda) struct LastPass {
    launches: Vec<PlannedLaunch>,
    /// A graph of these launches.
    graph: Option<PassGraph>,
}

impl LastPass {
    /// Submits the launches of a pass to the default queue.
    ///
    /// # Safety
    /// See [`CudaKernel::launch`].
    pub(super) unsafe fn launch(
        &mut self,
        device: &CudaDevice,
        launches: Vec<PlannedLaunch>,
    ) -> Result<()> {
        let before = std::mem::replace(&mut self.launches, launches);
        let known = self.graph.take();
        if self.launches.len() < MANY || !same_kernels(&before, &self.launches) {
            return self.launch_each();
        }
        let graph = match known {
            Some(graph) => {
                graph.update(device, &before, &self.launches)?;
                graph
            }
            // Drivers that make no graph of a pass launch each kernel.
            None => match PassGraph::capture(device, &self.launches) {
                Ok(graph) => graph,
                Err(_) => return self.launch_each(),
            },
        };
        graph.launch(device)?;
        self.graph = Some(graph);
        Ok(())
    }

    fn launch_each(&self) -> Result<()> {
        self.launches.iter().try_for_each(|launch| {
            // SAFETY: the caller of `launch` guarantees the same.
            unsafe { launch.kernel.launch(&launch.arguments) }
        })
    }
}

fn same_kernels(a: &[PlannedLaunch], b: &[PlannedLaunch]) -> bool {
    let same = |(a, b): (&PlannedLaunch, &PlannedLaunch)| a.kernel.is(&b.kernel);
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// A graph of launches, one after the other.
struct PassGraph {
    run: Run,
    /// The node of each launch in the graph that the run is of.
    nodes: Vec<sys::CUgraphNode>,
    _template: Template,
}

// SAFETY: the driver accepts calls from any thread, but from one thread at a time: who has the last pass.
unsafe impl Send for PassGraph {}

impl PassGraph {
    fn capture(device: &CudaDevice, launches: &[PlannedLaunch]) -> Result<Self> {
        let mut nodes = Vec::with_capacity(launches.len());
        let (template, _) = device.record(|device| {
            launches.iter().try_for_each(|launch| {
                device.ordered(&[], |turn| {
                    // SAFETY: nothing runs until the graph is launched.
                    unsafe { turn.launch(&launch.kernel, &launch.arguments)? };
                    nodes.push(turn.last_node()?);
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

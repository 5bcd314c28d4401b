//! Plans: kernels in order, and memory for intermediate results.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use super::fuse::{self, Kernel};
use super::memory_plan;
use super::node::Node;
use super::rewrite::rewrite;
use crate::error::Result;
use crate::ops::{Backend, Op};

/// A plan that computes some nodes of a graph.
pub(crate) struct Plan {
    pub(crate) nodes: Vec<Node>,
    pub(crate) kernels: Vec<Kernel>,
    /// The slot that each kernel writes.
    pub(crate) slots: Vec<usize>,
    /// The length of each slot.
    pub(crate) capacities: Vec<usize>,
    /// The requested nodes.
    pub(crate) outputs: Vec<usize>,
    /// The slot of each node that is written.
    homes: Vec<Option<usize>>,
    /// The number of nodes recorded.
    recorded: usize,
    /// Whether the plan was rewritten and fused.
    pub(crate) optimised: bool,
}

impl Plan {
    /// A plan to compute `outputs`; operation by operation as recorded unless `optimised`.
    pub(crate) fn new(nodes: &[Node], outputs: &[usize], optimised: bool) -> Self {
        let (nodes, places) = if optimised {
            rewrite(nodes)
        } else {
            (nodes.to_vec(), (0..nodes.len()).collect())
        };
        let mut outputs = outputs.to_vec();
        for output in &mut outputs {
            *output = places[*output];
        }
        let kernels = fuse::kernels(&nodes, &outputs, optimised);
        let mut lens = Vec::new();
        for kernel in &kernels {
            lens.push(nodes[kernel.root()].len);
        }
        let shared = memory_plan::share(&lens, &last_uses(&kernels, &outputs, nodes.len()));
        let mut homes = vec![None; nodes.len()];
        for (place, kernel) in kernels.iter().enumerate() {
            homes[kernel.root()] = Some(shared.slots[place]);
        }
        Self {
            nodes,
            kernels,
            slots: shared.slots,
            capacities: shared.capacities,
            outputs,
            homes,
            recorded: places.len(),
            optimised,
        }
    }

    /// The slot of a node; `None` where its values come from outside.
    pub(crate) fn home(&self, node: usize) -> Option<usize> {
        self.homes[node]
    }

    /// The number of values that a kernel writes.
    pub(crate) fn len(&self, kernel: &Kernel) -> usize {
        self.nodes[kernel.root()].len
    }

    /// The number of values of the first operand of a kernel's head.
    pub(crate) fn operand_len(&self, kernel: &Kernel) -> usize {
        let head = kernel.head.as_ref().map_or(kernel.root(), |head| head.node);
        self.nodes[self.nodes[head].inputs()[0]].len
    }

    /// Returns the number of bytes that a kernel reads and writes.
    fn bytes_moved(&self, kernel: &Kernel) -> usize {
        let inputs = kernel.inputs.iter().map(|&input| self.nodes[input].len);
        bytes(inputs.chain([self.len(kernel)]))
    }

    fn summary(&self) -> PlanSummary {
        let fused = self
            .kernels
            .iter()
            .filter(|kernel| kernel.members.len() > 1);
        PlanSummary {
            recorded: self.recorded,
            kernels: self.kernels.len(),
            fused: fused.count(),
            buffers: self.capacities.len(),
            peak_bytes: bytes(self.capacities.iter().copied()),
            bytes_moved: self
                .kernels
                .iter()
                .map(|kernel| self.bytes_moved(kernel))
                .fold(0, usize::saturating_add),
        }
    }

    /// Describes the plan; `backend_of` returns the back-end that runs a kernel.
    pub(crate) fn explain(&self, backend_of: impl Fn(&Kernel) -> Backend) -> Explanation {
        let kernels = self
            .kernels
            .iter()
            .zip(&self.slots)
            .map(|(kernel, &slot)| KernelInfo {
                operations: kernel
                    .members
                    .iter()
                    .filter_map(|&node| Some(self.nodes[node].operation()?.0.name()))
                    .collect(),
                reads: kernel
                    .inputs
                    .iter()
                    .map(|&input| self.place(input))
                    .collect(),
                writes: BufferPlace::Buffer(slot),
                len: self.len(kernel),
                backend: backend_of(kernel),
                time: None,
                bytes_moved: self.bytes_moved(kernel),
            });
        Explanation {
            kernels: kernels.collect(),
            outputs: self
                .outputs
                .iter()
                .map(|&output| self.place(output))
                .collect(),
            summary: self.summary(),
        }
    }

    /// Returns an error of a custom function in a run on SIMD.
    pub(crate) fn outcome(&self) -> Result<()> {
        for node in &self.nodes {
            if let Some((Op::Custom(call), _)) = node.operation() {
                call.outcome()?;
            }
        }
        Ok(())
    }

    pub(crate) fn place(&self, node: usize) -> BufferPlace {
        if let Some(slot) = self.home(node) {
            return BufferPlace::Buffer(slot);
        }
        let mut inputs = 0;
        for earlier in &self.nodes[..node] {
            inputs += usize::from(earlier.operation().is_none());
        }
        BufferPlace::Input(inputs)
    }
}

/// Returns the size of these elements in bytes, saturating.
fn bytes(lens: impl Iterator<Item = usize>) -> usize {
    let values = lens.fold(0, usize::saturating_add);
    values.saturating_mul(size_of::<f32>())
}

/// Returns for each kernel the last kernel that reads its result; a requested output is never free.
fn last_uses(kernels: &[Kernel], outputs: &[usize], nodes: usize) -> Vec<usize> {
    let mut by_node = vec![0; nodes];
    for (place, kernel) in kernels.iter().enumerate() {
        for &input in &kernel.inputs {
            by_node[input] = place;
        }
    }
    for &output in outputs {
        by_node[output] = usize::MAX;
    }
    kernels
        .iter()
        .map(|kernel| by_node[kernel.root()])
        .collect()
}

/// The totals of a plan. Bytes are those of elements that kernels read and write in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanSummary {
    /// The number of buffers recorded: inputs, and results of operations.
    pub recorded: usize,
    /// The number of kernels.
    pub kernels: usize,
    /// The number of kernels that run several operations.
    pub fused: usize,
    /// The number of buffers for results, including the outputs.
    pub buffers: usize,
    /// The total size of these buffers, in bytes.
    pub peak_bytes: usize,
    /// The number of bytes that all kernels read and write.
    pub bytes_moved: usize,
}

/// A place that a kernel reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BufferPlace {
    /// An input of the plan: an upload, a device buffer or a placeholder, by its index in the order
    /// of recording.
    Input(usize),
    /// A buffer of the plan. Results that are not alive at the same time share one.
    Buffer(usize),
}

/// One kernel of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelInfo {
    /// The names of the kernel's operations, in order.
    pub operations: Vec<&'static str>,
    /// The places that the kernel reads.
    pub reads: Vec<BufferPlace>,
    /// The place that the kernel writes.
    pub writes: BufferPlace,
    /// The number of elements written.
    pub len: usize,
    /// The back-end that runs the kernel. With `Backend::Cuda`, a kernel one of whose operations has no kernel in PTX
    /// counts as [`Backend::Simd`].
    pub backend: Backend,
    /// The time of one run, in what [`Program::time_async`](crate::Program::time_async) returns.
    pub time: Option<Duration>,
    /// The number of bytes that the kernel reads and writes.
    pub bytes_moved: usize,
}

/// The kernels and buffers of a plan, to inspect or print:
/// [`GpuCommandBatch::explain`](crate::GpuCommandBatch::explain).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The kernels, in the order in which they run.
    pub kernels: Vec<KernelInfo>,
    /// The places of the results.
    pub outputs: Vec<BufferPlace>,
    /// The totals.
    pub summary: PlanSummary,
}

impl Display for BufferPlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(node) => write!(f, "input {node}"),
            Self::Buffer(slot) => write!(f, "buffer {slot}"),
        }
    }
}

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let PlanSummary {
            recorded,
            kernels,
            fused,
            buffers,
            peak_bytes,
            bytes_moved,
        } = self.summary;
        writeln!(
            f,
            "{recorded} recorded buffers; {kernels} kernels, {fused} of them fused"
        )?;
        writeln!(
            f,
            "{buffers} buffers of {peak_bytes} bytes; {bytes_moved} bytes moved"
        )?;
        for (place, kernel) in self.kernels.iter().enumerate() {
            let reads: Vec<String> = kernel.reads.iter().map(ToString::to_string).collect();
            write!(
                f,
                "{place:3}  {}: {} -> {}, {} bytes, {}",
                kernel.operations.join(" + "),
                reads.join(", "),
                kernel.writes,
                kernel.bytes_moved,
                kernel.backend
            )?;
            if let Some(time) = kernel.time {
                write!(f, ", {:.3} ms", time.as_secs_f64() * 1e3)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

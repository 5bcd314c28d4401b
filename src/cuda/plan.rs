//! Plans on CUDA. An operation with a PTX kernel runs on the GPU, any other on the CPU; elements cross between
//! the two only where one operation runs here and the next one there.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::backend::CudaBackend;
use super::buffer::CudaBuffer;
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::graph::node::live;
use crate::graph::{Binding, Kernel, Plan, Repeat};
use crate::ops::{Backend, Op};
use crate::simd;

/// Elements in the GPU's memory. Clones share them.
pub(crate) type CudaValues = Arc<CudaBuffer<f32>>;

/// The elements of a node, in the host's memory, the GPU's, or both.
#[derive(Clone, Default)]
struct Elements<'a> {
    host: Option<Cow<'a, [f32]>>,
    device: Option<CudaValues>,
}

impl<'a> Elements<'a> {
    fn of(binding: &'a Binding<'_, CudaValues>) -> Self {
        match binding {
            Binding::Nothing => Self::default(),
            Binding::Values(values) => Self {
                host: Some(Cow::Borrowed(values)),
                device: None,
            },
            Binding::Buffer(values) => Self {
                host: None,
                device: Some(values.clone()),
            },
        }
    }
}

impl CudaBackend {
    /// Runs a plan; returns its outputs, whose values are there when this returns.
    ///
    /// # Errors
    /// `OutOfMemory`, `Gpu` if the driver reports a failure, and the errors of functions of custom operations.
    pub(crate) fn run_plan(
        &self,
        plan: &Plan,
        mut bindings: Vec<Binding<'_, CudaValues>>,
        repeat: Repeat<'_>,
    ) -> Result<Vec<CudaValues>> {
        let mut results = Vec::new();
        for _ in 0..repeat.times {
            for &(output, node) in repeat.feedback {
                // Before the first run there is no result.
                if let Some(values) = results.get(output) {
                    bindings[node] = Binding::Buffer(CudaValues::clone(values));
                }
            }
            results = self.run_once(plan, &bindings, &mut |_| Ok(()))?;
        }
        self.synchronize()?;
        Ok(results)
    }

    /// Runs a plan once, and returns the time of each kernel: the times of its operations, each from the end of the one
    /// before.
    ///
    /// # Errors
    /// The errors of [`CudaBackend::run_plan`].
    pub(crate) fn time_plan(
        &self,
        plan: &Plan,
        bindings: &[Binding<'_, CudaValues>],
    ) -> Result<Vec<Duration>> {
        let mut last = self.event()?;
        let mut ends = Vec::new();
        self.run_once(plan, bindings, &mut |node| {
            ends.push((node, self.event()?));
            Ok(())
        })?;
        let mut times = vec![Duration::ZERO; plan.nodes.len()];
        for (node, end) in ends {
            times[node] = end.elapsed_since(&last)?;
            last = end;
        }
        let of_kernel = |kernel: &Kernel| kernel.members.iter().map(|&node| times[node]).sum();
        Ok(plan.kernels.iter().map(of_kernel).collect())
    }

    /// Returns the back-end of a kernel: CUDA if all of its operations have a kernel in PTX.
    #[allow(clippy::unused_self)] // As it is of the other back-ends' devices.
    pub(crate) fn backend_of(&self, plan: &Plan, kernel: &Kernel) -> Backend {
        let has_kernel = |&member: &usize| {
            let node = &plan.nodes[member];
            node.operation().is_none_or(|(op, inputs)| {
                let lens: Vec<usize> = inputs.iter().map(|&input| plan.nodes[input].len).collect();
                Self::kernel_for(op, &lens, node.len).is_some()
            })
        };
        if kernel.members.iter().all(has_kernel) {
            Backend::Cuda
        } else {
            Backend::Simd
        }
    }

    /// Runs a plan, and calls `finished` after each node that is computed.
    fn run_once(
        &self,
        plan: &Plan,
        bindings: &[Binding<'_, CudaValues>],
        finished: &mut impl FnMut(usize) -> Result<()>,
    ) -> Result<Vec<CudaValues>> {
        let mut elements: Vec<Elements<'_>> = bindings.iter().map(Elements::of).collect();
        let last_uses = last_uses(plan);
        let live = live(&plan.nodes, &plan.outputs);
        for (index, node) in plan.nodes.iter().enumerate() {
            let Some((op, inputs)) = node.operation().filter(|_| live[index]) else {
                continue;
            };
            elements[index] = self.compute_node(op, inputs, &mut elements, node.len)?;
            finished(index)?;
            for &input in inputs {
                if last_uses[input] == index {
                    elements[input] = Elements::default();
                }
            }
        }
        plan.outcome()?;
        let outputs = plan.outputs.iter();
        outputs
            .map(|&output| self.on_device(&mut elements[output]))
            .collect()
    }

    fn compute_node<'a>(
        &self,
        op: &Op,
        inputs: &[usize],
        elements: &mut [Elements<'a>],
        len: usize,
    ) -> Result<Elements<'a>> {
        let mut lens = Vec::with_capacity(inputs.len());
        for &input in inputs {
            lens.push(elements[input].len());
        }
        if let Some(work) = Self::kernel_for(op, &lens, len) {
            let mut buffers = Vec::with_capacity(inputs.len());
            for &input in inputs {
                buffers.push(self.on_device(&mut elements[input])?);
            }
            let buffers: Vec<&CudaBuffer<f32>> = buffers.iter().map(AsRef::as_ref).collect();
            let device = Some(Arc::new(self.compute(&work, &buffers, len)?));
            return Ok(Elements { host: None, device });
        }
        for &input in inputs {
            self.to_host(&mut elements[input])?;
        }
        let values = |&input: &usize| elements[input].host.as_deref().unwrap_or_default();
        let values: Vec<&[f32]> = inputs.iter().map(values).collect();
        let mut out = try_zeros(len)?;
        simd::execute(self.cpu(), op, &values, &mut out)?;
        Ok(Elements {
            host: Some(Cow::Owned(out)),
            device: None,
        })
    }

    /// Returns the elements in the GPU's memory, copied there if they are not.
    fn on_device(&self, elements: &mut Elements<'_>) -> Result<CudaValues> {
        if let Some(values) = &elements.device {
            return Ok(values.clone());
        }
        let values = self.upload(elements.host.as_deref().unwrap_or_default())?;
        elements.device = Some(values.clone());
        Ok(values)
    }

    fn to_host(&self, elements: &mut Elements<'_>) -> Result<()> {
        if let (None, Some(values)) = (&elements.host, &elements.device) {
            elements.host = Some(Cow::Owned(self.read(values)?));
        }
        Ok(())
    }
}

impl Elements<'_> {
    fn len(&self) -> usize {
        match (&self.host, &self.device) {
            (Some(values), _) => values.len(),
            (None, Some(values)) => values.len(),
            (None, None) => 0,
        }
    }
}

/// Returns, for each node, the last node that reads it. Outputs are needed until the end.
fn last_uses(plan: &Plan) -> Vec<usize> {
    let mut last = vec![0; plan.nodes.len()];
    for (index, node) in plan.nodes.iter().enumerate() {
        for &input in node.inputs() {
            last[input] = index;
        }
    }
    for &output in &plan.outputs {
        last[output] = usize::MAX;
    }
    last
}

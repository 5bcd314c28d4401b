//! A plan on the GPU.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::context::Gpu;
use super::fused::{FusedCode, Fusion};
use super::recorder::{GpuBuffer, Recorder, Submitted};
use super::texts::Texts;
use crate::error::Result;
use crate::graph::{Binding, Kernel, Operand, Plan, Repeat};
use crate::ops::{Op, OpClass};
use crate::runtime::NATIVE;

impl Gpu {
    /// Runs a plan once and copies the outputs to `outs`, which have their lengths.
    pub(crate) async fn read_plan(
        self: &Arc<Self>,
        plan: (&Plan, &Texts),
        bindings: Vec<Binding<'_, GpuBuffer>>,
        outs: &mut [&mut [f32]],
    ) -> Result<()> {
        let running = self.run_plan(plan, bindings, Repeat::ONCE, true)?.1;
        let readbacks = running.finished().await?;
        let mut pairs = readbacks.iter().zip(outs);
        pairs.try_for_each(|(readback, out)| readback.copy_to(out))
    }

    /// Records and submits a plan. The outputs' buffers can be used at once. The submission brings the outputs'
    /// values to the host if `read` is set.
    pub(crate) fn run_plan(
        self: &Arc<Self>,
        plan: (&Plan, &Texts),
        bindings: Vec<Binding<'_, GpuBuffer>>,
        repeat: Repeat<'_>,
        read: bool,
    ) -> Result<(Vec<GpuBuffer>, Submitted)> {
        let mut recorder = Recorder::new(self)?;
        let mut resident = Vec::new();
        let once = repeat.times == 1;
        // Browsers cannot map memory that kernels read or write.
        let read_once = if NATIVE && once {
            read_once(plan.0)
        } else {
            Vec::new()
        };
        for (node, binding) in bindings.into_iter().enumerate() {
            let stays = !read_once.get(node).is_some_and(|&once| once);
            resident.push(bring(&mut recorder, binding, stays)?);
        }
        let mut outputs = Vec::new();
        let mut slots = vec![None; plan.0.capacities.len()];
        let mut spare = Vec::new();
        for time in 0..repeat.times {
            if time > 0 {
                for &(output, node) in repeat.feedback {
                    let values: &GpuBuffer = &outputs[output];
                    resident[node] = Some(values.clone());
                }
                if recorder.is_long() {
                    // A failure here fails what is submitted after it, too.
                    drop(recorder.submit(&[])?);
                    recorder = Recorder::new(self)?;
                }
                spare_arguments(&mut slots, &mut spare, &resident);
            }
            let to_host = once && read;
            outputs = record_once(
                &mut recorder,
                plan,
                &resident,
                &mut slots,
                to_host,
                &mut |_| (),
            )?;
        }
        let running = recorder.submit(if read { &outputs } else { &[] })?;
        Ok((outputs, running))
    }

    /// Submits a plan once, with timestamps around its dispatches.
    ///
    /// # Errors
    /// `Gpu` where the adapter has no timestamps; the errors of [`Gpu::run_plan`].
    pub(crate) fn time_plan(
        self: &Arc<Self>,
        plan: (&Plan, &Texts),
        bindings: Vec<Binding<'_, GpuBuffer>>,
    ) -> Result<TimedPlan> {
        self.check_timestamps()?;
        let mut recorder = Recorder::new(self)?;
        let mut resident = Vec::new();
        for binding in bindings {
            resident.push(bring(&mut recorder, binding, true)?);
        }
        let mut slots = vec![None; plan.0.capacities.len()];
        // A kernel may take several dispatches, or none.
        let mut ends = Vec::new();
        record_once(
            &mut recorder,
            plan,
            &resident,
            &mut slots,
            false,
            &mut |recorder| {
                ends.push(recorder.dispatches());
            },
        )?;
        Ok(TimedPlan {
            gpu: self.clone(),
            submitted: recorder.submit_timed()?,
            ends,
        })
    }
}

/// A running plan whose kernels are timed.
pub(crate) struct TimedPlan {
    gpu: Arc<Gpu>,
    submitted: Submitted,
    /// The number of dispatches after each kernel.
    ends: Vec<usize>,
}

impl TimedPlan {
    /// Waits for the plan, and returns the time of each kernel.
    ///
    /// # Errors
    /// The errors of the run.
    pub(crate) async fn times(self) -> Result<Vec<Duration>> {
        let times = self.gpu.durations(&self.submitted.finished().await?)?;
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let kernels = starts.zip(&self.ends);
        Ok(kernels
            .map(|(start, &end)| times[start..end].iter().sum())
            .collect())
    }
}

/// Puts spare memory in slots whose last result is an argument now: it may be one for several runs,
/// handed on from each to the next.
fn spare_arguments(
    slots: &mut [Option<GpuBuffer>],
    spare: &mut Vec<Option<GpuBuffer>>,
    arguments: &[Option<GpuBuffer>],
) {
    let is_argument = |slot: &Option<GpuBuffer>| {
        let id = |buffer: &GpuBuffer| buffer.storage.id;
        let same = |other: &GpuBuffer| Some(id(other)) == slot.as_ref().map(id);
        arguments.iter().flatten().any(same)
    };
    let count = slots.len();
    for (place, slot) in slots.iter_mut().enumerate() {
        // A slot's spare memory lies as many places apart as there are slots.
        let mut place = place;
        while is_argument(slot) {
            while spare.len() <= place {
                spare.push(None);
            }
            std::mem::swap(slot, &mut spare[place]);
            place += count;
        }
    }
}

/// Returns values from outside in the memory in which kernels read them: in the GPU's own memory if they `stay`,
/// otherwise in memory for a single read. Returns `None` if a kernel computes them.
fn bring(
    recorder: &mut Recorder<'_>,
    binding: Binding<'_, GpuBuffer>,
    stays: bool,
) -> Result<Option<GpuBuffer>> {
    Ok(match binding {
        Binding::Nothing => None,
        Binding::Buffer(buffer) => Some(buffer),
        Binding::Values(values) if stays => Some(recorder.upload(values)?),
        Binding::Values(values) => Some(recorder.operand(values)?),
        #[cfg(all(target_arch = "wasm32", feature = "js"))]
        Binding::Array(values) => Some(recorder.upload_array(values)?),
    })
}

/// Returns for each node whether exactly one kernel reads it, and each element once.
fn read_once(plan: &Plan) -> Vec<bool> {
    let mut readers = vec![(0, None); plan.nodes.len()];
    for kernel in &plan.kernels {
        for &input in &kernel.inputs {
            readers[input] = (readers[input].0 + 1, Some(kernel));
        }
    }
    for &output in &plan.outputs {
        readers[output].0 += 1;
    }
    let once = |(node, (uses, kernel)): (usize, (usize, Option<&Kernel>))| match kernel {
        // What is shorter is repeated.
        Some(kernel) if uses == 1 => read_len(plan, kernel) == Some(plan.nodes[node].len),
        _ => false,
    };
    readers.into_iter().enumerate().map(once).collect()
}

/// Returns the number of elements that a kernel reads of an input that is read once.
fn read_len(plan: &Plan, kernel: &Kernel) -> Option<usize> {
    let Some(head) = &kernel.head else {
        return Some(plan.len(kernel));
    };
    let (op, _) = plan.nodes[head.node].operation()?;
    let once = op.class() == OpClass::Reduction && !matches!(op, Op::TopKRows { .. });
    once.then(|| plan.operand_len(kernel))
}

/// Returns for each slot whether one kernel writes it, none reads it, and the host reads it once:
/// mapped memory cannot be mapped again.
fn only_written(plan: &Plan) -> Vec<bool> {
    // Kernels that write, kernels that read, outputs.
    let mut uses = vec![[0; 3]; plan.capacities.len()];
    let writers = plan.slots.iter().map(|&slot| (0, Some(slot)));
    let inputs = plan.kernels.iter().flat_map(|kernel| &kernel.inputs);
    let inputs = inputs.map(|&input| (1, plan.home(input)));
    let outputs = plan.outputs.iter().map(|&output| (2, plan.home(output)));
    for (kind, slot) in writers.chain(inputs).chain(outputs) {
        if let Some(slot) = slot {
            uses[slot][kind] += 1;
        }
    }
    uses.into_iter().map(|uses| uses == [1, 0, 1]).collect()
}

/// Records each kernel once; the outputs, in the host's memory if that is where they are going
/// (`to_host`) and kernels need them nowhere else. Calls `recorded` after each kernel.
pub(super) fn record_once<'g>(
    recorder: &mut Recorder<'g>,
    (plan, texts): (&'g Plan, &'g Texts),
    outside: &[Option<GpuBuffer>],
    slots: &mut [Option<GpuBuffer>],
    to_host: bool,
    recorded: &mut dyn FnMut(&Recorder<'g>),
) -> Result<Vec<GpuBuffer>> {
    let only_written = if NATIVE && to_host {
        only_written(plan)
    } else {
        Vec::new()
    };
    for (place, kernel) in plan.kernels.iter().enumerate() {
        let (slot, len) = (plan.slots[place], plan.len(kernel));
        let capacity = plan.capacities[slot];
        let memory = match &slots[slot] {
            Some(memory) => memory.clone(),
            None if only_written.get(slot).is_some_and(|&only| only) => {
                recorder.allocate_to_read(capacity)?
            }
            None => recorder.allocate(capacity)?,
        };
        let output = memory.with_len(len);
        if len > 0 {
            let inputs = values(plan, slots, outside, &kernel.inputs);
            record_kernel(recorder, plan, (kernel, texts.of(place)), inputs, &output)?;
        }
        slots[slot] = Some(output);
        recorded(recorder);
    }
    Ok(values(plan, slots, outside, &plan.outputs))
}

fn values(
    plan: &Plan,
    slots: &[Option<GpuBuffer>],
    outside: &[Option<GpuBuffer>],
    nodes: &[usize],
) -> Vec<GpuBuffer> {
    let mut values = Vec::new();
    for &node in nodes {
        let found = match plan.home(node) {
            Some(slot) => &slots[slot],
            None => &outside[node],
        };
        // Kernels come after those that they read.
        values.push(found.clone().expect("a plan computes what it reads before"));
    }
    values
}

fn record_kernel<'g>(
    recorder: &mut Recorder<'g>,
    plan: &'g Plan,
    (kernel, text): (&'g Kernel, &'g OnceLock<FusedCode>),
    inputs: Vec<GpuBuffer>,
    output: &GpuBuffer,
) -> Result<()> {
    let head = kernel.head.as_ref();
    let operation = head.and_then(|head| Some((head, plan.nodes[head.node].operation()?.0)));
    let Some((head, op)) = operation else {
        let chains = vec![&kernel.chain];
        return recorder.elementwise(Fusion { chains, inputs }, text, output);
    };
    let (mut operands, mut chains) = (Vec::new(), Vec::new());
    for chain in &head.operands {
        // Where a chain computes it, one of the same length stands for it.
        let first = match chain.steps.first() {
            Some(step) => &step.operands[..],
            None => std::slice::from_ref(&chain.result),
        };
        let own = first.iter().find_map(|&operand| match operand {
            Operand::Input(input) => Some(inputs[input].clone()),
            _ => None,
        });
        operands.push(own.unwrap_or_else(|| output.clone()));
        chains.push(chain);
    }
    chains.push(&kernel.chain);
    recorder.fused_op(op, operands, Fusion { chains, inputs }, output)
}

//! A plan on the GPU.

use std::sync::Arc;

use super::context::Gpu;
use super::fused::Fusion;
use super::readback::Readback;
use super::recorder::{GpuBuffer, Recorder};
use crate::buffer::{Fetched, Storage};
use crate::error::Result;
use crate::graph::{Kernel, Operand, Outside, Plan, Repeat};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::OpClass;

impl Gpu {
    /// Records and submits a plan; the outputs' buffers may be used at once. The future brings
    /// what went wrong, or the outputs' values where they are to be `read`.
    #[allow(clippy::type_complexity)] // Buffers now, and a future of values.
    pub(crate) fn run_plan(
        self: &Arc<Self>,
        plan: &Plan,
        outside: Vec<Outside<'_>>,
        repeat: Repeat<'_>,
        read: bool,
    ) -> Result<(
        Vec<Storage>,
        impl Future<Output = Result<Vec<Fetched>>> + use<>,
    )> {
        let (outputs, running) = self.record_plan(plan, outside, repeat, read)?;
        let values = async move {
            let mut all = Vec::new();
            for readback in running.await? {
                all.push(readback.fetched()?);
            }
            Ok(all)
        };
        let mut results = Vec::new();
        for output in outputs {
            results.push(Storage::Gpu(output));
        }
        Ok((results, values))
    }

    /// Runs a plan once, whose outputs' values go to `outs`, of their lengths.
    #[cfg(not(relampago_small))]
    pub(crate) async fn read_plan(
        self: &Arc<Self>,
        plan: &Plan,
        outside: Vec<Outside<'_>>,
        outs: &mut [&mut [f32]],
    ) -> Result<()> {
        let running = self.record_plan(plan, outside, Repeat::ONCE, true)?.1;
        let readbacks = running.await?;
        let mut pairs = readbacks.iter().zip(outs);
        pairs.try_for_each(|(readback, out)| readback.copy_to(out))
    }

    #[cfg_attr(relampago_package, optimize(size))]
    pub(super) fn record_plan(
        self: &Arc<Self>,
        plan: &Plan,
        outside: Vec<Outside<'_>>,
        repeat: Repeat<'_>,
        read: bool,
    ) -> Result<(
        Vec<GpuBuffer>,
        impl Future<Output = Result<Vec<Readback>>> + use<>,
    )> {
        let mut recorder = Recorder::new(self)?;
        let mut resident = Vec::new();
        let once = repeat.times == 1;
        for (node, outside) in outside.into_iter().enumerate() {
            let stays = !(once && is_read_once(plan, node));
            resident.push(bring(&mut recorder, outside, stays)?);
        }
        let mut outputs = Vec::new();
        let mut slots = vec![None; plan.capacities.len()];
        let mut spare = slots.clone();
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
            }
            outputs = record_once(&mut recorder, plan, &resident, &mut slots, once && read)?;
            // What is read next time is written again the time after it.
            for (place, &output) in plan.outputs.iter().enumerate() {
                // Those that are listed twice have one home.
                let first = !plan.outputs[..place].contains(&output);
                if let Some(slot) = plan.home(output).filter(|_| first) {
                    std::mem::swap(&mut slots[slot], &mut spare[slot]);
                }
            }
        }
        let running = recorder.submit(if read { &outputs } else { &[] })?;
        Ok((outputs, running))
    }
}

/// Values from outside where kernels read them: in memory of the GPU's if they are to `stay`, else
/// where they are read but once. `None` where a kernel computes them.
fn bring(
    recorder: &mut Recorder<'_>,
    outside: Outside<'_>,
    stays: bool,
) -> Result<Option<GpuBuffer>> {
    let host;
    let values = match outside {
        Outside::Nothing => return Ok(None),
        Outside::Stored(Storage::Gpu(buffer)) => return Ok(Some(buffer)),
        Outside::Values(values) => values,
        #[cfg(all(target_arch = "wasm32", feature = "js"))]
        Outside::Array(values) => return Ok(Some(recorder.upload_array(values)?)),
        Outside::Stored(Storage::Host(values)) => {
            host = values;
            &host[..]
        }
    };
    let buffer = if stays {
        recorder.upload(values)?
    } else {
        recorder.operand(values)?
    };
    Ok(Some(buffer))
}

/// Whether one kernel reads a node's values, and each of them once.
#[cfg(not(target_arch = "wasm32"))]
fn is_read_once(plan: &Plan, node: usize) -> bool {
    let mut readers = plan.kernels.iter().filter(|k| k.inputs.contains(&node));
    let (Some(kernel), None) = (readers.next(), readers.next()) else {
        return false;
    };
    let len = match &kernel.head {
        None => plan.len(kernel),
        Some(head) => match plan.nodes[head.node].operation() {
            Some((op, _)) if op.class() == OpClass::Reduction => plan.operand_len(kernel),
            _ => return false,
        },
    };
    // What is shorter is repeated.
    plan.nodes[node].len == len && !plan.outputs.contains(&node)
}

/// Pages cannot map what kernels read.
#[cfg(target_arch = "wasm32")]
fn is_read_once(_: &Plan, _: usize) -> bool {
    false
}

/// Whether one kernel writes to a slot, none reads what it wrote, and it is read once on the host:
/// memory that is mapped cannot be mapped again.
#[cfg(not(target_arch = "wasm32"))]
fn is_only_written(plan: &Plan, slot: usize) -> bool {
    let is_here = |&&node: &&usize| plan.home(node) == Some(slot);
    let writers = plan.slots.iter().filter(|&&other| other == slot);
    let inputs = plan.kernels.iter().flat_map(|kernel| &kernel.inputs);
    let outputs = plan.outputs.iter().filter(is_here);
    (
        writers.count(),
        inputs.filter(is_here).count(),
        outputs.count(),
    ) == (1, 0, 1)
}

#[cfg(target_arch = "wasm32")]
fn is_only_written(_: &Plan, _: usize) -> bool {
    false
}

/// Records each kernel once; the outputs, in the host's memory if that is where they are going
/// (`to_host`) and kernels need them nowhere else.
#[cfg_attr(relampago_package, optimize(size))]
pub(super) fn record_once<'g>(
    recorder: &mut Recorder<'g>,
    plan: &'g Plan,
    outside: &[Option<GpuBuffer>],
    slots: &mut [Option<GpuBuffer>],
    to_host: bool,
) -> Result<Vec<GpuBuffer>> {
    for (place, kernel) in plan.kernels.iter().enumerate() {
        let (slot, len) = (plan.slots[place], plan.len(kernel));
        let capacity = plan.capacities[slot];
        let memory = match &slots[slot] {
            Some(memory) => memory.clone(),
            None if to_host && is_only_written(plan, slot) => {
                recorder.allocate_to_read(capacity)?
            }
            None => recorder.allocate(capacity)?,
        };
        let output = memory.with_len(len);
        if len > 0 {
            let inputs = values(plan, slots, outside, &kernel.inputs);
            record_kernel(recorder, plan, kernel, inputs, &output)?;
        }
        slots[slot] = Some(output);
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

#[cfg_attr(relampago_package, optimize(size))]
fn record_kernel<'g>(
    recorder: &mut Recorder<'g>,
    plan: &'g Plan,
    kernel: &'g Kernel,
    inputs: Vec<GpuBuffer>,
    output: &GpuBuffer,
) -> Result<()> {
    let head = kernel.head.as_ref();
    let operation = head.and_then(|head| Some((head, plan.nodes[head.node].operation()?.0)));
    let Some((head, op)) = operation else {
        let chains = vec![&kernel.chain];
        return recorder.elementwise(Fusion { chains, inputs }, &kernel.on_gpu, output);
    };
    let (mut operands, mut chains) = (Vec::new(), Vec::new());
    for chain in &head.operands {
        // Where a chain computes it, one of the same length stands for it.
        let first = chain
            .steps
            .first()
            .map_or(chain.result, |step| step.operands[0]);
        operands.push(match first {
            Operand::Input(input) => inputs[input].clone(),
            _ => output.clone(),
        });
        chains.push(chain);
    }
    chains.push(&kernel.chain);
    recorder.fused_op(op, operands, Fusion { chains, inputs }, output)
}

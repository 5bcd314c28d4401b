//! A plan on the GPU.

use std::sync::Arc;

use super::context::Gpu;
use super::fused::Fusion;
use super::readback::Readback;
use super::recorder::{GpuBuffer, Recorder};
use crate::buffer::Storage;
use crate::error::{Result, try_zeros};
use crate::graph::{Kernel, Operand, Outside, Plan, Repeat};
use crate::ops::Op;

/// Where a plan's values come from and go to.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Ends<'o> {
    /// Its outputs stay on the GPU.
    Resident,
    /// Its outputs are read.
    Read,
    /// The plan is one operation from and to the host, whose memory its kernels may use.
    Host(&'o Op),
}

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
        impl Future<Output = Result<Vec<Vec<f32>>>> + use<>,
    )> {
        let ends = if read { Ends::Read } else { Ends::Resident };
        let (outputs, running) = self.record_plan(plan, outside, repeat, ends)?;
        let values = async move {
            let mut all = Vec::new();
            for readback in running.await? {
                let mut values = try_zeros(readback.len())?;
                readback.copy_to(&mut values)?;
                all.push(values);
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
        let running = self.record_plan(plan, outside, Repeat::ONCE, Ends::Read)?.1;
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
        ends: Ends<'_>,
    ) -> Result<(
        Vec<GpuBuffer>,
        impl Future<Output = Result<Vec<Readback>>> + use<>,
    )> {
        let mut recorder = Recorder::new(self)?;
        let mut resident = Vec::new();
        for outside in outside {
            resident.push(bring(&mut recorder, outside, ends)?);
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
            outputs = record_once(&mut recorder, plan, &resident, &mut slots, ends)?;
            // What is read next time is written again the time after it.
            for &output in &plan.outputs {
                if let Some(slot) = plan.home(output) {
                    std::mem::swap(&mut slots[slot], &mut spare[slot]);
                }
            }
        }
        let running = recorder.submit(if ends == Ends::Resident {
            &[]
        } else {
            &outputs
        })?;
        Ok((outputs, running))
    }
}

/// Values from outside on the GPU; `None` where a kernel computes them.
fn bring(
    recorder: &mut Recorder<'_>,
    outside: Outside<'_>,
    ends: Ends<'_>,
) -> Result<Option<GpuBuffer>> {
    match (outside, ends) {
        (Outside::Nothing, _) => Ok(None),
        (Outside::Values(values), Ends::Host(op)) => recorder.operand(op, values).map(Some),
        (Outside::Values(values), _) => recorder.upload(values).map(Some),
        (Outside::Stored(Storage::Host(values)), _) => recorder.upload(&values).map(Some),
        (Outside::Stored(Storage::Gpu(buffer)), _) => Ok(Some(buffer)),
    }
}

/// Records each kernel once; the outputs.
#[cfg_attr(relampago_package, optimize(size))]
pub(super) fn record_once<'g>(
    recorder: &mut Recorder<'g>,
    plan: &'g Plan,
    outside: &[Option<GpuBuffer>],
    slots: &mut [Option<GpuBuffer>],
    ends: Ends<'_>,
) -> Result<Vec<GpuBuffer>> {
    for (place, kernel) in plan.kernels.iter().enumerate() {
        let (slot, len) = (plan.slots[place], plan.len(kernel));
        let memory = match (&slots[slot], ends) {
            (Some(memory), _) => memory.clone(),
            (None, Ends::Host(_)) => recorder.allocate_to_read(plan.capacities[slot])?,
            (None, Ends::Resident | Ends::Read) => recorder.allocate(plan.capacities[slot])?,
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
        return recorder.elementwise(&Fusion { chains, inputs }, output);
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

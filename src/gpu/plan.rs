//! A plan on the GPU.

use std::sync::Arc;

use super::context::Gpu;
use super::fused::Fusion;
use super::readback::Readback;
use super::recorder::{GpuBuffer, Recorder};
use crate::buffer::Storage;
use crate::error::{Result, try_zeros};
use crate::graph::{Kernel, Operand, Outside, Plan, Repeat};

impl Gpu {
    /// Records and submits a plan; the outputs' buffers may be used at once. The future brings
    /// what went wrong, or the outputs' values where they are to be `read`.
    pub(crate) fn run_plan(
        self: &Arc<Self>,
        plan: &Plan,
        outside: Vec<Outside<'_>>,
        repeat: Repeat<'_>,
        read: bool,
    ) -> Result<(
        Vec<GpuBuffer>,
        impl Future<Output = Result<Vec<Vec<f32>>>> + use<>,
    )> {
        let (outputs, running) = self.record_plan(plan, outside, repeat, read)?;
        let lens: Vec<usize> = outputs.iter().map(GpuBuffer::len).collect();
        let values = async move {
            let readbacks = running.await?;
            let copies = readbacks.iter().zip(lens).map(|(readback, len)| {
                let mut values = try_zeros(len)?;
                readback.copy_to(&mut values).map(|()| values)
            });
            copies.collect()
        };
        Ok((outputs, values))
    }

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
        let outside = outside
            .into_iter()
            .map(|outside| bring(&mut recorder, outside));
        let mut outside = outside.collect::<Result<Vec<_>>>()?;
        let mut outputs = Vec::new();
        let (mut slots, mut spare) = (vec![None; plan.capacities.len()], Vec::new());
        for time in 0..repeat.times {
            if time > 0 {
                for &(output, node) in repeat.feedback {
                    let values: &GpuBuffer = &outputs[output];
                    outside[node] = Some(values.clone());
                }
                if recorder.is_long() {
                    // A failure here fails what is submitted after it, too.
                    drop(recorder.submit(&[])?);
                    recorder = Recorder::new(self)?;
                }
            }
            outputs = record_once(&mut recorder, plan, &outside, &mut slots)?;
            // What is read next time is written again the time after it.
            for slot in plan.outputs.iter().filter_map(|&output| plan.home(output)) {
                spare.resize(slots.len(), None);
                std::mem::swap(&mut slots[slot], &mut spare[slot]);
            }
        }
        let running = recorder.submit(if read { &outputs } else { &[] })?;
        Ok((outputs, running))
    }
}

/// Values from outside on the GPU; `None` where a kernel computes them.
fn bring(recorder: &mut Recorder<'_>, outside: Outside<'_>) -> Result<Option<GpuBuffer>> {
    match outside {
        Outside::Nothing => Ok(None),
        Outside::Values(values) => recorder.upload(values).map(Some),
        Outside::Stored(Storage::Host(values)) => recorder.upload(&values).map(Some),
        Outside::Stored(Storage::Gpu(buffer)) => Ok(Some(buffer)),
    }
}

/// Records each kernel once; the outputs.
fn record_once<'g>(
    recorder: &mut Recorder<'g>,
    plan: &'g Plan,
    outside: &[Option<GpuBuffer>],
    slots: &mut [Option<GpuBuffer>],
) -> Result<Vec<GpuBuffer>> {
    for (kernel, &slot) in plan.kernels.iter().zip(&plan.slots) {
        let output = match &slots[slot] {
            Some(memory) => memory.with_len(plan.len(kernel)),
            None => recorder
                .allocate(plan.capacities[slot])?
                .with_len(plan.len(kernel)),
        };
        if output.len() > 0 {
            let inputs = kernel
                .inputs
                .iter()
                .map(|&input| values(plan, slots, outside, input));
            record_kernel(recorder, plan, kernel, inputs.collect(), &output)?;
        }
        slots[slot] = Some(output);
    }
    let output = |&output: &usize| values(plan, slots, outside, output);
    Ok(plan.outputs.iter().map(output).collect())
}

fn values(
    plan: &Plan,
    slots: &[Option<GpuBuffer>],
    outside: &[Option<GpuBuffer>],
    node: usize,
) -> GpuBuffer {
    let found = match plan.home(node) {
        Some(slot) => &slots[slot],
        None => &outside[node],
    };
    // Kernels come after those that they read.
    found.clone().expect("a plan computes what it reads before")
}

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
        return recorder.elementwise(Fusion { chains, inputs }, output);
    };
    let operands = head.operands.iter().map(|chain| {
        // Where a chain computes it, one of the same length stands for it.
        let first = chain.steps.first().and_then(|step| step.operands.first());
        match first.copied().unwrap_or(chain.result) {
            Operand::Input(input) => inputs[input].clone(),
            _ => output.clone(),
        }
    });
    let operands = operands.collect();
    let chains = head.operands.iter().chain([&kernel.chain]).collect();
    recorder.fused_op(op, operands, Fusion { chains, inputs }, output)
}

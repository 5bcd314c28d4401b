//! A plan on the device that it was made for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cpu::execute::{self, Slots};
use crate::cpu::packed_weights::Weights;
use crate::device::GpuDevice;
use crate::device::buffer::{DeviceBuffer, Fetched, Storage};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::graph::node::Source;
use crate::graph::plan::Plan;
use crate::ops::shape::check_len;
use crate::simd::Cpu;

/// Values for a placeholder of a [`Program`](crate::Program).
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// Values in memory, copied to the device.
    Values(&'a [f32]),
    /// Values that are on the device already.
    Buffer(&'a DeviceBuffer),
    /// Values in JavaScript's memory, for a GPU.
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    #[doc(hidden)]
    Array(&'a js_sys::Float32Array),
}

impl<'a> From<&'a [f32]> for Argument<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self::Values(values)
    }
}

impl<'a> From<&'a Vec<f32>> for Argument<'a> {
    fn from(values: &'a Vec<f32>) -> Self {
        Self::Values(values)
    }
}

impl<'a, const N: usize> From<&'a [f32; N]> for Argument<'a> {
    fn from(values: &'a [f32; N]) -> Self {
        Self::Values(values)
    }
}

impl<'a> From<&'a DeviceBuffer> for Argument<'a> {
    fn from(buffer: &'a DeviceBuffer) -> Self {
        Self::Buffer(buffer)
    }
}

/// Values that no kernel of a plan computes.
#[derive(Clone)]
pub(crate) enum Outside<'a> {
    /// A kernel does, or nobody needs them.
    Nothing,
    Values(&'a [f32]),
    Stored(Storage),
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    Array(&'a js_sys::Float32Array),
}

/// How often a plan runs, and what goes from each run to the next.
#[derive(Clone, Copy)]
pub(crate) struct Repeat<'a> {
    pub(crate) times: usize,
    /// Places among the outputs and nodes that take their values next time.
    pub(crate) feedback: &'a [(usize, usize)],
}

impl Repeat<'_> {
    pub(crate) const ONCE: Self = Self {
        times: 1,
        feedback: &[],
    };
}

/// A plan with its device, and on SIMD with the memory that it keeps from run to run.
pub(crate) struct Runtime {
    pub(crate) device: GpuDevice,
    pub(crate) gpu: Option<Arc<Gpu>>,
    pub(crate) plan: Plan,
    /// The lengths of the batch's placeholders.
    pub(crate) placeholders: Vec<usize>,
    memory: Mutex<Memory>,
    weights: Weights,
}

#[derive(Default)]
struct Memory {
    slots: Slots,
    /// Results of the last run, by slot: used again once nobody else has them.
    given: Vec<(usize, Arc<Vec<f32>>)>,
    /// Those of the run before it that somebody still had: in a loop, the last run's argument.
    lent: Vec<(usize, Arc<Vec<f32>>)>,
}

impl Memory {
    fn reclaim(&mut self) {
        let [older, newer] = [&mut self.lent, &mut self.given].map(std::mem::take);
        for (slot, values) in older {
            self.take_back(slot, values);
        }
        for (slot, values) in newer {
            if let Some(lent) = self.take_back(slot, values) {
                self.lent.push((slot, lent));
            }
        }
    }

    /// Returns what somebody else has, too.
    fn take_back(&mut self, slot: usize, values: Arc<Vec<f32>>) -> Option<Arc<Vec<f32>>> {
        match (Arc::try_unwrap(values), self.slots.get_mut(slot)) {
            (Ok(values), Some(free)) => *free = values,
            (Ok(_), None) => {}
            (Err(values), _) => return Some(values),
        }
        None
    }

    /// Takes a result out of its slot.
    fn give(&mut self, slot: usize) -> Arc<Vec<f32>> {
        // Two results may be one value.
        if let Some((_, values)) = self.given.iter().find(|(other, _)| *other == slot) {
            return values.clone();
        }
        let values = Arc::new(std::mem::take(&mut self.slots[slot]));
        self.given.push((slot, values.clone()));
        values
    }
}

impl Runtime {
    pub(crate) fn new(
        device: GpuDevice,
        gpu: Option<Arc<Gpu>>,
        plan: Plan,
        placeholders: Vec<usize>,
    ) -> Self {
        Self {
            device,
            gpu,
            plan,
            placeholders,
            memory: Mutex::default(),
            weights: Weights::new(),
        }
    }

    /// Prepares for many runs: on SIMD, what they all multiply by is packed once.
    pub(crate) fn pack(&mut self) -> Result<()> {
        if self.gpu.is_none() && self.plan.optimised {
            self.weights = crate::cpu::packed_weights::pack(&self.plan, self.device.cpu())?;
        }
        Ok(())
    }

    /// Runs the plan. On a GPU the results may be used at once, though whether all went well is
    /// known only when the future says so; it brings their values where they are to be `read`, in
    /// the same submission.
    #[allow(clippy::type_complexity)] // Results now, and a future of values.
    #[cfg_attr(relampago_package, optimize(size))]
    pub(crate) fn start(
        &self,
        arguments: &[Argument<'_>],
        repeat: Repeat<'_>,
        read: bool,
    ) -> Result<(
        Vec<Storage>,
        Option<impl Future<Output = Result<Vec<Fetched>>> + use<>>,
    )> {
        let outside = self.outside(arguments)?;
        match &self.gpu {
            Some(gpu) => {
                let (results, running) = gpu.run_plan(&self.plan, outside, repeat, read)?;
                Ok((results, Some(running)))
            }
            None => Ok((self.on_host(outside, repeat)?, None)),
        }
    }

    /// Runs the plan once, and copies the results to `outs`, of their lengths.
    #[cfg(not(relampago_small))]
    pub(crate) async fn read_into(
        &self,
        arguments: &[Argument<'_>],
        outs: &mut [&mut [f32]],
    ) -> Result<()> {
        let outside = self.outside(arguments)?;
        if let Some(gpu) = &self.gpu {
            return gpu.read_plan(&self.plan, outside, outs).await;
        }
        for (out, result) in outs.iter_mut().zip(self.on_host(outside, Repeat::ONCE)?) {
            match result {
                Storage::Host(values) => out.copy_from_slice(&values),
                Storage::Gpu(_) => debug_assert!(false, "nothing on the host is on a GPU"),
            }
        }
        Ok(())
    }

    #[cfg_attr(relampago_package, optimize(size))]
    fn on_host(&self, mut outside: Vec<Outside<'_>>, repeat: Repeat<'_>) -> Result<Vec<Storage>> {
        // Not locked meanwhile: a thread of rayon's that waits for others within a run may take up
        // another run of the program, which would wait for its own thread.
        let mut memory = std::mem::take(&mut *self.memory());
        let mut results = Vec::new();
        for time in 0..repeat.times {
            memory.reclaim();
            let values = outside
                .iter()
                .map(host_values)
                .collect::<Result<Vec<_>>>()?;
            let weights = (self.device.cpu(), &self.weights);
            execute::run(&self.plan, weights, &values, &mut memory.slots)?;
            self.plan.outcome()?;
            for &node in &self.plan.outputs {
                results.push(match self.plan.home(node) {
                    Some(slot) => Storage::Host(memory.give(slot)),
                    None => Storage::Host(host_copy(self.device.cpu(), &outside[node])?),
                });
            }
            if time + 1 < repeat.times {
                for &(output, node) in repeat.feedback {
                    outside[node] = Outside::Stored(results[output].clone());
                }
                results.clear();
            }
        }
        *self.memory() = memory;
        Ok(results)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each node has from outside.
    #[cfg_attr(relampago_package, optimize(size))]
    fn outside<'a>(&'a self, arguments: &[Argument<'a>]) -> Result<Vec<Outside<'a>>> {
        self.device.check()?;
        check_len("arguments", self.placeholders.len(), arguments.len())?;
        for (place, argument) in arguments.iter().enumerate() {
            self.check(argument, self.placeholders[place])?;
        }
        let mut outside = Vec::new();
        for node in &self.plan.nodes {
            outside.push(match &node.source {
                Source::Op { .. } => Outside::Nothing,
                Source::Upload(values) => Outside::Values(values),
                Source::Input(buffer) => Outside::Stored(buffer.storage.clone()),
                Source::Placeholder(place) => match arguments[*place] {
                    Argument::Values(values) => Outside::Values(values),
                    Argument::Buffer(buffer) => Outside::Stored(buffer.storage.clone()),
                    #[cfg(all(target_arch = "wasm32", feature = "js"))]
                    Argument::Array(values) => Outside::Array(values),
                },
            });
        }
        Ok(outside)
    }

    fn check(&self, argument: &Argument<'_>, len: usize) -> Result<()> {
        match argument {
            Argument::Values(values) => check_len("argument", len, values.len()),
            Argument::Buffer(buffer) if !buffer.device().same_device(&self.device) => {
                let (what, owner) = ("argument", "device");
                Err(Error::Foreign { what, owner })
            }
            Argument::Buffer(buffer) => check_len("argument", len, buffer.len()),
            #[cfg(all(target_arch = "wasm32", feature = "js"))]
            Argument::Array(values) => check_len("argument", len, values.length() as usize),
        }
    }
}

fn host_values<'a>(outside: &'a Outside<'_>) -> Result<&'a [f32]> {
    // What has a buffer on the GPU, or values for it, runs there.
    let (what, owner) = ("buffer", "back-end");
    match outside {
        Outside::Nothing => Ok(&[]),
        Outside::Values(values) => Ok(values),
        Outside::Stored(Storage::Host(values)) => Ok(values),
        Outside::Stored(Storage::Gpu(_)) => Err(Error::Foreign { what, owner }),
        #[cfg(all(target_arch = "wasm32", feature = "js"))]
        Outside::Array(_) => Err(Error::Foreign { what, owner }),
    }
}

fn host_copy(cpu: Cpu, outside: &Outside<'_>) -> Result<Arc<Vec<f32>>> {
    match outside {
        Outside::Stored(Storage::Host(values)) => Ok(values.clone()),
        other => cpu.copy(host_values(other)?).map(Arc::new),
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;

    #[test]
    fn a_loop_runs_in_the_memory_of_two_results() {
        let mut memory = Memory {
            slots: vec![vec![1.0]],
            ..Memory::default()
        };
        // Each result is the next run's argument, which is let go after it.
        let mut argument = memory.give(0);
        let mut places = Vec::new();
        for run in 0..6 {
            memory.reclaim();
            if memory.slots[0].is_empty() {
                memory.slots[0] = vec![run as f32];
            }
            argument = memory.give(0);
            places.push(argument.as_ptr());
        }
        assert_eq!(places[2..4], places[4..]);
        // Nobody is kept from giving memory back for longer than a run.
        memory.reclaim();
        memory.reclaim();
        assert_eq!(std::sync::Arc::strong_count(&argument), 1);
    }
}

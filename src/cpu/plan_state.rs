//! The state of a plan on SIMD that is reused from run to run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cpu::execute::{self, Slots};
use crate::cpu::packed_weights::{self, PackedArguments, Weights};
use crate::error::Result;
use crate::graph::{Binding, Plan, Repeat};
use crate::simd::Cpu;

/// The memory of a plan's results, and the packed matrices of its constants and arguments.
#[derive(Default)]
pub(crate) struct PlanState {
    memory: Mutex<Memory>,
    weights: Weights,
}

#[derive(Default)]
struct Memory {
    slots: Slots,
    /// Results of the last run, by slot. A run reuses them if the caller has dropped them.
    given: Vec<(usize, Arc<Vec<f32>>)>,
    /// Results of the previous run that were still in use: in a loop, the last run's argument.
    lent: Vec<(usize, Arc<Vec<f32>>)>,
    packed: PackedArguments,
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

    /// Takes back the memory of a result, or returns it if it is still shared.
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

impl PlanState {
    /// Packs the constant matrices. `input` returns the elements of a recorded buffer.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn pack<'a>(
        &mut self,
        plan: &'a Plan,
        cpu: Cpu,
        input: &dyn Fn(usize) -> Option<&'a [f32]>,
    ) -> Result<()> {
        self.weights = packed_weights::pack(plan, cpu, input)?;
        Ok(())
    }

    /// Runs a plan; returns its outputs' values. Calls `finished` after each kernel.
    pub(crate) fn run(
        &self,
        plan: &Plan,
        cpu: Cpu,
        mut bindings: Vec<Binding<'_, Arc<Vec<f32>>>>,
        repeat: Repeat<'_>,
        finished: &mut dyn FnMut(),
    ) -> Result<Vec<Arc<Vec<f32>>>> {
        // Not locked meanwhile: a thread of rayon's that waits for others within a run may take up
        // another run of the program, which would wait for its own thread.
        let mut memory = std::mem::take(&mut *self.memory());
        let mut results = Vec::new();
        for time in 0..repeat.times {
            memory.reclaim();
            let values: Vec<&[f32]> = bindings.iter().map(values).collect();
            memory.packed.update(plan, cpu, &bindings);
            let weights = [&self.weights, memory.packed.weights()];
            execute::run(plan, (cpu, weights), &values, &mut memory.slots, finished)?;
            plan.outcome()?;
            for &node in &plan.outputs {
                results.push(match plan.home(node) {
                    Some(slot) => memory.give(slot),
                    None => shared(cpu, &bindings[node])?,
                });
            }
            if time + 1 < repeat.times {
                for &(output, node) in repeat.feedback {
                    bindings[node] = Binding::Buffer(results[output].clone());
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
}

fn values<'a>(binding: &'a Binding<'_, Arc<Vec<f32>>>) -> &'a [f32] {
    match binding {
        Binding::Nothing => &[],
        Binding::Values(values) => values,
        Binding::Buffer(values) => values,
        // Arrays are for GPUs.
        #[cfg(all(target_arch = "wasm32", feature = "js"))]
        Binding::Array(_) => &[],
    }
}

/// The values, in memory that others may share.
fn shared(cpu: Cpu, binding: &Binding<'_, Arc<Vec<f32>>>) -> Result<Arc<Vec<f32>>> {
    match binding {
        Binding::Buffer(values) => Ok(values.clone()),
        other => cpu.copy(values(other)).map(Arc::new),
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;

    #[test]
    fn feedback_loop_reuses_two_results() {
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

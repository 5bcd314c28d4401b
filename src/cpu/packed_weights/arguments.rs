//! Matrices that are arguments of a program, packed for as long as its runs get the same buffers.

use std::sync::{Arc, Weak};

use crate::cpu::packed_weights::{Weights, factor, product};
use crate::graph::Binding;
use crate::graph::fuse::Kernel;
use crate::graph::node::Source;
use crate::graph::plan::Plan;
use crate::simd::Cpu;

/// The right operands of a plan's matmuls that are arguments. A matrix is packed in the second run that gets its
/// buffer, so that matrices that change from run to run cost nothing. A program has one packed matrix for each
/// matmul at most.
#[derive(Default)]
pub(crate) struct PackedArguments {
    /// The buffer that each kernel's matmul read in the last run. A weak reference keeps the address from being reused
    /// for another buffer, but does not keep the elements in memory.
    buffers: Vec<Weak<Vec<f32>>>,
    weights: Weights,
}

impl PackedArguments {
    pub(crate) fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Packs the matrices whose buffers the last run had, too, and forgets those of other buffers.
    pub(crate) fn update(
        &mut self,
        plan: &Plan,
        cpu: Cpu,
        bindings: &[Binding<'_, Arc<Vec<f32>>>],
    ) {
        if !plan.optimised {
            return;
        }
        self.buffers.resize(plan.kernels.len(), Weak::new());
        self.weights.resize(plan.kernels.len(), None);
        for (place, kernel) in plan.kernels.iter().enumerate() {
            let buffer = argument(plan, kernel, bindings);
            let address = buffer.map_or(Weak::new().as_ptr(), Arc::as_ptr);
            if self.buffers[place].as_ptr() != address {
                self.buffers[place] = buffer.map_or_else(Weak::new, Arc::downgrade);
                self.weights[place] = None;
            } else if let (Some(values), None) = (buffer, &self.weights[place]) {
                // Without memory for a copy, the matmul reads the matrix in place.
                let packed = product(plan, kernel)
                    .and_then(|right| factor(right, cpu, values, &self.weights).ok());
                self.weights[place] = packed;
            }
        }
    }
}

/// The buffer of a kernel's right operand, if it is an argument.
fn argument<'a>(
    plan: &Plan,
    kernel: &Kernel,
    bindings: &'a [Binding<'_, Arc<Vec<f32>>>],
) -> Option<&'a Arc<Vec<f32>>> {
    let (_, node) = product(plan, kernel)?;
    match (&plan.nodes[node].source, &bindings[node]) {
        (Source::Placeholder(_), Binding::Buffer(buffer)) => Some(buffer),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::PackedArguments;
    use crate::graph::node::{Node, Source};
    use crate::graph::{Binding, Plan};
    use crate::instruction_set::InstructionSet;
    use crate::ops::Op;
    use crate::simd::Cpu;

    fn cpu() -> Cpu {
        Cpu::new(InstructionSet::Scalar, Some(1))
    }

    /// The plan of a matmul of two arguments.
    fn plan() -> Plan {
        let [m, k, n] = [8, 4, 3];
        let node = |source, len| Node { source, len };
        let op = Op::Matmul { m, k, n };
        let inputs = vec![0, 1];
        let nodes = [
            node(Source::Placeholder(0), m * k),
            node(Source::Placeholder(1), k * n),
            node(Source::Op { op, inputs }, m * n),
        ];
        Plan::new(&nodes, &[2], true)
    }

    fn is_packed(packed: &mut PackedArguments, plan: &Plan, matrix: &Arc<Vec<f32>>) -> bool {
        let x = Arc::new(vec![1.0; 32]);
        let bindings = [
            Binding::Buffer(x),
            Binding::Buffer(matrix.clone()),
            Binding::Nothing,
        ];
        packed.update(plan, cpu(), &bindings);
        packed.weights()[0].is_some()
    }

    #[test]
    fn buffer_is_packed_in_its_second_run_until_another_comes() {
        let (plan, mut packed) = (plan(), PackedArguments::default());
        let first = Arc::new(vec![1.0; 12]);
        let runs = [false, true, true].map(|_| is_packed(&mut packed, &plan, &first));
        assert_eq!(runs, [false, true, true]);
        for _ in 0..100 {
            // The allocator gives freed addresses again, but never one that stands for the last run's buffer.
            let changing = Arc::new(vec![2.0; 12]);
            assert!(!is_packed(&mut packed, &plan, &changing));
        }
        assert!(!is_packed(&mut packed, &plan, &first));
        assert_eq!(Arc::strong_count(&first), 1);
    }

    #[test]
    fn values_of_the_host_are_not_packed() {
        let (plan, mut packed) = (plan(), PackedArguments::default());
        let (x, matrix) = ([1.0; 32], [1.0; 12]);
        for _ in 0..3 {
            let bindings = [
                Binding::Values(&x[..]),
                Binding::Values(&matrix[..]),
                Binding::Nothing,
            ];
            packed.update(&plan, cpu(), &bindings);
            assert!(packed.weights()[0].is_none());
        }
    }
}

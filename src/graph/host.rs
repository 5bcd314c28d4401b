//! A graph on SIMD.
//!
//! Elementwise operations that follow each other run block by block, so that what lies between
//! them stays in the first-level cache and is written nowhere. Such a value is computed again
//! if it is read after all.

use std::sync::Arc;

use super::{Node, Source};
use crate::buffer::Storage;
use crate::error::{Error, Result, try_reserved, try_zeros};
use crate::ops::Op;
use crate::simd::{self, Cpu};

/// Values that a chain of elementwise operations works on at a time: a few blocks fit into a
/// first-level cache.
const BLOCK: usize = 1024;

type Values = Arc<Vec<f32>>;

/// An elementwise operation in a chain.
struct Step<'a> {
    op: &'a Op,
    inputs: [Input<'a>; 2],
}

#[derive(Clone, Copy)]
enum Input<'a> {
    /// A block of the step at this place.
    Block(usize),
    Values(&'a [f32]),
}

/// The values of every node but those that lie within a chain.
pub(super) struct HostResults {
    cpu: Cpu,
    values: Vec<Option<Values>>,
}

impl HostResults {
    pub(super) fn compute(cpu: Cpu, nodes: &[Node]) -> Result<Self> {
        let mut results = Self {
            cpu,
            values: vec![None; nodes.len()],
        };
        for (index, within) in within_chains(nodes).into_iter().enumerate() {
            if !within {
                results.values[index] = Some(results.node(nodes, index)?);
            }
        }
        Ok(results)
    }

    /// The values of a node, `None` where there is no such node.
    pub(super) fn get(&self, nodes: &[Node], index: usize) -> Result<Option<Values>> {
        match self.values.get(index) {
            Some(Some(values)) => Ok(Some(values.clone())),
            Some(None) => self.node(nodes, index).map(Some),
            None => Ok(None),
        }
    }

    fn node(&self, nodes: &[Node], index: usize) -> Result<Values> {
        match &nodes[index].source {
            Source::Upload(values) => Ok(values.clone()),
            Source::Input(buffer) => match &buffer.storage {
                Storage::Host(values) => Ok(values.clone()),
                // A batch with a buffer on the GPU runs there.
                Storage::Gpu(_) => Err(Error::Foreign {
                    what: "buffer",
                    owner: "back-end",
                }),
            },
            Source::Op { op, .. } if op.is_elementwise() => self.chain(nodes, index),
            Source::Op { op, inputs } => self.operation(op, inputs, nodes[index].len),
        }
    }

    fn operation(&self, op: &Op, inputs: &[usize], len: usize) -> Result<Values> {
        let inputs: Vec<&[f32]> = inputs.iter().map(|&input| self.known(input)).collect();
        let mut out = try_zeros(len)?;
        simd::execute(self.cpu, op, &inputs, &mut out)?;
        Ok(Arc::new(out))
    }

    fn known(&self, index: usize) -> &[f32] {
        self.values[index].as_deref().map_or(&[], Vec::as_slice)
    }

    /// Runs the elementwise operations that lead to a node, a block after the other.
    fn chain(&self, nodes: &[Node], last: usize) -> Result<Values> {
        let len = nodes[last].len;
        let mut out = try_reserved(len)?;
        let steps = self.steps(nodes, last);
        let blocks = steps.iter().map(|_| try_zeros(len.min(BLOCK)));
        let mut blocks = blocks.collect::<Result<Vec<_>>>()?;
        let cpu = Cpu::new(self.cpu.isa, Some(1));
        for at in (0..len).step_by(BLOCK) {
            let range = at..len.min(at + BLOCK);
            for (place, step) in steps.iter().enumerate() {
                let (before, block) = blocks.split_at_mut(place);
                let inputs = step.inputs.map(|input| match input {
                    Input::Block(earlier) => &before[earlier][..range.len()],
                    Input::Values(values) => values.get(range.clone()).unwrap_or_default(),
                });
                let inputs = &inputs[..step.op.inputs().len()];
                simd::execute(cpu, step.op, inputs, &mut block[0][..range.len()])?;
            }
            out.extend_from_slice(&blocks[steps.len() - 1][..range.len()]);
        }
        Ok(Arc::new(out))
    }

    /// What leads to a node from nodes that have values, in the order in which it runs.
    fn steps<'a>(&'a self, nodes: &'a [Node], last: usize) -> Vec<Step<'a>> {
        let order = self.order(nodes, last);
        let step = |&node: &usize| {
            // Everything else has values.
            let Source::Op { op, inputs } = &nodes[node].source else {
                return None;
            };
            let input = |&input: &usize| match order.iter().position(|&earlier| earlier == input) {
                Some(place) => Input::Block(place),
                None => Input::Values(self.known(input)),
            };
            let mut found = [Input::Values(&[]); 2];
            for (place, node) in found.iter_mut().zip(inputs) {
                *place = input(node);
            }
            Some(Step { op, inputs: found })
        };
        order.iter().filter_map(step).collect()
    }

    /// The node and those before it that have no values, in the order in which they run.
    fn order(&self, nodes: &[Node], last: usize) -> Vec<usize> {
        let mut needed = vec![false; last + 1];
        needed[last] = true;
        for step in (0..=last).rev() {
            if let (true, Source::Op { inputs, .. }) = (needed[step], &nodes[step].source) {
                for &input in inputs {
                    needed[input] |= self.values[input].is_none();
                }
            }
        }
        (0..=last).filter(|&step| needed[step]).collect()
    }
}

/// For each node whether it is elementwise and feeds one other that is, and nothing else.
fn within_chains(nodes: &[Node]) -> Vec<bool> {
    const NOBODY: usize = usize::MAX;
    let mut users = vec![NOBODY; nodes.len()];
    let mut within = vec![false; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        if let Source::Op { op, inputs } = &node.source {
            for &input in inputs {
                let first = users[input] == NOBODY;
                within[input] =
                    op.is_elementwise() && (first || (within[input] && users[input] == index));
                users[input] = index;
            }
        }
    }
    for (within, node) in within.iter_mut().zip(nodes) {
        *within &= matches!(&node.source, Source::Op { op, .. } if op.is_elementwise());
    }
    within
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use crate::{Backend, GpuCommandBatch, GpuDevice, runtime};

    #[test]
    fn every_value_of_a_chain_can_be_read() {
        let device = runtime::block_on(GpuDevice::builder().backend(Backend::Simd).build_async());
        for len in [0, 1, 4_096, 10_001] {
            let x: Vec<f32> = (0..len).map(|i| (i % 17) as f32 - 8.0).collect();
            let mut batch = GpuCommandBatch::new(device.clone().unwrap());
            let input = batch.upload(&x);
            let relu = batch.relu(input);
            let scaled = batch.scale(relu, 2.0);
            let square = batch.mul(scaled, scaled);
            let sum = batch.sum(square);
            let both = batch.vec_add(square, input);
            let shifted = batch.sub(both, input);
            runtime::block_on(batch.execute()).unwrap();
            let read = |id| runtime::block_on(batch.read(id)).unwrap();
            let of = |f: fn(f32) -> f32| x.iter().copied().map(f).collect::<Vec<f32>>();
            assert_eq!(read(relu), of(|x| x.max(0.0)));
            assert_eq!(read(scaled), of(|x| 2.0 * x.max(0.0)));
            assert_eq!(read(shifted), of(|x| 4.0 * x.max(0.0) * x.max(0.0)));
            assert_eq!(read(both), of(|x| 4.0 * x.max(0.0) * x.max(0.0) + x));
            assert_eq!(read(sum), [read(square).iter().sum::<f32>()]);
        }
    }
}

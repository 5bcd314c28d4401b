//! From recorded nodes to the operations of a batch. Each node becomes a view of a buffer; moving axes costs nothing
//! until an operation needs its elements in order.

mod matmul;
mod reduce;
mod rules;

use std::collections::HashMap;

use crate::alloc::try_zeros;
use crate::batch::{BufferId, GpuCommandBatch};
use crate::error::Result;
use crate::lazy::shape::size_of;
use crate::lazy::structure::Structure;
use crate::lazy::view::View;
use crate::ops::{Op, Rearrange};

/// Where a result is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It has the elements of the leaf with this index.
    Leaf(usize),
    /// It is the output of the program with this index.
    Output(usize),
}

/// The outputs of a recorded graph, and where each result is found.
pub(super) struct Lowered {
    pub(super) outputs: Vec<BufferId>,
    pub(super) places: Vec<Place>,
}

/// A buffer that several operations may need.
#[derive(PartialEq, Eq, Hash)]
enum Shared {
    /// A number, by its bits.
    Constant(u32),
    /// The numbers from 0 to below this one.
    Range(usize),
    /// The elements of a view in order.
    InOrder(BufferId, Vec<(usize, isize)>, isize),
}

/// A batch into which a graph is recorded.
struct Recording<'a> {
    batch: &'a mut GpuCommandBatch,
    shared: HashMap<Shared, BufferId>,
}

impl Recording<'_> {
    /// Records an operation; returns the view of its result of this shape.
    fn call(&mut self, op: Op, inputs: &[BufferId], shape: &[usize]) -> Result<View> {
        let id = self.batch.try_record(op, inputs)?;
        Ok(View::dense(id, shape))
    }

    fn placeholder(&mut self, shape: &[usize]) -> Result<View> {
        let id = self.batch.try_placeholder(size_of(shape))?;
        Ok(View::dense(id, shape))
    }

    fn constant(&mut self, value: f32) -> Result<View> {
        let make = |batch: &mut GpuCommandBatch| batch.try_upload(&[value]);
        let id = self.once(Shared::Constant(value.to_bits()), make)?;
        Ok(View::dense(id, &[]))
    }

    fn range(&mut self, len: usize) -> Result<View> {
        let make = |batch: &mut GpuCommandBatch| {
            let mut numbers = try_zeros(len)?;
            for (k, number) in numbers.iter_mut().enumerate() {
                *number = k as f32;
            }
            batch.try_own(numbers)
        };
        let id = self.once(Shared::Range(len), make)?;
        Ok(View::dense(id, &[len]))
    }

    /// Returns a buffer with the elements of a view in order.
    fn in_order(&mut self, view: &View) -> Result<BufferId> {
        if view.is_dense() {
            return Ok(view.id);
        }
        let mut axes = view.merged();
        if axes.is_empty() {
            axes.push((1, 1));
        }
        let (shape, strides): (Vec<usize>, Vec<isize>) = axes.iter().copied().unzip();
        let options = Rearrange {
            shape,
            strides,
            offset: view.offset as usize,
        };
        let op = Op::Rearrange { options };
        let make = |batch: &mut GpuCommandBatch| batch.try_record(op, &[view.id]);
        self.once(Shared::InOrder(view.id, axes, view.offset), make)
    }

    fn in_order_all(&mut self, views: &[View]) -> Result<Vec<BufferId>> {
        views.iter().map(|view| self.in_order(view)).collect()
    }

    fn once(
        &mut self,
        key: Shared,
        make: impl FnOnce(&mut GpuCommandBatch) -> Result<BufferId>,
    ) -> Result<BufferId> {
        if let Some(&id) = self.shared.get(&key) {
            return Ok(id);
        }
        let id = make(self.batch)?;
        self.shared.insert(key, id);
        Ok(id)
    }
}

/// Records a graph in a batch.
pub(super) fn lower(batch: &mut GpuCommandBatch, graph: &Structure) -> Result<Lowered> {
    let shared = HashMap::new();
    let mut recording = Recording { batch, shared };
    let mut views: Vec<View> = Vec::with_capacity(graph.nodes.len());
    let mut leaves = Vec::new();
    for node in &graph.nodes {
        let shape = &node.shape[..];
        let view = match &node.operation {
            None => {
                let view = recording.placeholder(shape)?;
                leaves.push(view.id);
                view
            }
            Some((kind, inputs)) => {
                let inputs: Vec<&View> = inputs.iter().map(|&input| &views[input]).collect();
                rules::lower(&mut recording, kind, &inputs, shape)?
            }
        };
        views.push(view);
    }
    let mut outputs = Vec::new();
    let mut places = Vec::new();
    for &result in &graph.results {
        let id = recording.in_order(&views[result])?;
        places.push(match leaves.iter().position(|&leaf| leaf == id) {
            Some(leaf) => Place::Leaf(leaf),
            None => Place::Output(index_of(id, &mut outputs)),
        });
    }
    Ok(Lowered { outputs, places })
}

/// Returns the index of a buffer among outputs, to which it is added if it is none yet.
fn index_of(id: BufferId, outputs: &mut Vec<BufferId>) -> usize {
    let found = outputs.iter().position(|&output| output == id);
    found.unwrap_or_else(|| {
        outputs.push(id);
        outputs.len() - 1
    })
}

//! From recorded nodes to the operations of a batch. Each node becomes a view of a buffer; moving axes costs nothing
//! until an operation needs its elements in order.

mod matmul;
mod reduce;
mod rules;

pub(in crate::lazy) use rules::check_inputs;

use crate::alloc::try_zeros;
use crate::batch::{BufferId, GpuCommandBatch};
use crate::error::{Error, Result};
use crate::lazy::node::Kind;
use crate::lazy::shape::size_of;
use crate::lazy::view::View;
#[cfg(all(target_arch = "wasm32", feature = "js"))]
use crate::ops::axes::PerAxis;
use crate::ops::axes::{Axis, merged};
use crate::ops::{CustomReduction, Op, Rearrange};

/// The position of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It has the elements of the leaf with this index.
    Leaf(usize),
    /// It is the output of the program with this index.
    Output(usize),
}

/// The elements of a buffer that several nodes may need.
enum Shared {
    /// A number, by its bits.
    Constant(u32),
    /// The numbers from 0 to below this one.
    Range(usize),
    /// The elements of a view in order.
    InOrder(View),
}

impl Shared {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Constant(a), Self::Constant(b)) => a == b,
            (Self::Range(a), Self::Range(b)) => a == b,
            (Self::InOrder(a), Self::InOrder(b)) => {
                a.id == b.id && a.offset == b.offset && a.axes[..] == b.axes[..]
            }
            _ => false,
        }
    }
}

/// Lowers nodes, each after its inputs, and records their operations in a batch.
pub(crate) struct Lowering<'a> {
    batch: &'a mut GpuCommandBatch,
    /// The views of the nodes so far.
    views: Vec<View>,
    leaves: Vec<BufferId>,
    shared: Vec<(Shared, BufferId)>,
    /// The first mistake in recording, so that rules need not return it.
    error: Option<Error>,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(batch: &'a mut GpuCommandBatch) -> Self {
        Self {
            batch,
            views: Vec::new(),
            leaves: Vec::new(),
            shared: Vec::new(),
            error: None,
        }
    }

    /// Adds a leaf.
    pub(crate) fn leaf(&mut self, shape: &[usize]) -> Result<()> {
        let id = self.batch.try_placeholder(size_of(shape))?;
        self.leaves.push(id);
        self.views.push(View::dense(id, shape));
        Ok(())
    }

    /// Adds an operation of earlier nodes.
    ///
    /// # Errors
    /// `LengthMismatch` if the kind takes another number of inputs, and the errors of recording.
    pub(crate) fn operation(
        &mut self,
        kind: &Kind,
        inputs: &[usize],
        shape: &[usize],
    ) -> Result<()> {
        rules::check_inputs(kind, inputs.len())?;
        let mut views = Vec::with_capacity(inputs.len());
        for &input in inputs {
            views.push(self.views[input]);
        }
        let view = rules::lower(self, kind, &views, shape);
        self.views.push(view);
        self.error.take().map_or(Ok(()), Err)
    }

    /// Returns the number of nodes so far.
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    pub(crate) fn count(&self) -> usize {
        self.views.len()
    }

    /// Returns the shape of a node.
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    pub(crate) fn shape(&self, node: usize) -> PerAxis<usize> {
        self.views[node].axes.shape()
    }

    /// Returns the buffers that results need, and where each result is found.
    pub(crate) fn finish(mut self, results: &[usize]) -> Result<(Vec<BufferId>, Vec<Place>)> {
        let (mut outputs, mut places) = (Vec::new(), Vec::new());
        for &result in results {
            let view = self.views[result];
            let id = self.in_order(&view);
            places.push(match self.leaves.iter().position(|&leaf| leaf == id) {
                Some(leaf) => Place::Leaf(leaf),
                None => Place::Output(index_of(id, &mut outputs)),
            });
        }
        match self.error {
            None => Ok((outputs, places)),
            Some(error) => Err(error),
        }
    }

    /// Records an operation of the elements of views; returns the view of its result of this shape.
    fn call(&mut self, op: Op, inputs: &[View], shape: &[usize]) -> View {
        let mut ids = Vec::with_capacity(inputs.len());
        for input in inputs {
            ids.push(self.in_order(input));
        }
        let id = self.batch.try_record(op, &ids);
        View::dense(self.checked(id), shape)
    }

    /// Records a level of a custom reduction.
    fn custom_reduce(&mut self, op: CustomReduction, x: &View, shape: &[usize]) -> View {
        let x = self.in_order(x);
        let id = self.batch.try_custom_reduce(op, x);
        View::dense(self.checked(id), shape)
    }

    fn constant(&mut self, value: f32) -> View {
        View::dense(self.once(Shared::Constant(value.to_bits())), &[])
    }

    fn range(&mut self, len: usize) -> View {
        View::dense(self.once(Shared::Range(len)), &[len])
    }

    /// Returns a buffer with the elements of a view in order.
    fn in_order(&mut self, view: &View) -> BufferId {
        if view.is_dense() {
            return view.id;
        }
        let axes = merged(&view.axes);
        self.once(Shared::InOrder(View { axes, ..*view }))
    }

    fn once(&mut self, shared: Shared) -> BufferId {
        let found = self.shared.iter().find(|(own, _)| own.is(&shared));
        if let Some(&(_, id)) = found {
            return id;
        }
        let id = match &shared {
            Shared::Constant(bits) => self.batch.try_upload(&[f32::from_bits(*bits)]),
            Shared::Range(len) => numbers(*len).and_then(|numbers| self.batch.try_own(numbers)),
            Shared::InOrder(view) => {
                let options = rearrange(view);
                self.batch.try_record(Op::Rearrange { options }, &[view.id])
            }
        };
        let id = self.checked(id);
        self.shared.push((shared, id));
        id
    }

    /// Returns the recorded buffer, or stores the error of the recording.
    fn checked(&mut self, id: Result<BufferId>) -> BufferId {
        id.unwrap_or_else(|error| {
            self.error.get_or_insert(error);
            self.batch.failed()
        })
    }
}

/// Returns the index of a buffer among the outputs. Adds the buffer if it is not an output yet.
fn index_of(id: BufferId, outputs: &mut Vec<BufferId>) -> usize {
    let found = outputs.iter().position(|&output| output == id);
    found.unwrap_or_else(|| {
        outputs.push(id);
        outputs.len() - 1
    })
}

/// Returns the numbers from 0 to below `len`.
fn numbers(len: usize) -> Result<Vec<f32>> {
    let mut numbers = try_zeros(len)?;
    for (k, number) in numbers.iter_mut().enumerate() {
        *number = k as f32;
    }
    Ok(numbers)
}

/// Returns the options of the operation that copies the elements of a view in order.
fn rearrange(view: &View) -> Rearrange {
    let mut axes = view.axes;
    if axes.is_empty() {
        axes.push(Axis { len: 1, stride: 1 });
    }
    let (mut shape, mut strides) = (Vec::new(), Vec::new());
    for axis in axes.iter() {
        shape.push(axis.len);
        strides.push(axis.stride);
    }
    Rearrange {
        shape,
        strides,
        offset: view.offset as usize,
    }
}

//! Nodes of a graph, which the methods of tensors record.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::device::buffer::DeviceBuffer;
use crate::lazy::shape::size_of;
use crate::lazy::view::Walk;
use crate::ops::{AxisFold, ConvLayer, Op};

/// An operation of a node. What it does not hold follows from the shapes of its node and of the inputs.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// An elementwise operation, whose inputs broadcast to the node's shape.
    Elementwise(Op),
    /// A number that is part of the structure.
    Constant(f32),
    /// The numbers from 0 on.
    Range,
    View(Walk),
    Reshape,
    Reduce {
        fold: AxisFold,
        axes: Vec<usize>,
        keep_dims: bool,
    },
    /// An operation of rows, along one axis. Its rows and columns are not known yet.
    Rows {
        axis: usize,
        rows: Rows,
    },
    Matmul,
    Convolve(ConvLayer),
    Concat {
        axis: usize,
    },
    Gather {
        axis: usize,
    },
    TopK {
        k: usize,
    },
    /// Elements of the last axis by their indices.
    Take,
    UnpackBytes,
    PackBytes,
}

/// An operation of rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rows {
    Softmax,
    LogSoftmax,
    LayerNorm { epsilon: f32 },
    RmsNorm { epsilon: f32 },
}

impl Rows {
    pub(super) fn op(self, rows: usize, cols: usize) -> Op {
        match self {
            Self::Softmax => Op::SoftmaxRows { rows, cols },
            Self::LogSoftmax => Op::LogSoftmaxRows { rows, cols },
            Self::LayerNorm { epsilon } => Op::LayerNorm {
                rows,
                cols,
                epsilon,
            },
            Self::RmsNorm { epsilon } => Op::RmsNorm {
                rows,
                cols,
                epsilon,
            },
        }
    }
}

/// The elements of a leaf.
#[derive(Clone)]
pub(super) enum Source {
    Values(Arc<Vec<f32>>),
    Buffer(DeviceBuffer),
}

/// A leaf, or an operation that was recorded.
#[derive(Clone)]
pub(super) enum State {
    Leaf(Source),
    Operation(Arc<Kind>, Vec<Arc<Node>>),
}

/// A leaf or an operation with its inputs, and the shape of its result.
pub(super) struct Node {
    pub(super) shape: Vec<usize>,
    /// Whether all elements are 0 or 1.
    pub(super) is_truth: bool,
    /// Whether the values of a leaf went to the device before.
    was_used: AtomicBool,
    state: Mutex<State>,
}

impl Node {
    /// Creates a leaf.
    pub(super) fn leaf(shape: &[usize], source: Source) -> Arc<Self> {
        Self::new(shape, false, State::Leaf(source))
    }

    /// Creates a number that is an argument of programs, and no part of their structure.
    pub(super) fn number(value: f32) -> Arc<Self> {
        Self::leaf(&[], Source::Values(Arc::new(vec![value])))
    }

    /// Creates a number that is part of the structure.
    pub(super) fn constant(value: f32) -> Arc<Self> {
        Self::operation(Kind::Constant(value), &[], &[])
    }

    /// Creates the node of an operation. What has no elements needs no operation.
    pub(super) fn operation(kind: Kind, inputs: &[&Arc<Self>], shape: &[usize]) -> Arc<Self> {
        Self::new(shape, false, Self::state_of(kind, inputs, shape))
    }

    /// Creates the node of an operation whose results are 0 or 1.
    pub(super) fn truth(kind: Kind, inputs: &[&Arc<Self>], shape: &[usize]) -> Arc<Self> {
        Self::new(shape, true, Self::state_of(kind, inputs, shape))
    }

    fn state_of(kind: Kind, inputs: &[&Arc<Self>], shape: &[usize]) -> State {
        if size_of(shape) == 0 {
            return State::Leaf(Source::Values(Arc::default()));
        }
        let inputs = inputs.iter().map(|&input| Arc::clone(input));
        State::Operation(Arc::new(kind), inputs.collect())
    }

    fn new(shape: &[usize], is_truth: bool, state: State) -> Arc<Self> {
        Arc::new(Self {
            shape: shape.to_vec(),
            is_truth,
            was_used: AtomicBool::new(false),
            state: Mutex::new(state),
        })
    }

    /// Returns the number of elements.
    pub(super) fn size(&self) -> usize {
        size_of(&self.shape)
    }

    /// Returns the leaf or operation that the node is now.
    pub(super) fn state(&self) -> State {
        self.locked().clone()
    }

    /// Returns the elements of a leaf; `None` of an operation.
    pub(super) fn source(&self) -> Option<Source> {
        match &*self.locked() {
            State::Leaf(source) => Some(source.clone()),
            State::Operation(..) => None,
        }
    }

    /// Makes a leaf of the node, and forgets what it was computed from. A leaf on the device stays what it is.
    pub(super) fn settle(&self, buffer: DeviceBuffer) {
        let mut state = self.locked();
        if matches!(&*state, State::Leaf(Source::Buffer(_))) {
            return;
        }
        let former = std::mem::replace(&mut *state, State::Leaf(Source::Buffer(buffer)));
        // Dropping the inputs may take long.
        drop(state);
        drop(former);
    }

    /// Notes that the values of a leaf go to the device. Returns whether they did before.
    pub(super) fn note_use(&self) -> bool {
        self.was_used.swap(true, Ordering::Relaxed)
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the inputs of a node that nothing else refers to.
    fn take_inputs(&mut self) -> Vec<Arc<Self>> {
        match self.state.get_mut().unwrap_or_else(PoisonError::into_inner) {
            State::Operation(_, inputs) => std::mem::take(inputs),
            State::Leaf(_) => Vec::new(),
        }
    }
}

/// Graphs may be deeper than the stack, so dropping one does not recurse.
impl Drop for Node {
    fn drop(&mut self) {
        let mut left = self.take_inputs();
        while let Some(node) = left.pop() {
            if let Some(mut last) = Arc::into_inner(node) {
                left.append(&mut last.take_inputs());
            }
        }
    }
}

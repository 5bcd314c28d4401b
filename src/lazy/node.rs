//! Nodes of a graph, which the methods of tensors record.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::device::buffer::DeviceBuffer;
use crate::error::Result;
use crate::lazy::shape::size_of;
use crate::lazy::view::Walk;
use crate::ops::indices::WorstIndex;
use crate::ops::{AxisFold, ConvLayer, Op, Reduction};

/// An operation of a node. Parameters that it does not hold follow from the shapes of its node and of the inputs.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
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
    /// A reduction of the user's own.
    CustomReduce {
        reduction: Reduction,
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
    /// Sums of the rows of a matrix that have the same index, as the rows of a matrix.
    Scatter,
    TopK {
        k: usize,
    },
    /// Elements of the last axis by their indices.
    Take,
    /// The elements of the input as a constant: no gradient flows back to the input.
    StopGradient,
    /// Bytes of words as numbers from 0 to 1; byte `j` of word `i` becomes the element `i · 4 + j`, or `j · stride + i`
    /// where the stride is not 1.
    UnpackBytes {
        stride: usize,
    },
    /// The inverse of `UnpackBytes`.
    PackBytes {
        stride: usize,
    },
}

/// An operation of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rows {
    Softmax,
    LogSoftmax,
    LayerNorm {
        epsilon: f32,
    },
    RmsNorm {
        epsilon: f32,
    },
    Cumsum,
    Cumprod,
    Sort,
    Argsort,
    /// Fourier transforms of complex numbers, whose parts are neighbours along the axis.
    Fft,
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
            Self::Cumsum => Op::CumsumRows { rows, cols },
            Self::Cumprod => Op::CumprodRows { rows, cols },
            Self::Sort => Op::SortRows { rows, cols },
            Self::Argsort => Op::ArgsortRows { rows, cols },
            Self::Fft => {
                let len = cols / 2;
                Op::FftRows { rows, len }
            }
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
    /// The elements as indices, if the host had them.
    worst_index: OnceLock<GivenIndices>,
    state: Mutex<State>,
}

/// The elements of a node that the host had, as indices.
#[derive(Clone, Copy)]
pub(super) struct GivenIndices {
    worst: WorstIndex,
    /// Whether the elements lie in the order in which they were given.
    in_order: bool,
}

impl GivenIndices {
    /// Checks that all elements are indices below `count`.
    ///
    /// # Errors
    /// `InvalidArgument` with an element that is not such an index.
    pub(super) fn check(self, what: &'static str, count: usize) -> Result<()> {
        self.worst.check(what, count, self.in_order)
    }
}

/// A step from a node towards the given values that its elements come from.
enum Origin {
    Given(GivenIndices),
    /// All elements of another node, and whether they are in the same order.
    Moved(Arc<Node>, bool),
    Computed,
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

    /// Creates the node of an operation. A result without elements needs no operation.
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
            worst_index: OnceLock::new(),
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

    /// Returns the elements as indices if they are all of the values that the caller gave to a leaf, in any order and
    /// repeated, wherever these are now; `None` of elements that a device computed or that came in a buffer.
    pub(super) fn given_indices(&self) -> Option<GivenIndices> {
        let (mut origin, mut in_order) = (self.origin(), true);
        loop {
            match origin {
                Origin::Given(given) => {
                    let in_order = in_order && given.in_order;
                    return Some(GivenIndices { in_order, ..given });
                }
                Origin::Moved(node, keeps_order) => {
                    in_order &= keeps_order;
                    origin = node.origin();
                }
                Origin::Computed => return None,
            }
        }
    }

    fn origin(&self) -> Origin {
        if let Some(&given) = self.worst_index.get() {
            return Origin::Given(given);
        }
        match &*self.locked() {
            State::Leaf(Source::Values(values)) => {
                let in_order = true;
                let of = || GivenIndices {
                    worst: WorstIndex::of(values),
                    in_order,
                };
                Origin::Given(*self.worst_index.get_or_init(of))
            }
            State::Operation(kind, inputs) => match (&**kind, &inputs[..]) {
                (Kind::Reshape | Kind::StopGradient, [x]) => Origin::Moved(Arc::clone(x), true),
                (Kind::View(walk), [x]) if walk.shows_all(&x.shape, &self.shape) => {
                    Origin::Moved(Arc::clone(x), false)
                }
                _ => Origin::Computed,
            },
            State::Leaf(Source::Buffer(_)) => Origin::Computed,
        }
    }

    /// Makes a leaf of the node, and releases its inputs. A leaf on the device does not change.
    pub(super) fn settle(&self, buffer: DeviceBuffer) {
        // What the host knows now it knows later, so that the same mistake is always an error.
        if let Some(given) = self.given_indices() {
            let _ = self.worst_index.set(given);
        }
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

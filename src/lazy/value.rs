//! Values of a graph that derivatives and steps of optimizers are written with. Their operations are never inlined, since rules
//! are many and short, and their size counts in a page's download.

use std::cell::RefCell;
use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::node::Kind;
use crate::lazy::shape::{broadcast, check_result, reduced, size_of};
use crate::lazy::structure::Described;
use crate::lazy::view::Walk;
use crate::ops::{AxisFold, Op};

/// The nodes of a graph, to which derivatives add nodes.
pub(super) struct Tape {
    nodes: RefCell<Vec<Described>>,
    /// The first error of a shape, so that rules need not return it.
    error: RefCell<Option<Error>>,
}

/// A node of a tape.
#[derive(Clone, Copy)]
pub(super) struct Value<'t> {
    tape: &'t Tape,
    pub(super) node: usize,
}

impl Tape {
    pub(super) fn new(nodes: Vec<Described>) -> Self {
        Self {
            nodes: RefCell::new(nodes),
            error: RefCell::default(),
        }
    }

    pub(super) fn value(&self, node: usize) -> Value<'_> {
        Value { tape: self, node }
    }

    /// Returns the operation of a node with its inputs; `None` for a leaf.
    pub(super) fn operation(&self, node: usize) -> Option<(Arc<Kind>, Vec<usize>)> {
        self.nodes.borrow()[node].operation.clone()
    }

    /// Adds a number.
    pub(super) fn number(&self, value: f32) -> Value<'_> {
        self.record(Kind::Constant(value), &[], &[])
    }

    /// Adds a number in all elements of a shape.
    pub(super) fn full(&self, value: f32, shape: &[usize]) -> Value<'_> {
        self.number(value).broadcast_to(shape)
    }

    /// Adds an operation.
    #[inline(never)]
    pub(super) fn record(&self, kind: Kind, inputs: &[Value<'_>], shape: &[usize]) -> Value<'_> {
        self.noted(check_result(shape));
        let inputs = inputs.iter().map(|input| input.node).collect();
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(Described {
            shape: shape.to_vec(),
            operation: Some((Arc::new(kind), inputs)),
        });
        self.value(nodes.len() - 1)
    }

    /// Returns the shape that two shapes broadcast to.
    fn broadcast(&self, a: &[usize], b: &[usize]) -> Vec<usize> {
        let shape = broadcast("gradients", &[("a", a), ("b", b)]);
        self.noted(shape).unwrap_or_default()
    }

    /// Returns a value, or stores the first error.
    fn noted<T>(&self, result: Result<T>) -> Option<T> {
        result
            .map_err(|error| {
                self.error.borrow_mut().get_or_insert(error);
            })
            .ok()
    }

    /// Returns all nodes.
    ///
    /// # Errors
    /// The first error of recording.
    pub(super) fn finish(self) -> Result<Vec<Described>> {
        match self.error.into_inner() {
            None => Ok(self.nodes.into_inner()),
            Some(error) => Err(error),
        }
    }
}

/// A number or a value, as the other operand of an operation.
pub(super) trait Operand<'t> {
    fn on(self, tape: &'t Tape) -> Value<'t>;
}

impl<'t> Operand<'t> for f32 {
    fn on(self, tape: &'t Tape) -> Value<'t> {
        tape.number(self)
    }
}

impl<'t> Operand<'t> for Value<'t> {
    fn on(self, _: &'t Tape) -> Value<'t> {
        self
    }
}

/// Defines an operator of a value and an operand.
macro_rules! operator {
    ($trait:ident $name:ident $op:ident) => {
        impl<'t, B: Operand<'t>> $trait<B> for Value<'t> {
            type Output = Self;

            #[inline(never)]
            fn $name(self, b: B) -> Self {
                self.with(Op::$op, b)
            }
        }

        impl<'t> $trait<Value<'t>> for f32 {
            type Output = Value<'t>;

            #[inline(never)]
            fn $name(self, b: Value<'t>) -> Value<'t> {
                self.on(b.tape).with(Op::$op, b)
            }
        }
    };
}

operator!(Add add VecAdd);
operator!(Sub sub Sub);
operator!(Mul mul Mul);
operator!(Div div Div);

impl Neg for Value<'_> {
    type Output = Self;

    #[inline(never)]
    fn neg(self) -> Self {
        self.apply(Op::Neg)
    }
}

/// Defines methods that apply an operation of one input.
macro_rules! unary {
    ($($name:ident $op:ident)+) => {
        impl Value<'_> {
            $(
                #[inline(never)]
                pub(super) fn $name(self) -> Self {
                    self.apply(Op::$op)
                }
            )+
        }
    };
}

unary! {
    exp Exp log Log sign Sign sin Sin cos Cos tanh Tanh erf Erf sigmoid Sigmoid softplus Softplus rsqrt Rsqrt sqrt Sqrt
    swish Swish gelu_tanh GeluTanh square Square
}

/// Elementwise operations.
impl<'t> Value<'t> {
    /// Applies an operation of one input.
    #[inline(never)]
    pub(super) fn apply(self, op: Op) -> Self {
        self.tape
            .record(Kind::Elementwise(op), &[self], &self.shape())
    }

    /// Applies an operation to values whose shapes broadcast with each other.
    #[inline(never)]
    pub(super) fn apply_all(self, op: Op, others: &[Self]) -> Self {
        let inputs = [&[self], others].concat();
        let mut shape = Vec::new();
        for input in &inputs {
            shape = self.tape.broadcast(&shape, &input.shape());
        }
        self.tape.record(Kind::Elementwise(op), &inputs, &shape)
    }

    fn with(self, op: Op, b: impl Operand<'t>) -> Self {
        self.apply_all(op, &[b.on(self.tape)])
    }

    pub(super) fn clip(self, min: f32, max: f32) -> Self {
        self.apply(Op::Clip { min, max })
    }

    pub(super) fn minimum(self, b: impl Operand<'t>) -> Self {
        self.with(Op::Minimum, b)
    }

    pub(super) fn maximum(self, b: impl Operand<'t>) -> Self {
        self.with(Op::Maximum, b)
    }

    /// Returns the power `baseˣ` of a positive number.
    pub(super) fn exponential(self, base: f32) -> Self {
        base.on(self.tape).with(Op::Pow, self)
    }

    /// Returns 1 where both are equal, and 0 elsewhere.
    pub(super) fn equal(self, b: impl Operand<'t>) -> Self {
        self.with(Op::Equal, b)
    }

    /// Returns 1 where this value is less, and 0 elsewhere.
    pub(super) fn less(self, b: impl Operand<'t>) -> Self {
        self.with(Op::Less, b)
    }

    /// Returns 1 where this value is greater, and 0 elsewhere.
    pub(super) fn greater(self, b: impl Operand<'t>) -> Self {
        b.on(self.tape).less(self)
    }

    /// Returns the elements where a condition is not 0, and 0 elsewhere, even in place of infinity and NaN.
    pub(super) fn only_where(self, condition: Self) -> Self {
        // The sum makes 0 of −0.
        self.with(Op::KeepWhere, condition) + 0.0
    }

    /// Returns elements of `a` where this condition is not 0, and of `b` elsewhere.
    pub(super) fn choose(self, a: Self, b: Self) -> Self {
        a.with(Op::KeepWhere, self) + b.with(Op::KeepUnless, self)
    }

    /// Returns the derivative of swish.
    pub(super) fn swish_slope(self) -> Self {
        let gate = self.sigmoid();
        gate * (1.0 + self * (1.0 - gate))
    }

    /// Returns the derivative of the exact GELU, `Φ(x) + x · φ(x)`.
    pub(super) fn gelu_slope(self) -> Self {
        let share = 0.5 * (1.0 + (self * FRAC_1_SQRT_2).erf());
        let density = (-0.5 * self.square()).exp() * (0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2);
        share + self * density
    }

    /// Returns the derivative of GELU by the tanh formula.
    pub(super) fn gelu_tanh_slope(self) -> Self {
        /// The coefficient of the cube.
        const CUBIC: f32 = 0.044_715;
        let scale = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
        let squared = self.square();
        let t = (self * (1.0 + squared * CUBIC) * scale).tanh();
        let inner = (1.0 + squared * (3.0 * CUBIC)) * scale;
        0.5 * (1.0 + t) + 0.5 * self * (1.0 - t.square()) * inner
    }

    /// Returns the derivative of Mish.
    pub(super) fn mish_slope(self) -> Self {
        let t = self.softplus().tanh();
        t + self * (1.0 - t.square()) * self.sigmoid()
    }

    /// Returns the derivative of the power `aᵇ` by `a`: 0 where `b` is 0, even beside `a = 0`.
    pub(super) fn power_slope(self, b: Self) -> Self {
        let exponent = b - 1.0 + b.equal(0.0) * 2.0;
        b * self.with(Op::Pow, exponent)
    }
}

/// Shapes, reductions and matmuls.
impl<'t> Value<'t> {
    pub(super) fn tape(self) -> &'t Tape {
        self.tape
    }

    pub(super) fn shape(self) -> Vec<usize> {
        self.tape.nodes.borrow()[self.node].shape.clone()
    }

    pub(super) fn reshape(self, shape: &[usize]) -> Self {
        if self.shape() == shape {
            return self;
        }
        self.tape.record(Kind::Reshape, &[self], shape)
    }

    pub(super) fn view(self, walk: Walk, shape: &[usize]) -> Self {
        self.tape.record(Kind::View(walk), &[self], shape)
    }

    /// Repeats elements up to a shape.
    pub(super) fn broadcast_to(self, shape: &[usize]) -> Self {
        let own = self.shape();
        if own == shape {
            return self;
        }
        self.view(Walk::repeating(&own, shape), shape)
    }

    /// Returns the value with axis `k` where `order[k]` was.
    pub(super) fn permute(self, order: &[usize]) -> Self {
        let own = self.shape();
        let shape: Vec<usize> = order.iter().map(|&axis| own[axis]).collect();
        self.view(Walk::permuted(order), &shape)
    }

    /// Returns the value with its last two axes swapped.
    pub(super) fn transpose(self) -> Self {
        let mut order: Vec<usize> = (0..self.shape().len()).collect();
        let last = order.len() - 1;
        order.swap(last - 1, last);
        self.permute(&order)
    }

    /// Sums along axes, which stay with the length 1 or go.
    pub(super) fn sum(self, axes: &[usize], keep_dims: bool) -> Self {
        self.reduce(AxisFold::Sum, axes, keep_dims)
    }

    /// Returns the mean along an axis, which stays.
    pub(super) fn mean(self, axis: usize) -> Self {
        self.reduce(AxisFold::Mean, &[axis], true)
    }

    fn reduce(self, fold: AxisFold, axes: &[usize], keep_dims: bool) -> Self {
        let shape = reduced(&self.shape(), axes, keep_dims);
        let kind = Kind::Reduce {
            fold,
            axes: axes.to_vec(),
            keep_dims,
        };
        self.tape.record(kind, &[self], &shape)
    }

    /// Sums along the axes that broadcasting repeated, so that the result has the shape of the operand.
    pub(super) fn sum_to(self, shape: &[usize]) -> Self {
        let own = self.shape();
        let missing = own.len() - shape.len();
        let repeats = |axis: usize| axis < missing || shape[axis - missing] != own[axis];
        let axes: Vec<usize> = (0..own.len()).filter(|&axis| repeats(axis)).collect();
        let sums = if axes.is_empty() {
            self
        } else {
            self.sum(&axes, false)
        };
        sums.reshape(shape)
    }

    /// Multiplies matrices or stacks of them, whose axes before the last two broadcast.
    pub(super) fn matmul(self, b: Self) -> Self {
        let (own, other) = (self.shape(), b.shape());
        let (own_lead, other_lead) = (&own[..own.len() - 2], &other[..other.len() - 2]);
        let mut shape = self.tape.broadcast(own_lead, other_lead);
        shape.extend([own[own.len() - 2], other[other.len() - 1]]);
        self.tape.record(Kind::Matmul, &[self, b], &shape)
    }

    /// Joins values along an axis.
    fn concat(parts: &[Self], axis: usize) -> Self {
        if let [alone] = parts {
            return *alone;
        }
        let mut shape = parts[0].shape();
        shape[axis] = parts.iter().map(|part| part.shape()[axis]).sum();
        parts[0].tape.record(Kind::Concat { axis }, parts, &shape)
    }

    /// Adds zeros before and after an axis.
    pub(super) fn pad(self, axis: usize, before: usize, after: usize) -> Self {
        let zeros = |count: usize| {
            let mut shape = self.shape();
            shape[axis] = count;
            self.tape.full(0.0, &shape)
        };
        let mut parts = Vec::new();
        if before > 0 {
            parts.push(zeros(before));
        }
        parts.push(self);
        if after > 0 {
            parts.push(zeros(after));
        }
        Self::concat(&parts, axis)
    }

    /// Returns `count` elements of an axis from `start` on.
    pub(super) fn slice(self, axis: usize, start: usize, count: usize) -> Self {
        let mut shape = self.shape();
        if shape[axis] == count {
            return self;
        }
        let mut walk = Walk::along(shape.len());
        walk.starts[axis] = start;
        shape[axis] = count;
        self.view(walk, &shape)
    }

    /// Reverses axes.
    pub(super) fn flip(self, axes: &[usize]) -> Self {
        let shape = self.shape();
        let mut walk = Walk::along(shape.len());
        for &axis in axes {
            walk.steps[axis] = -1;
            walk.starts[axis] = shape[axis] - 1;
        }
        self.view(walk, &shape)
    }

    /// Puts zeros between the elements of an axis, so that neighbours are `step` apart.
    pub(super) fn spread(self, axis: usize, step: usize) -> Self {
        let mut shape = self.shape();
        let len = shape[axis];
        if step == 1 || len == 1 {
            return self;
        }
        // Only three axes, so that one more is within the limit.
        let [outer, inner] = [size_of(&shape[..axis]), size_of(&shape[axis + 1..])];
        let apart = self.reshape(&[outer, len, 1, inner]).pad(2, 0, step - 1);
        let between = apart.reshape(&[outer, len * step, inner]);
        shape[axis] = (len - 1) * step + 1;
        between.slice(1, 0, shape[axis]).reshape(&shape)
    }
}

//! Elementwise operations, comparisons and logical operations.

use std::sync::Arc;

use crate::error::Result;
use crate::lazy::node::{Kind, Node};
use crate::lazy::operand::Operand;
use crate::lazy::shape::{Named, broadcast};
use crate::lazy::tensor::Tensor;
use crate::ops::shape::output_len;
use crate::ops::{Op, for_each_op};

/// Defines the method of a row of the op table, if it is elementwise. `scale` and the comparisons stand below.
macro_rules! elementwise_method {
    ($class:ident BiasAdd $($row:tt)*) => {};
    ($class:ident Scale $($row:tt)*) => {};
    ($class:ident Equal $($row:tt)*) => {};
    ($class:ident Less $($row:tt)*) => {};
    ($class:ident LessEqual $($row:tt)*) => {};
    (Elementwise $($row:tt)*) => { elementwise_method!(@ $($row)*); };
    (Transcendental $($row:tt)*) => { elementwise_method!(@ $($row)*); };
    (@ $op:ident $name:ident [$($doc:tt)*] ($x:ident) ($($parameter:ident: $type:ty),*) $value:expr) => {
        $($doc)*
        pub fn $name(&self $(, $parameter: $type)*) -> Result<Tensor> {
            self.unary($value)
        }
    };
    (@ $op:ident $name:ident [$($doc:tt)*] ($a:ident $b:ident) () $value:expr) => {
        $($doc)*
        pub fn $name<'a>(&self, $b: impl Into<Operand<'a>>) -> Result<Tensor> {
            self.binary($value, [stringify!($a), stringify!($b)], $b.into())
        }
    };
    ($($other:tt)*) => {};
}

macro_rules! define_tensor_methods {
    (
        vectors { $( $(#[$vdoc:meta])* $vname:ident $vasync:ident $vjs:ident $vop:ident ($($vin:ident),+) -> $vout:ident $({ $($vp:ident: $vt:ty),+ })? $vclass:ident, $vulp:literal $(, $vsamples:tt)? $(=> $vgradients:tt)?; )* }
        scalars { $($scalars:tt)* }
    ) => {
        /// The elementwise operations of the [op table](crate::ops). Inputs broadcast with each other.
        ///
        /// ```
        /// # #[cfg(not(target_arch = "wasm32"))] {
        /// use relampago::{GpuDevice, Tensors};
        ///
        /// let tensors = Tensors::new(&GpuDevice::new()?);
        /// let x = tensors.tensor(&[-1.0, 4.0, 9.0], &[3])?;
        /// let column = tensors.tensor(&[1.0, 10.0], &[2, 1])?;
        /// let table = x.relu()?.sqrt()?.mul(&column)?.sub(1.0)?;
        /// assert_eq!(table.shape(), [2, 3]);
        /// assert_eq!(table.read()?, [-1.0, 1.0, 2.0, -1.0, 19.0, 29.0]);
        /// # }
        /// # Ok::<(), relampago::Error>(())
        /// ```
        impl Tensor {
            $(
                elementwise_method! {
                    $vclass $vop $vname [$(#[$vdoc])*] ($($vin)+) ($($($vp: $vt),+)?) Op::$vop $({ $($vp),+ })?
                }
            )*
        }
    };
}
for_each_op!(define_tensor_methods);

/// Sums, comparisons and logical operations.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[-2.0, 0.5, 3.0], &[3])?;
/// let is_inside = x.greater(-1.0)?.and(&x.less_equal(1.0)?)?;
/// assert_eq!(is_inside.read()?, [0.0, 1.0, 0.0]);
/// assert_eq!(is_inside.select(&x, 9.0)?.read()?, [9.0, 0.5, 9.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Elementwise sum: `y = a + b`.
    pub fn add<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.binary(Op::VecAdd, ["a", "b"], b.into())
    }

    /// Multiplication by a number: `y = factor · x`. The number may change without a new plan.
    pub fn scale(&self, factor: f32) -> Result<Tensor> {
        self.mul(factor)
    }

    /// 1 where `a` equals `b`, 0 elsewhere. The result is 0 if either is NaN.
    pub fn equal<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.compare("equal", Op::Equal, b.into(), false)
    }

    /// 0 where `a` equals `b`, 1 elsewhere; 1 beside NaN.
    pub fn not_equal<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let equal = self.compare("not_equal", Op::Equal, b.into(), false)?;
        Ok(self.with(not(&equal.node)))
    }

    /// 1 where `a < b`, 0 elsewhere; 0 beside NaN.
    pub fn less<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.compare("less", Op::Less, b.into(), false)
    }

    /// 1 where `a ≤ b`, 0 elsewhere; 0 beside NaN.
    pub fn less_equal<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.compare("less_equal", Op::LessEqual, b.into(), false)
    }

    /// 1 where `a > b`, 0 elsewhere; 0 beside NaN.
    pub fn greater<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.compare("greater", Op::Less, b.into(), true)
    }

    /// 1 where `a ≥ b`, 0 elsewhere; 0 beside NaN.
    pub fn greater_equal<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.compare("greater_equal", Op::LessEqual, b.into(), true)
    }

    /// 1 where both are not 0, 0 elsewhere.
    pub fn and<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.logical("and", Op::Mul, b.into())
    }

    /// 1 where either is not 0, 0 elsewhere.
    pub fn or<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.logical("or", Op::Maximum, b.into())
    }

    /// 1 where elements are 0, 0 elsewhere.
    pub fn not(&self) -> Result<Tensor> {
        Ok(self.with(not(&self.node)))
    }

    /// 1 where elements are NaN, 0 elsewhere.
    pub fn is_nan(&self) -> Result<Tensor> {
        self.not_equal(self)
    }

    /// 1 where elements are neither NaN nor infinite, 0 elsewhere.
    pub fn is_finite(&self) -> Result<Tensor> {
        self.abs()?.less_equal(f32::MAX)
    }

    /// `a` where this tensor is not 0, and `b` elsewhere.
    #[doc(alias = "where")]
    pub fn select<'a, 'b>(
        &self,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'b>>,
    ) -> Result<Tensor> {
        let (a, b) = (self.beside("a", a)?, self.beside("b", b)?);
        let named = [("condition", &self.node), ("a", &a), ("b", &b)];
        let shape = broadcast("select", &named.map(shaped))?;
        let kept = elementwise(Op::KeepWhere, &[&a, &self.node], &shape);
        // The other one is −0 there, which changes nothing in a sum.
        let others = elementwise(Op::KeepUnless, &[&b, &self.node], &shape);
        Ok(self.with(elementwise(Op::VecAdd, &[&kept, &others], &shape)))
    }

    fn unary(&self, op: Op) -> Result<Tensor> {
        // Parameters are checked with lengths.
        output_len(&op, &[1])?;
        Ok(self.with(elementwise(op, &[&self.node], self.shape())))
    }

    /// Records an operation of this tensor and another input, by the names that the operation gives them.
    fn binary(&self, op: Op, [own, name]: [&'static str; 2], other: Operand<'_>) -> Result<Tensor> {
        let method = if op == Op::VecAdd { "add" } else { op.name() };
        let other = self.beside(name, other)?;
        let named = [(own, &self.node), (name, &other)];
        let shape = broadcast(method, &named.map(shaped))?;
        Ok(self.with(elementwise(op, &[&self.node, &other], &shape)))
    }

    fn compare(
        &self,
        method: &'static str,
        op: Op,
        b: Operand<'_>,
        is_swapped: bool,
    ) -> Result<Tensor> {
        let b = self.beside("b", b)?;
        let shape = broadcast(method, &[("a", &self.node), ("b", &b)].map(shaped))?;
        let inputs = if is_swapped {
            [&b, &self.node]
        } else {
            [&self.node, &b]
        };
        Ok(self.with(Node::truth(Kind::Elementwise(op), &inputs, &shape)))
    }

    fn logical(&self, method: &'static str, op: Op, b: Operand<'_>) -> Result<Tensor> {
        let (a, b) = (truth(&self.node), truth(&self.beside("b", b)?));
        let shape = broadcast(method, &[("a", &a), ("b", &b)].map(shaped))?;
        Ok(self.with(Node::truth(Kind::Elementwise(op), &[&a, &b], &shape)))
    }
}

fn shaped<'a>((name, node): (&'static str, &'a Arc<Node>)) -> Named<'a> {
    (name, &node.shape)
}

/// Records an operation whose operands broadcast to a shape.
pub(super) fn elementwise(op: Op, inputs: &[&Arc<Node>], shape: &[usize]) -> Arc<Node> {
    Node::operation(Kind::Elementwise(op), inputs, shape)
}

/// Records 1 where elements are 0, and 0 elsewhere.
fn not(x: &Arc<Node>) -> Arc<Node> {
    let zero = Node::constant(0.0);
    Node::truth(Kind::Elementwise(Op::Equal), &[x, &zero], &x.shape)
}

/// Records 1 where elements are not 0, and 0 elsewhere.
pub(super) fn truth(x: &Arc<Node>) -> Arc<Node> {
    if x.is_truth {
        return Arc::clone(x);
    }
    not(&not(x))
}

//! Padding of axes.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::conv2d::Border;
use crate::lazy::join::concat;
use crate::lazy::movement::view;
use crate::lazy::node::Node;
use crate::lazy::shape::{check_result, mismatch};
use crate::lazy::tensor::Tensor;
use crate::lazy::view::Walk;

/// The elements beyond the ends of an axis.
#[derive(Clone)]
pub(in crate::lazy) enum Fill {
    /// A number, which is a scalar.
    Number(Arc<Node>),
    /// The nearest elements.
    Edge,
    /// The elements in reverse order, without the one at the end.
    Reflect,
}

impl From<Border> for Fill {
    fn from(border: Border) -> Self {
        match border {
            Border::Zeros => Self::Number(Node::constant(0.0)),
            Border::Edge => Self::Edge,
            Border::Reflect => Self::Reflect,
        }
    }
}

/// Padding.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{Border, GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[1.0, 2.0, 3.0], &[3])?;
/// assert_eq!(x.pad(&[[2, 1]], Border::Reflect)?.read()?, [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
/// assert_eq!(x.pad_with(&[[0, 1]], 9.0)?.read()?, [1.0, 2.0, 3.0, 9.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Adds elements before and after each axis: `sides[k]` has their numbers for axis `k`.
    ///
    /// # Errors
    /// `ShapeMismatch` if `sides` has not one entry for each axis, `InvalidArgument` for a reflection of more elements
    /// than the axis has beside the one at the end, `Empty` for an axis without elements to repeat.
    pub fn pad(&self, sides: &[[usize; 2]], border: Border) -> Result<Tensor> {
        self.padded(sides, &border.into())
    }

    /// Adds one number before and after each axis, which is an argument of programs. See [`pad`](Self::pad).
    ///
    /// # Errors
    /// `ShapeMismatch` if `sides` has not one entry for each axis.
    pub fn pad_with(&self, sides: &[[usize; 2]], value: f32) -> Result<Tensor> {
        self.padded(sides, &Fill::Number(Node::number(value)))
    }

    fn padded(&self, sides: &[[usize; 2]], fill: &Fill) -> Result<Tensor> {
        if sides.len() != self.rank() {
            let has = format!("`sides` has {} entries", sides.len());
            let needed = format!(
                "but must have one for each axis of shape {:?}",
                self.shape()
            );
            return Err(mismatch("pad", format!("{has}, {needed}")));
        }
        let mut node = Arc::clone(&self.node);
        for (axis, &sides) in sides.iter().enumerate() {
            node = pad("pad", &node, axis, sides, fill)?;
        }
        Ok(self.with(node))
    }
}

/// Records padding of one axis.
pub(in crate::lazy) fn pad(
    op: &'static str,
    x: &Arc<Node>,
    axis: usize,
    sides: [usize; 2],
    fill: &Fill,
) -> Result<Arc<Node>> {
    let [before, after] = sides;
    let most = before.max(after);
    if most == 0 {
        return Ok(Arc::clone(x));
    }
    check_source(op, x, axis, most, fill)?;
    let mut parts = Vec::new();
    if before > 0 {
        parts.push(beyond(x, axis, before, fill, false)?);
    }
    parts.push(Arc::clone(x));
    if after > 0 {
        parts.push(beyond(x, axis, after, fill, true)?);
    }
    concat(op, &parts, axis)
}

/// Checks that an axis has the elements that are repeated beyond it.
fn check_source(op: &'static str, x: &Node, axis: usize, most: usize, fill: &Fill) -> Result<()> {
    let length = x.shape[axis];
    match fill {
        Fill::Edge | Fill::Reflect if length == 0 => Err(Error::Empty { op }),
        Fill::Reflect if most >= length => {
            let limit = length - 1;
            let needed = format!("at most {limit} for axis {axis} of shape {:?}", x.shape);
            let value = format!("{most} by reflection");
            Err(Error::invalid("padding", value, needed))
        }
        Fill::Number(_) | Fill::Edge | Fill::Reflect => Ok(()),
    }
}

/// Records `count` elements before or after those of an axis.
fn beyond(
    x: &Arc<Node>,
    axis: usize,
    count: usize,
    fill: &Fill,
    is_after: bool,
) -> Result<Arc<Node>> {
    let mut shape = x.shape.clone();
    let length = std::mem::replace(&mut shape[axis], count);
    check_result(&shape)?;
    let mut walk = Walk::along(shape.len());
    match fill {
        Fill::Number(number) => return Ok(view(number, Walk::repeating(&[], &shape), &shape)),
        Fill::Edge => {
            walk.axes[axis] = None;
            walk.starts[axis] = if is_after { length - 1 } else { 0 };
        }
        Fill::Reflect => {
            walk.steps[axis] = -1;
            walk.starts[axis] = if is_after { length - 2 } else { count };
        }
    }
    Ok(view(x, walk, &shape))
}

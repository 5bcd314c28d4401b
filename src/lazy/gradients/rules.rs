//! The rules by which the gradient of a node's result becomes the gradients of its inputs: one for each kind.

use crate::error::{Error, Result};
use crate::lazy::gradients::norms::{self, Norm};
use crate::lazy::gradients::{convolve, elementwise, indices, scans, views};
use crate::lazy::node::{Kind, Rows};
use crate::lazy::shape::{reduced, size_of};
use crate::lazy::value::Value;
use crate::ops::AxisFold;

/// A node whose gradient is known: its inputs, its result, and the gradient of that.
pub(super) struct Known<'r, 't> {
    pub(super) inputs: &'r [Value<'t>],
    pub(super) y: Value<'t>,
    pub(super) g: Value<'t>,
}

/// Returns the gradient of one input; `None` for an input that changes the result by steps or not at all.
///
/// # Errors
/// `NoGradient` for a custom operation without derivatives, and for a custom reduction.
pub(super) fn gradient<'t>(
    kind: &Kind,
    known: &Known<'_, 't>,
    at: usize,
) -> Result<Option<Value<'t>>> {
    let Known { inputs, y, g } = *known;
    let x = inputs[at];
    let shape = x.shape();
    Ok(Some(match kind {
        Kind::Elementwise(op) => {
            let found = elementwise::gradient(op, known, at)?;
            return Ok(found.map(|gradient| gradient.sum_to(&shape)));
        }
        Kind::View(walk) => views::unwalked(g, walk, &shape)?,
        Kind::Reshape => g.reshape(&shape),
        Kind::Reduce { fold, axes, .. } => return Ok(reduction(*fold, axes, x, [y, g])),
        Kind::CustomReduce { reduction, .. } => {
            let op = reduction.name;
            return Err(Error::NoGradient { op });
        }
        Kind::Rows { axis, rows } => return Ok(along_axis(*rows, known, *axis, at)),
        Kind::Matmul => matmul([inputs[0], inputs[1]], g, at),
        Kind::Convolve(layer) => convolve::gradient(layer, [inputs[0], inputs[1]], g, at),
        Kind::Concat { axis } => {
            let before = inputs[..at].iter().map(|input| input.shape()[*axis]);
            g.slice(*axis, before.sum(), shape[*axis])
        }
        Kind::Gather { axis } if at == 0 => indices::ungathered(g, inputs[1], *axis, &shape),
        Kind::Scatter if at == 0 => {
            let kind = Kind::Gather { axis: 0 };
            g.tape().record(kind, &[g, inputs[1]], &shape)
        }
        Kind::Take if at == 0 => indices::untaken(g, inputs[1], &shape),
        Kind::Constant(_)
        | Kind::Range
        | Kind::Gather { .. }
        | Kind::Scatter
        | Kind::Take
        | Kind::TopK { .. }
        | Kind::UnpackBytes { .. }
        | Kind::PackBytes { .. }
        | Kind::StopGradient => return Ok(None),
    }))
}

/// Returns the gradient of a reduction's input. The largest and smallest elements share it evenly where several are
/// equal.
fn reduction<'t>(
    fold: AxisFold,
    axes: &[usize],
    x: Value<'t>,
    [y, g]: [Value<'t>; 2],
) -> Option<Value<'t>> {
    let shape = x.shape();
    let with_axes = reduced(&shape, axes, true);
    let g = g.reshape(&with_axes);
    match fold {
        AxisFold::Sum => Some(g.broadcast_to(&shape)),
        AxisFold::Mean => {
            let count = size_of(&shape) / size_of(&with_axes);
            Some((g * (1.0 / count as f32)).broadcast_to(&shape))
        }
        AxisFold::Max | AxisFold::Min => {
            let is_extreme = x.equal(y.reshape(&with_axes));
            Some(g / is_extreme.sum(axes, true) * is_extreme)
        }
        AxisFold::Argmax | AxisFold::Argmin => None,
    }
}

fn along_axis<'t>(rows: Rows, known: &Known<'_, 't>, axis: usize, at: usize) -> Option<Value<'t>> {
    let Known { inputs, y, g } = *known;
    let norm = |epsilon, is_centred| Norm {
        axis,
        epsilon,
        is_centred,
    };
    Some(match rows {
        Rows::Softmax => y * (g - (g * y).sum(&[axis], true)),
        Rows::LogSoftmax => g - y.exp() * g.sum(&[axis], true),
        Rows::LayerNorm { epsilon } => norms::gradient(inputs, g, norm(epsilon, true), at),
        Rows::RmsNorm { epsilon } => norms::gradient(inputs, g, norm(epsilon, false), at),
        Rows::Cumsum => scans::reverse_sums(g, axis),
        Rows::Cumprod => scans::cumprod(inputs[0], [y, g], axis),
        Rows::Sort => scans::sort(inputs[0], g, axis),
        Rows::Argsort => return None,
        Rows::Fft => scans::fft(g, axis),
    })
}

/// Returns the gradient of an operand of a matmul: `g · bᵀ` or `aᵀ · g`, summed along the axes that broadcasting
/// repeated.
fn matmul<'t>([a, b]: [Value<'t>; 2], g: Value<'t>, at: usize) -> Value<'t> {
    if at == 0 {
        return g.matmul(b.transpose()).sum_to(&a.shape());
    }
    let (left, right) = (a.shape(), b.shape());
    let [k, n] = [right[right.len() - 2], right[right.len() - 1]];
    if size_of(&right) > k * n {
        return a.transpose().matmul(g).sum_to(&right);
    }
    // One matmul of all rows sums along the stack.
    let rows = size_of(&left) / k;
    let (a, g) = (a.reshape(&[rows, k]), g.reshape(&[rows, n]));
    a.transpose().matmul(g).reshape(&right)
}

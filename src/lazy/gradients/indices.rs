//! Gradients of tables whose elements were chosen by indices.

use crate::lazy::node::Kind;
use crate::lazy::shape::size_of;
use crate::lazy::value::Value;

/// Returns 1 where the last axis, which is new and has `count` elements, is at an index, and 0 elsewhere.
fn one_hot<'t>(indices: Value<'t>, shape: &[usize], count: usize) -> Value<'t> {
    let range = indices.tape().record(Kind::Range, &[], &[count]);
    indices.reshape(&[shape, &[1]].concat()).equal(range)
}

/// Returns the gradient of a table of this shape whose elements along an axis were gathered.
pub(super) fn ungathered<'t>(
    g: Value<'t>,
    indices: Value<'t>,
    axis: usize,
    shape: &[usize],
) -> Value<'t> {
    let count = size_of(&indices.shape());
    let [outer, inner] = [size_of(&shape[..axis]), size_of(&shape[axis + 1..])];
    let rows = g.reshape(&[outer, count, inner]).permute(&[1, 0, 2]);
    let rows = rows.reshape(&[count, outer * inner]);
    let indices = indices.reshape(&[count]);
    let lengths = [shape[axis], outer * inner];
    let sums = g.tape().record(Kind::Scatter, &[rows, indices], &lengths);
    let sums = sums.reshape(&[shape[axis], outer, inner]);
    sums.permute(&[1, 0, 2]).reshape(shape)
}

/// Returns the gradient of rows of which `k` elements each were taken.
pub(super) fn untaken<'t>(g: Value<'t>, indices: Value<'t>, shape: &[usize]) -> Value<'t> {
    let (own, cols) = (g.shape(), shape.last().copied().unwrap_or(1));
    let k = own.last().copied().unwrap_or(1);
    let rows = size_of(&own) / k;
    let is_at = one_hot(indices, &[rows, k], cols);
    let spread = g.reshape(&[rows, k, 1]).only_where(is_at);
    spread.sum(&[1], false).reshape(shape)
}

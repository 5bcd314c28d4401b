//! Gradients of cumulative sums and products, of sorting, and of Fourier transforms.

use crate::lazy::node::{Kind, Rows};
use crate::lazy::shape::size_of;
use crate::lazy::value::Value;

/// Records an operation of the rows along an axis.
fn along(x: Value<'_>, axis: usize, rows: Rows) -> Value<'_> {
    let kind = Kind::Rows { axis, rows };
    x.tape().record(kind, &[x], &x.shape())
}

/// Returns the sums of the elements from each one on.
pub(super) fn reverse_sums(x: Value<'_>, axis: usize) -> Value<'_> {
    along(x.flip(&[axis]), axis, Rows::Cumsum).flip(&[axis])
}

/// Returns the gradient of cumulative products: sums of `g · y` from each element on, divided by it. The first zero has
/// the sums of the products without it, and zeros after it have none.
pub(super) fn cumprod<'t>(x: Value<'t>, [y, g]: [Value<'t>; 2], axis: usize) -> Value<'t> {
    let is_zero = x.equal(0.0);
    let is_first = is_zero * along(is_zero, axis, Rows::Cumsum).equal(1.0);
    let others = reverse_sums(g * y, axis) / (x + is_zero);
    let without = along(x + is_first, axis, Rows::Cumprod);
    let first = reverse_sums(g * without, axis);
    is_first.choose(first, others.only_where(is_zero.equal(0.0)))
}

/// Returns the gradient of sorting: each element has that at its position in the order. Positions are the order of the
/// indices that are in order.
pub(super) fn sort<'t>(x: Value<'t>, g: Value<'t>, axis: usize) -> Value<'t> {
    let places = along(along(x, axis, Rows::Argsort), axis, Rows::Argsort);
    let mut order: Vec<usize> = (0..x.shape().len()).collect();
    let last = order.len() - 1;
    order.swap(axis, last);
    let (g, places) = (g.permute(&order), places.permute(&order));
    let taken = g.tape().record(Kind::Take, &[g, places], &g.shape());
    taken.permute(&order)
}

/// Returns the gradient of Fourier transforms: the transform of the conjugate, conjugated, which is that of the numbers
/// with real and imaginary parts swapped.
pub(super) fn fft(g: Value<'_>, axis: usize) -> Value<'_> {
    swapped(along(swapped(g, axis), axis, Rows::Fft), axis)
}

/// Swaps the real and imaginary parts, which are neighbours along an axis.
fn swapped(x: Value<'_>, axis: usize) -> Value<'_> {
    let shape = x.shape();
    // Three axes, so that one more is within the limit.
    let [outer, inner] = [size_of(&shape[..axis]), size_of(&shape[axis + 1..])];
    let pairs = x.reshape(&[outer, shape[axis] / 2, 2, inner]);
    pairs.flip(&[2]).reshape(&shape)
}

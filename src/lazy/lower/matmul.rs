//! Matmuls of matrices and of stacks of them.

use crate::lazy::lower::{Lowering, rules};
use crate::lazy::shape::size_of;
use crate::lazy::view::View;
use crate::ops::{Conv2d, ConvLayer, Matmul, Op};

/// Lowers the matmul of operands with at least two axes.
pub(super) fn matmul(lowering: &mut Lowering<'_>, a: &View, b: &View, shape: &[usize]) -> View {
    let lead = shape.len() - 2;
    let (n, k) = (shape[lead + 1], b.axes[b.axes.len() - 2].len);
    if b.axes.size() > k * n {
        return stacked(lowering, a, b, shape, [shape[lead], k, n]);
    }
    let m = size_of(&shape[..=lead]);
    let a = rules::reshape(lowering, a, &[m, k]);
    let b = rules::reshape(lowering, b, &[k, n]);
    if m * n == 1 {
        return lowering.call(Op::Dot, &[a, b], shape);
    }
    let (a, transpose_a) = stored(a);
    let (b, transpose_b) = stored(b);
    let op = if transpose_a || transpose_b {
        let options = Matmul {
            m,
            k,
            n,
            transpose_a,
            transpose_b,
        };
        Op::MatmulWith { options }
    } else {
        Op::Matmul { m, k, n }
    };
    lowering.call(op, &[a, b], shape)
}

/// Returns a matrix as it is stored, and whether that is transposed.
fn stored(view: View) -> (View, bool) {
    let transposed = view.permuted(&[1, 0]);
    if !view.is_dense() && transposed.is_dense() {
        return (transposed, true);
    }
    (view, false)
}

/// Multiplies stacks of matrices as a convolution of one pixel: a group, or an image where `a` is one matrix, for each.
/// Its weights are `a`, and the columns of `b` its pixels.
fn stacked(
    lowering: &mut Lowering<'_>,
    a: &View,
    b: &View,
    shape: &[usize],
    [m, k, n]: [usize; 3],
) -> View {
    let lead = &shape[..shape.len() - 2];
    let of = |rows: usize, cols: usize| [lead, &[rows, cols]].concat();
    let count = size_of(lead);
    let is_shared = a.axes.size() == m * k;
    let (batch, groups) = if is_shared { (count, 1) } else { (1, count) };
    let weights = if is_shared { *a } else { a.repeated(&of(m, k)) };
    let pixels = b.repeated(&of(k, n));
    let options = ConvLayer::new(Conv2d::valid(1, n, 1, 1), groups * k, groups * m)
        .with_batch(batch)
        .with_groups(groups);
    lowering.call(Op::ConvolveLayer { options }, &[pixels, weights], shape)
}

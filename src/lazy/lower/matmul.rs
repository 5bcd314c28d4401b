//! Matmuls of matrices and of stacks of them.

use crate::batch::BufferId;
use crate::error::Result;
use crate::lazy::lower::{Recording, rules};
use crate::lazy::shape::size_of;
use crate::lazy::view::View;
use crate::ops::{Conv2d, ConvLayer, Matmul, Op};

/// Records the matmul of operands with at least two axes.
pub(super) fn matmul(
    recording: &mut Recording<'_>,
    a: &View,
    b: &View,
    shape: &[usize],
) -> Result<View> {
    let lead = shape.len() - 2;
    let (a_lead, [m, k]) = split(&a.shape);
    let (b_lead, [_, n]) = split(&b.shape);
    let (a_count, b_count) = (size_of(a_lead), size_of(b_lead));
    if b_count > 1 {
        return stacked(recording, a, b, &shape[..lead], [m, k, n]);
    }
    let rows = a_count * m;
    let a = rules::reshape(recording, a, &[rows, k])?;
    let b = rules::reshape(recording, b, &[k, n])?;
    let result = single(recording, &a, &b, [rows, k, n])?;
    Ok(View::dense(result, shape))
}

/// Returns the axes before the last two, and the last two.
fn split(shape: &[usize]) -> (&[usize], [usize; 2]) {
    match shape {
        [lead @ .., rows, cols] => (lead, [*rows, *cols]),
        // Recording gives both operands two axes.
        _ => (&[], [1, 1]),
    }
}

/// Returns a matrix as matmul takes it: its buffer, and whether it is stored transposed.
fn stored(recording: &mut Recording<'_>, view: &View) -> Result<(BufferId, bool)> {
    if !view.is_dense() && view.permuted(&[1, 0]).is_dense() {
        return Ok((view.id, true));
    }
    Ok((recording.in_order(view)?, false))
}

fn single(
    recording: &mut Recording<'_>,
    a: &View,
    b: &View,
    [m, k, n]: [usize; 3],
) -> Result<BufferId> {
    if m * n == 1 {
        let ids = [recording.in_order(a)?, recording.in_order(b)?];
        return Ok(recording.call(Op::Dot, &ids, &[])?.id);
    }
    let (a, transpose_a) = stored(recording, a)?;
    let (b, transpose_b) = stored(recording, b)?;
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
    Ok(recording.call(op, &[a, b], &[m, n])?.id)
}

/// Multiplies stacks of matrices as a convolution of one pixel: a group, or an image where `a` is one matrix, for each.
/// Its weights are `a`, and the columns of `b` its pixels.
fn stacked(
    recording: &mut Recording<'_>,
    a: &View,
    b: &View,
    lead: &[usize],
    [m, k, n]: [usize; 3],
) -> Result<View> {
    let of = |rows: usize, cols: usize| [lead, &[rows, cols]].concat();
    let count = size_of(lead);
    let is_shared = a.size() == m * k;
    let (batch, groups) = if is_shared { (count, 1) } else { (1, count) };
    let weights = if is_shared {
        a.clone()
    } else {
        a.repeated(&of(m, k))
    };
    let pixels = b.repeated(&of(k, n));
    let ids = recording.in_order_all(&[pixels, weights])?;
    let options = ConvLayer::new(Conv2d::valid(1, n, 1, 1), groups * k, groups * m)
        .with_batch(batch)
        .with_groups(groups);
    recording.call(Op::ConvolveLayer { options }, &ids, &of(m, n))
}

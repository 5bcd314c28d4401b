//! Reductions along axes.

use crate::lazy::lower::Lowering;
use crate::lazy::view::View;
use crate::ops::axes::{Axis, PerAxis};
use crate::ops::{AxisFold, Op, ReduceAxis, Reduction};

/// The axes that a reduction removes.
#[derive(Clone, Copy)]
pub(super) struct Reduced<'a> {
    pub(super) axes: &'a [usize],
    pub(super) keep_dims: bool,
}

impl Reduced<'_> {
    fn has(&self, axis: usize) -> bool {
        self.axes.contains(&axis)
    }

    /// Returns the view of a result with its axes where those of `x` are; it has the axes that are left in `order`.
    fn in_place(&self, result: &View, order: &[usize], x: &View) -> View {
        let mut all = x.axes;
        let mut stride = 1;
        for &axis in order.iter().rev() {
            let own = &mut all[axis];
            if self.has(axis) {
                *own = Axis { len: 1, stride: 0 };
            } else {
                own.stride = stride;
                stride *= own.len as isize;
            }
        }
        let axes = self.kept(&all);
        View { axes, ..*result }
    }

    /// Returns the axes of a result, where reduced ones have the length 1.
    fn kept(&self, axes: &[Axis]) -> PerAxis<Axis> {
        let mut kept = PerAxis::default();
        for (axis, &own) in axes.iter().enumerate() {
            if self.keep_dims || !self.has(axis) {
                kept.push(own);
            }
        }
        kept
    }
}

pub(super) fn reduce(
    lowering: &mut Lowering<'_>,
    fold: AxisFold,
    reduced: Reduced<'_>,
    x: &View,
) -> View {
    let natural = PerAxis::all(x.axes.len());
    let is_index = matches!(fold, AxisFold::Argmax | AxisFold::Argmin);
    if is_index && reduced.axes.iter().all(|&axis| x.axes[axis].len == 1) {
        let axes = reduced.kept(&PerAxis::repeating(&x.axes.shape()));
        let zero = lowering.constant(0.0);
        return View { axes, ..zero };
    }
    // Which index comes first matters where several axes become one.
    let lying = if is_index { None } else { x.dense_order() };
    let order = lying.unwrap_or(natural);
    let mut result = x.permuted(&order);
    // Axes of length 1 make no difference.
    let mut lens = result.axes.shape();
    let mut end = lens.len();
    while end > 0 {
        let mut first = end;
        while first > 0 && (reduced.has(order[first - 1]) || lens[first - 1] == 1) {
            first -= 1;
        }
        let size = |lens: &[usize]| lens.iter().product();
        let [outer, len, inner] = [&lens[..first], &lens[first..end], &lens[end..]].map(size);
        if len > 1 {
            let op = reduction(ReduceAxis::new(fold, outer, len, inner));
            result = lowering.call(op, &[result], &[outer * inner]);
            lens[first..end].fill(1);
        }
        end = first.saturating_sub(1);
    }
    let id = lowering.in_order(&result);
    reduced.in_place(&View::dense(id, &lens), &order, x)
}

fn reduction(options: ReduceAxis) -> Op {
    let all = options.outer * options.inner == 1;
    match options.fold {
        AxisFold::Sum if all => Op::Sum,
        AxisFold::Mean if all => Op::Mean,
        AxisFold::Max if all => Op::Max,
        AxisFold::Min if all => Op::Min,
        AxisFold::Argmax if all => Op::Argmax,
        _ => Op::ReduceAxis { options },
    }
}

/// The elements of a row that a step of a custom reduction combines.
const ROW: usize = 256;

/// Lowers a custom reduction, whose axes become the columns of a matrix.
pub(super) fn custom_reduce(
    lowering: &mut Lowering<'_>,
    reduction: Reduction,
    reduced: Reduced<'_>,
    x: &View,
) -> View {
    let mut order = PerAxis::default();
    for axis in 0..x.axes.len() {
        if !reduced.has(axis) {
            order.push(axis);
        }
    }
    let rows = x.permuted(&order).axes.size();
    for &axis in reduced.axes {
        order.push(axis);
    }
    let mut result = x.permuted(&order);
    let mut step = reduction.tiles([rows, x.axes.size() / rows], [1, ROW]);
    loop {
        let count = step.tile_count();
        result = lowering.custom_reduce(step, &result, &count);
        if count[1] == 1 {
            break;
        }
        step = step.again();
    }
    reduced.in_place(&result, &order, x)
}

//! Constant matrices of a program's matmuls, packed once for SIMD. Buffers on the host are
//! immutable while they are shared, so packed copies never become stale.

mod arguments;

use std::sync::Arc;

pub(crate) use arguments::PackedArguments;

use crate::error::Result;
use crate::graph::fuse::{Kernel, Operand};
use crate::graph::node::Source;
use crate::graph::plan::Plan;
use crate::ops::{Matmul, Op};
use crate::simd::{Cpu, Packed};
use crate::tensor::Plane;

/// The packed right operand of each kernel's matmul, if it is packed.
pub(crate) type Weights = Vec<Option<Factor>>;

/// A packed right operand of a product of `rows` rows.
#[derive(Clone)]
pub(crate) struct Factor {
    node: usize,
    /// The strides of its rows and columns. With the node's length they determine its shape,
    /// because a single column is never packed.
    strides: [usize; 2],
    rows: usize,
    packed: Arc<Packed>,
}

/// The number of rows of a product up to which the right operand is read in place.
const FEW_ROWS: usize = 2;

/// Packs the constant right operands of a plan's products. `input` returns the values of a recorded
/// buffer.
///
/// # Errors
/// `OutOfMemory`.
pub(crate) fn pack<'a>(
    plan: &'a Plan,
    cpu: Cpu,
    input: &dyn Fn(usize) -> Option<&'a [f32]>,
) -> Result<Weights> {
    let mut weights = Weights::new();
    for kernel in &plan.kernels {
        let factor = match product(plan, kernel) {
            Some((product, node)) => match constant(plan, node, input) {
                Some(values) => Some(factor((product, node), cpu, values, &weights)?),
                None => None,
            },
            None => None,
        };
        weights.push(factor);
    }
    Ok(weights)
}

/// The values of a node that are the same in each run.
fn constant<'a>(
    plan: &'a Plan,
    node: usize,
    input: &dyn Fn(usize) -> Option<&'a [f32]>,
) -> Option<&'a [f32]> {
    match &plan.nodes[node].source {
        Source::Upload(values) => Some(values),
        Source::Input(index) => input(*index),
        Source::Placeholder(_) | Source::Op { .. } => None,
    }
}

/// Packs a node's values, unless one of `others` has them packed.
fn factor(
    (product, node): (Matmul, usize),
    cpu: Cpu,
    values: &[f32],
    others: &Weights,
) -> Result<Factor> {
    let Matmul { m, k, n, .. } = product;
    let plane = plane(k, n, product.transpose_b);
    let strides = [plane.row_stride, plane.col_stride];
    let same = |other: &&Factor| other.node == node && other.strides == strides;
    let packed = match others.iter().flatten().find(same) {
        Some(other) => other.packed.clone(),
        None => Arc::new(Packed::new(cpu.isa, values, plane)?),
    };
    Ok(Factor {
        node,
        strides,
        rows: m,
        packed,
    })
}

/// A kernel's product of row-major rows, and the node of its right operand.
fn product(plan: &Plan, kernel: &Kernel) -> Option<(Matmul, usize)> {
    let head = kernel.head.as_ref()?;
    let product = match *plan.nodes[head.node].operation()?.0 {
        Op::Matmul { m, k, n } => Matmul::new(m, k, n),
        Op::MatmulWith { options } if !options.transpose_a => options,
        _ => return None,
    };
    let Operand::Input(right) = head.operands[1].result else {
        return None;
    };
    let Matmul { m, k, n, .. } = product;
    (m > FEW_ROWS && n > 1 && k > 0).then(|| (product, kernel.inputs[right]))
}

fn plane(k: usize, n: usize, transposed: bool) -> Plane {
    let [row_stride, col_stride] = if transposed { [1, k] } else { [n, 1] };
    Plane {
        row_stride,
        col_stride,
        ..Plane::row_major(k, n)
    }
}

impl Factor {
    /// The product of rows with the matrix.
    pub(crate) fn multiply(&self, cpu: Cpu, a: &[f32], c: &mut [f32]) -> Result<()> {
        self.packed.multiply(cpu, a, c, self.rows)
    }
}

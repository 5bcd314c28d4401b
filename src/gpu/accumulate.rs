//! Matmuls that accumulate into an existing matrix, in one submission.

use std::sync::Arc;

use super::context::Gpu;
use super::texts::Texts;
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::graph::{Binding, Node, Plan, Source};
use crate::ops::Op;

impl Gpu {
    /// Adds the result of `matmul` on `a` and `b` to `c`. Lengths are validated.
    pub(crate) async fn multiply_add(
        self: &Arc<Self>,
        matmul: Op,
        [a, b]: [&[f32]; 2],
        c: &mut [f32],
    ) -> Result<()> {
        let (plan, texts) = plan_of(matmul, [a.len(), b.len(), c.len()]);
        let values = [a, b, &*c].map(Binding::Values).into_iter();
        let bindings = values.chain([Binding::Nothing, Binding::Nothing]).collect();
        let mut sum = try_zeros(c.len())?;
        let outs = &mut [&mut sum[..]];
        self.read_plan((&plan, &texts), bindings, outs).await?;
        c.copy_from_slice(&sum);
        Ok(())
    }
}

/// Returns a plan that adds the third input to the matmul of the first two, given the inputs' lengths.
fn plan_of(matmul: Op, lens: [usize; 3]) -> (Plan, Texts) {
    let leaves = lens.into_iter().enumerate();
    let leaves = leaves.map(|(index, len)| (Source::Placeholder(index), len));
    let of = |op, inputs: [usize; 2]| {
        let inputs = inputs.to_vec();
        (Source::Op { op, inputs }, lens[2])
    };
    let operations = [of(matmul, [0, 1]), of(Op::VecAdd, [3, 2])];
    let nodes = leaves.chain(operations);
    let nodes: Vec<Node> = nodes.map(|(source, len)| Node { source, len }).collect();
    let plan = Plan::new(&nodes, &[4], true);
    let texts = Texts::new(&plan);
    (plan, texts)
}

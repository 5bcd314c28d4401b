//! The feed-forward network of a mixture of experts.

use super::super::experts::Experts;
use super::super::weights::Weight;
use super::{Builder, Slot, Step};
use crate::error::Result;
use crate::graph::steps::Routing;

impl Builder<'_> {
    /// Lists the steps by which each token chooses some experts and adds their results.
    pub(super) fn expert_feed_forward(&mut self, layer: usize, experts: Experts) -> Result<()> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let from = self.input_norm(&name("ffn_norm"))?;
        let router = name("ffn_gate_inp");
        self.linear(from, &router, experts.count, Slot::Router, false)?;
        self.steps.push(Step::Route(Routing {
            experts: experts.count,
            used: experts.used,
            normalises: experts.normalises,
        }));
        for (to, part) in [(Slot::Gate, "ffn_gate_exps"), (Slot::Up, "ffn_up_exps")] {
            let shape = [experts.hidden, self.config.width];
            self.expert_matrices(from, &name(part), shape, to)?;
        }
        let activation = self.config.architecture.activation;
        self.steps.push(Step::Activate(activation));
        let shape = [self.config.width, experts.hidden];
        self.expert_matrices(Slot::Gated, &name("ffn_down_exps"), shape, Slot::Residual)
    }

    /// Multiplies by the matrices of all experts, which one tensor has.
    fn expert_matrices(
        &mut self,
        from: Slot,
        name: &str,
        [rows, cols]: [usize; 2],
        to: Slot,
    ) -> Result<()> {
        let count = self.config.experts.map_or(0, |experts| experts.count);
        let weight = Weight::stacked(self.file, &format!("{name}.weight"), [count, rows, cols])?;
        let weight = self.weights.push_matrix(weight);
        self.steps.push(Step::MultiplyExperts {
            from,
            weight,
            rows,
            to,
        });
        Ok(())
    }
}

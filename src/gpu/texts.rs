//! What a GPU's kernels are made of, written once for a plan.

use std::sync::OnceLock;

use super::fused::Addition;
use crate::graph::Plan;

/// For each kernel of a plan that is a chain and nothing else, the chain's text.
pub(crate) struct Texts(Vec<OnceLock<Addition>>);

impl Texts {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self(plan.kernels.iter().map(|_| OnceLock::new()).collect())
    }

    /// The text of a kernel, by its index in the plan.
    pub(super) fn of(&self, kernel: usize) -> &OnceLock<Addition> {
        &self.0[kernel]
    }
}

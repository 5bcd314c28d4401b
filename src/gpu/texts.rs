//! Shader texts of a plan's kernels, composed once.

use std::sync::OnceLock;

use super::fused::FusedCode;
use crate::graph::Plan;

/// The text of each kernel of a plan that is only a chain.
pub(crate) struct Texts(Vec<OnceLock<FusedCode>>);

impl Texts {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self(plan.kernels.iter().map(|_| OnceLock::new()).collect())
    }

    /// The text of a kernel, by its index in the plan.
    pub(super) fn of(&self, kernel: usize) -> &OnceLock<FusedCode> {
        &self.0[kernel]
    }
}

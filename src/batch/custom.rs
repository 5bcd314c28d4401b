//! Custom operations in a batch, and a short name.

use crate::batch::{BufferId, GpuCommandBatch};
use crate::ops::Op;
use crate::ops::custom::CustomOp;

/// Custom operations.
impl GpuCommandBatch {
    /// Records the sums of the elements of `a` and `b`: another name of [`vec_add`](Self::vec_add).
    #[track_caller]
    pub fn add(&mut self, a: BufferId, b: BufferId) -> BufferId {
        self.record(Op::VecAdd, &[a, b])
    }

    /// Records a custom elementwise operation, on inputs of equal length.
    #[track_caller]
    pub fn custom_elementwise(
        &mut self,
        op: &CustomOp,
        inputs: &[BufferId],
        parameters: &[f32],
    ) -> BufferId {
        self.record_made(op.with(parameters), inputs)
    }
}

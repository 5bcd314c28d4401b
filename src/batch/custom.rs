//! Custom operations in a batch.

use crate::batch::{BufferId, GpuCommandBatch};
use crate::ops::custom::CustomOp;

/// Custom operations.
impl GpuCommandBatch {
    /// Records a custom elementwise operation on inputs of equal length.
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

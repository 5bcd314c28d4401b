//! Operations of the user's own in a batch.

use crate::batch::{BufferId, GpuCommandBatch};
use crate::ops::custom::CustomOp;

/// Operations of the user's own.
impl GpuCommandBatch {
    /// Records an elementwise operation of one's own, on inputs of equal length.
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

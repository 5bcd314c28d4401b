//! Pipelines made before they are needed.

use std::sync::Arc;

use crate::error::Result;
use crate::gpu::context::Gpu;
use crate::gpu::plan;
use crate::gpu::recorder::Recorder;
use crate::ops::Op;

impl Gpu {
    /// Makes the pipelines of an operation on inputs of these lengths, which are validated, without
    /// running it. Saves them to disk if the device has a pipeline cache.
    #[allow(clippy::unused_async)] // What uses it is asynchronous on every back-end.
    pub(crate) async fn warm(self: &Arc<Self>, op: &Op, lens: &[usize], len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        {
            let plan = self.plan_of_one(op, lens, len)?;
            let plan = (&plan.0, &plan.1);
            let mut recorder = Recorder::new(self)?;
            let inputs = lens.iter().map(|&len| recorder.allocate(len).map(Some));
            let mut outside = inputs.collect::<Result<Vec<_>>>()?;
            outside.push(None);
            let mut slots = vec![None; plan.0.capacities.len()];
            plan::record_once(
                &mut recorder,
                plan,
                &outside,
                &mut slots,
                false,
                &mut |_| (),
            )?;
            recorder.abandon()?;
        }
        self.pipelines.save();
        Ok(())
    }
}

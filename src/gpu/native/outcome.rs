//! The outcome of a submission, which is known at once.

use std::sync::Arc;

use crate::error::Result;
use crate::gpu::context::Gpu;
use crate::gpu::health::{Scopes, classify};

/// The result of a submission's error scopes. It is processed even if nobody waits for the
/// submission: buffers that an error invalidated must not be reused.
pub(in crate::gpu) struct Outcome;

impl Outcome {
    pub(in crate::gpu) fn of(gpu: &Arc<Gpu>, scopes: Scopes, bytes: u64) -> Result<Self> {
        let error = pollster::block_on(scopes.close());
        gpu.verdict(error.map(|error| classify(&error, bytes)))?;
        Ok(Self)
    }

    /// There is no outcome to wait for.
    #[allow(clippy::unused_async)] // Browsers answer later.
    pub(in crate::gpu) async fn known(self) -> Result<()> {
        Ok(())
    }
}

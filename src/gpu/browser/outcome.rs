//! The outcome of a submission, which browsers report later.

use std::sync::Arc;

use crate::error::Result;
use crate::gpu::context::Gpu;
use crate::gpu::health::{Scopes, classify};

/// The result of a submission's error scopes. It is processed even if nobody waits for the
/// submission: buffers that an error invalidated must not be reused.
pub(in crate::gpu) struct Outcome {
    gpu: Arc<Gpu>,
    bytes: u64,
    /// `None` once the answer is there.
    errors: Option<std::pin::Pin<Box<dyn Future<Output = Option<wgpu::Error>>>>>,
}

impl Outcome {
    #[allow(clippy::unnecessary_wraps)] // Natively the answer is there at once.
    pub(in crate::gpu) fn of(gpu: &Arc<Gpu>, scopes: Scopes, bytes: u64) -> Result<Self> {
        Ok(Self {
            gpu: gpu.clone(),
            bytes,
            errors: Some(Box::pin(scopes.close())),
        })
    }

    pub(in crate::gpu) async fn known(mut self) -> Result<()> {
        let error = match &mut self.errors {
            Some(errors) => errors.await,
            None => None,
        };
        self.errors = None;
        let error = error.map(|error| classify(&error, self.bytes));
        self.gpu.verdict(error)
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        let Some(errors) = self.errors.take() else {
            return;
        };
        let (gpu, bytes) = (self.gpu.clone(), self.bytes);
        crate::runtime::spawn_local(async move {
            let error = errors.await;
            // Later work reports a loss by itself; other errors have emptied the caches.
            let _ = gpu.verdict(error.map(|error| classify(&error, bytes)));
        });
    }
}

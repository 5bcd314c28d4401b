//! Parameters of recent submissions, which need not be sent again for the same work.

use std::sync::Arc;

use super::lru::Recent;
use super::pool::{Pool, PooledBuffer, Usage};
use crate::error::Result;

/// Uniform buffers by their contents. They are never written again while they are here.
#[derive(Default)]
pub(super) struct Params(Recent<Vec<u32>, Arc<PooledBuffer>>);

impl Params {
    /// A uniform buffer that holds `words` once the queue's next submission begins.
    pub(super) fn buffer(
        &self,
        pool: &Arc<Pool>,
        queue: &wgpu::Queue,
        words: &[u32],
    ) -> Result<Arc<PooledBuffer>> {
        self.0.get(
            |other| other == words,
            || Ok((words.to_vec(), written(pool, queue, words)?)),
        )
    }

    /// Forgets every buffer, after an error that may have left some invalid.
    pub(super) fn discard(&self) {
        self.0.clear();
    }
}

/// Returns a uniform buffer from the pool that holds `words` once the queue's next submission begins.
///
/// Where no later work has the same words, it is the next such buffer again, and bind groups for it exist.
pub(super) fn written(
    pool: &Arc<Pool>,
    queue: &wgpu::Queue,
    words: &[u32],
) -> Result<Arc<PooledBuffer>> {
    let buffer = pool.take(Usage::Uniform, words.len())?;
    queue.write_buffer(&buffer.buffer, 0, bytemuck::cast_slice(words));
    Ok(Arc::new(buffer))
}

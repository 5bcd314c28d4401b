//! Parameters of recent submissions, which need not be sent again for the same work.

use std::sync::{Arc, OnceLock};

use super::lru::Recent;
use super::pool::{Pool, PooledBuffer, Usage};
use crate::error::Result;

/// A uniform buffer that is never written again, once its contents have come twice.
type Kept = Arc<OnceLock<Arc<PooledBuffer>>>;

/// Uniform buffers by their contents.
#[derive(Default)]
pub(super) struct Params(Recent<Vec<u32>, Kept>);

impl Params {
    /// A uniform buffer that holds `words` once the queue's next submission begins.
    ///
    /// Words that come for the first time, such as those with a position that no other work has, get a buffer from the
    /// pool. The next such work has the same one again, for which there are bind groups.
    pub(super) fn buffer(
        &self,
        pool: &Arc<Pool>,
        queue: &wgpu::Queue,
        words: &[u32],
    ) -> Result<Arc<PooledBuffer>> {
        let mut is_new = false;
        let kept = self.0.get(
            |other| other == words,
            || {
                is_new = true;
                Ok((words.to_vec(), Kept::default()))
            },
        )?;
        if let Some(buffer) = kept.get() {
            return Ok(buffer.clone());
        }
        let buffer = written(pool, queue, words)?;
        if is_new {
            return Ok(buffer);
        }
        Ok(kept.get_or_init(|| buffer).clone())
    }

    /// Forgets every buffer, after an error that may have left some invalid.
    pub(super) fn discard(&self) {
        self.0.clear();
    }
}

fn written(pool: &Arc<Pool>, queue: &wgpu::Queue, words: &[u32]) -> Result<Arc<PooledBuffer>> {
    let buffer = pool.take(Usage::Uniform, words.len())?;
    queue.write_buffer(&buffer.buffer, 0, bytemuck::cast_slice(words));
    Ok(Arc::new(buffer))
}

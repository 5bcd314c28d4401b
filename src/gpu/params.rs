//! Parameters of recent submissions, which need not be sent again for the same work.

use std::sync::{Arc, Mutex, PoisonError};

use super::pool::{Pool, PooledBuffer, Usage};
use crate::error::Result;

/// Submissions remembered.
const MAX_RECENT: usize = 32;

/// Uniform buffers by their contents, the latest used last. They are never written again while
/// they are here.
#[derive(Default)]
pub(super) struct Params {
    recent: Mutex<Vec<(Vec<u32>, Arc<PooledBuffer>)>>,
}

impl Params {
    /// A uniform buffer that holds `words` once the queue's next submission begins.
    pub(super) fn buffer(
        &self,
        pool: &Arc<Pool>,
        queue: &wgpu::Queue,
        words: Vec<u32>,
    ) -> Result<Arc<PooledBuffer>> {
        let mut recent = self.lock();
        if let Some(place) = recent.iter().position(|(other, _)| *other == words) {
            let found = recent.remove(place);
            let buffer = found.1.clone();
            recent.push(found);
            return Ok(buffer);
        }
        let buffer = Arc::new(pool.take(Usage::Uniform, words.len())?);
        queue.write_buffer(&buffer.buffer, 0, bytemuck::cast_slice(&words));
        if recent.len() == MAX_RECENT {
            recent.remove(0);
        }
        recent.push((words, buffer.clone()));
        Ok(buffer)
    }

    /// Forgets every buffer, after an error that may have left some invalid.
    pub(super) fn discard(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Vec<u32>, Arc<PooledBuffer>)>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

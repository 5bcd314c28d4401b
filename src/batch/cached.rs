//! Matmuls with weights of a cache in a batch.

use std::sync::Arc;

use crate::batch::{BufferId, GpuCommandBatch};
use crate::device::buffer::DeviceBuffer;
use crate::device::executor::Placed;
use crate::device::matmul_cache::GpuMatmulCache;
use crate::error::{Error, Result};
use crate::ops::Op;

/// Matmuls with cached weights.
impl GpuCommandBatch {
    /// Records `input · weights`, an `m × k` matrix times the `k × n` weights of that name in a cache of this device,
    /// in whatever format the cache has them. The batch and its programs have these weights even if the cache replaces
    /// or removes them later.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuCommandBatch, GpuDevice, GpuMatmulCache};
    ///
    /// let mut cache = GpuMatmulCache::new(GpuDevice::new()?);
    /// cache.insert("layer 1", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3)?; // 2 × 3, row-major
    /// let mut batch = GpuCommandBatch::new(cache.device().clone());
    /// let x = batch.placeholder(2);
    /// let y = batch.matmul_cached(&cache, "layer 1", x, 1);
    /// let program = batch.compile(&[y])?;
    /// assert_eq!(program.read(&[(&[1.0, 10.0]).into()])?, [[41.0, 52.0, 63.0]]);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    #[track_caller]
    pub fn matmul_cached(
        &mut self,
        cache: &GpuMatmulCache,
        name: &str,
        input: BufferId,
        m: usize,
    ) -> BufferId {
        let id = cache
            .find(name)
            .and_then(|weights| self.try_matmul_cached(cache, &weights, input, m));
        self.keep_error(id)
    }

    pub(crate) fn try_matmul_cached(
        &mut self,
        cache: &GpuMatmulCache,
        weights: &Arc<Placed>,
        input: BufferId,
        m: usize,
    ) -> Result<BufferId> {
        if !cache.device().same_device(&self.device) {
            let (what, owner) = ("cache", "device");
            return Err(Error::Foreign { what, owner });
        }
        let call = weights.matmul(m);
        // Names its argument as this method does.
        call.output_len(self.lens(&[self.index("input", input)?])[0])?;
        let Some(storage) = weights.storage() else {
            return self.try_record(Op::MatmulCached(call), &[input]);
        };
        let [m, k, n] = call.shape();
        let b = self.try_input(&DeviceBuffer::new(self.device.clone(), storage))?;
        self.try_record(Op::Matmul { m, k, n }, &[input, b])
    }
}

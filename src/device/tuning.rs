//! Kernels chosen by measurement on the user's device.

use super::GpuDevice;
use crate::error::Result;
use crate::ops::Op;
use crate::ops::shape::output_len;

/// The times of the GPU's kernels for an operation ([`GpuDevice::tune_async`]).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tuning {
    /// The operation.
    pub op: Op,
    /// The kernels that can compute the operation, by name, with their time in seconds, the fastest
    /// first. The device uses the fastest from now on.
    pub times: Vec<(&'static str, f64)>,
}

impl GpuDevice {
    /// Measures the GPU's kernels for the given operations, each with the lengths of its inputs,
    /// and uses the fastest for all later operations of the same shape. The choice holds for this
    /// device and its clones. With a [`pipeline_cache`](crate::DeviceBuilder::pipeline_cache) it
    /// also holds in later processes with the same adapter, driver and version of this crate.
    /// Without tuning, the choice depends on the shape and the properties of the adapter.
    ///
    /// There are several kernels for `f32` matmuls (also with vectors), softmaxes, norms and, on
    /// native targets, convolutions with stride 1. The result has no entry for other operations or
    /// for those that run on SIMD. A measurement takes up to a second for a large matmul, and
    /// memory for its operands.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Op};
    ///
    /// let device = GpuDevice::new()?;
    /// let product = Op::Matmul { m: 512, k: 512, n: 64 };
    /// for tuning in device.tune(&[(product, &[512 * 512, 512 * 64])])? {
    ///     println!("{:?}: {:?}", tuning.op, tuning.times);
    /// }
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors that the operation returns for such lengths, and device errors.
    pub async fn tune_async(&self, operations: &[(Op, &[usize])]) -> Result<Vec<Tuning>> {
        let mut tunings = Vec::new();
        for (op, lens) in operations {
            let times = self.tune_one(op, lens).await?;
            if !times.is_empty() {
                let op = op.clone();
                tunings.push(Tuning { op, times });
            }
        }
        Ok(tunings)
    }

    /// Returns the times of an operation's kernels, if there are several.
    pub(crate) async fn tune_one(
        &self,
        op: &Op,
        lens: &[usize],
    ) -> Result<Vec<(&'static str, f64)>> {
        let len = output_len(op, lens)?;
        self.executor_for(op, lens).tune(op, lens, len).await
    }

    /// Blocking version of [`GpuDevice::tune_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn tune(&self, operations: &[(Op, &[usize])]) -> Result<Vec<Tuning>> {
        crate::runtime::block_on(self.tune_async(operations))
    }
}

//! Kernels chosen by measuring them on the user's device.

use super::GpuDevice;
use crate::error::Result;
use crate::ops::Op;
use crate::ops::shape::output_len;

/// How long the GPU's kernels for an operation took ([`GpuDevice::tune_async`]).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tuning {
    /// The operation.
    pub op: Op,
    /// Each kernel that could compute it, by name, and its seconds; the fastest first, which
    /// computes such operations from now on.
    pub times: Vec<(&'static str, f64)>,
}

impl GpuDevice {
    /// Measures which of the GPU's kernels is the fastest for operations to come, each with its
    /// inputs' lengths, and has it compute all of the same shape from then on: on this device and
    /// its clones, and where it has a [`pipeline_cache`](crate::DeviceBuilder::pipeline_cache), on
    /// devices of later processes with the same adapter, driver and version of this crate. Without
    /// this the choice goes by the shape and by what the adapter reports.
    ///
    /// There is a choice for matrix products in `f32`, also with vectors, softmaxes, norms, and
    /// natively for convolutions with stride 1; nothing is told of other operations, nor of what
    /// SIMD will compute. A measurement takes up to a second for a large product, and memory for
    /// its operands.
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
    /// What the operations themselves would say of such lengths, and what the device does.
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

    /// The times of an operation's kernels, if there is a choice.
    pub(crate) async fn tune_one(
        &self,
        op: &Op,
        lens: &[usize],
    ) -> Result<Vec<(&'static str, f64)>> {
        let len = output_len(op, lens)?;
        match self.gpu_for(op, lens) {
            Some(gpu) => gpu.tune(op, lens, len).await,
            None => Ok(Vec::new()),
        }
    }

    /// [`GpuDevice::tune_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn tune(&self, operations: &[(Op, &[usize])]) -> Result<Vec<Tuning>> {
        crate::runtime::block_on(self.tune_async(operations))
    }
}

//! Products that are added to what is there.

use super::GpuDevice;
use crate::batch::GpuCommandBatch;
use crate::error::Result;
use crate::ops::shape::{check_len, output_len};
use crate::ops::{Matmul, Op};
use crate::simd;

/// Products added to a matrix.
impl GpuDevice {
    /// `C = C + A · B`, `m × k` times `k × n`, all stored row by row unless the options say
    /// otherwise; as accurate as a product that has `C` among the terms of its sums.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Matmul};
    ///
    /// let mut c = [100.0, 200.0];
    /// GpuDevice::new()?.matmul_add(&[1.0, 2.0], &[3.0, 4.0, 5.0, 6.0], &mut c, Matmul::new(1, 2, 2))?;
    /// assert_eq!(c, [113.0, 216.0]);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LengthMismatch` where a length is not the shape's, `ShapeOverflow`, `OutOfMemory`, and what
    /// the device says.
    pub async fn matmul_add_async(
        &self,
        a: &[f32],
        b: &[f32],
        c: &mut [f32],
        options: Matmul,
    ) -> Result<()> {
        let (op, lens) = (Op::MatmulWith { options }, [a.len(), b.len()]);
        check_len("c", output_len(&op, &lens)?, c.len())?;
        self.check()?;
        if self.gpu_for(&op, &lens).is_none() {
            return simd::multiply_add(self.cpu(), &options, a, b, c);
        }
        let mut batch = GpuCommandBatch::new(self.clone());
        let [a, b, onto] = [a, b, &*c].map(|values| batch.upload(values));
        let product = batch.matmul_with(a, b, options);
        let sum = batch.vec_add(product, onto);
        batch.execute().await?;
        c.copy_from_slice(&batch.read(sum).await?);
        Ok(())
    }

    /// Waits for [`GpuDevice::matmul_add_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn matmul_add(&self, a: &[f32], b: &[f32], c: &mut [f32], options: Matmul) -> Result<()> {
        crate::runtime::block_on(self.matmul_add_async(a, b, c, options))
    }
}

//! Matmuls that accumulate into an existing matrix.

use super::GpuDevice;
use crate::error::Result;
use crate::ops::shape::{check_len, output_len};
use crate::ops::{Matmul, Op};

/// Accumulating matmul.
impl GpuDevice {
    /// Computes `C = C + A · B` with `A` of `m × k` and `B` of `k × n` elements, row-major unless
    /// the options say otherwise. The accuracy is that of a matmul whose sums have one more term.
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
    /// `LengthMismatch` if a length does not match the shape, `ShapeOverflow`, `OutOfMemory`, and
    /// device errors.
    #[doc(alias = "gemm")]
    #[doc(alias = "addmm")]
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
        let executor = self.executor_for(&op, &lens);
        executor.multiply_add(self.cpu(), options, [a, b], c).await
    }

    /// Blocking version of [`GpuDevice::matmul_add_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn matmul_add(&self, a: &[f32], b: &[f32], c: &mut [f32], options: Matmul) -> Result<()> {
        crate::runtime::block_on(self.matmul_add_async(a, b, c, options))
    }
}

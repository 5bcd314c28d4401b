//! Matmuls that accumulate into an existing matrix.

use super::GpuDevice;
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::gpu::Texts;
use crate::graph::{Binding, Node, Plan, Source};
use crate::ops::shape::{check_len, output_len};
use crate::ops::{Matmul, Op};
use crate::simd;

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
        let Some(gpu) = self.gpu_for(&op, &lens) else {
            return simd::multiply_add(self.cpu(), &options, a, b, c);
        };
        // One submission: the product, onto which a kernel adds what `c` has.
        let (plan, texts) = product_onto(op, [a.len(), b.len(), c.len()]);
        let values = [a, b, &*c].map(Binding::Values).into_iter();
        let bindings = values.chain([Binding::Nothing, Binding::Nothing]).collect();
        let mut sum = try_zeros(c.len())?;
        let outs = &mut [&mut sum[..]];
        gpu.read_plan((&plan, &texts), bindings, outs).await?;
        c.copy_from_slice(&sum);
        Ok(())
    }

    /// Blocking version of [`GpuDevice::matmul_add_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn matmul_add(&self, a: &[f32], b: &[f32], c: &mut [f32], options: Matmul) -> Result<()> {
        crate::runtime::block_on(self.matmul_add_async(a, b, c, options))
    }
}

/// Returns a plan that adds the third input to the product of the first two, given the inputs'
/// lengths.
fn product_onto(product: Op, lens: [usize; 3]) -> (Plan, Texts) {
    let leaves = lens.into_iter().enumerate();
    let leaves = leaves.map(|(index, len)| (Source::Placeholder(index), len));
    let of = |op, inputs: [usize; 2]| {
        let inputs = inputs.to_vec();
        (Source::Op { op, inputs }, lens[2])
    };
    let operations = [of(product, [0, 1]), of(Op::VecAdd, [3, 2])];
    let nodes = leaves.chain(operations);
    let nodes: Vec<Node> = nodes.map(|(source, len)| Node { source, len }).collect();
    let plan = Plan::new(&nodes, &[4], true);
    let texts = Texts::new(&plan);
    (plan, texts)
}

//! The methods of [`GpuDevice`] that come from the op table.

use super::GpuDevice;
use crate::error::Result;
use crate::ops::ConvLayer;
use crate::ops::shape::MAX_EXACT_INDEX;
use crate::ops::{Attention, Conv2d, Matmul, Op, Rearrange, ReduceAxis, Rope, for_each_op};

/// The type of an operation's single result.
trait Scalar: Sized {
    async fn evaluate(device: &GpuDevice, op: &Op, inputs: &[&[f32]]) -> Result<Self>;
}

impl Scalar for f32 {
    async fn evaluate(device: &GpuDevice, op: &Op, inputs: &[&[f32]]) -> Result<Self> {
        let mut value = [0.0];
        device.run_into_async(op, inputs, &mut value).await?;
        Ok(value[0])
    }
}

/// Kernels return indices as `f32`, exact up to 2²⁴; longer inputs are searched in pieces.
impl Scalar for usize {
    async fn evaluate(device: &GpuDevice, op: &Op, inputs: &[&[f32]]) -> Result<Self> {
        let x = inputs[0];
        if x.len() <= MAX_EXACT_INDEX {
            return Ok(f32::evaluate(device, op, inputs).await? as usize);
        }
        let mut best = 0;
        for (piece, values) in x.chunks(MAX_EXACT_INDEX).enumerate() {
            let within = f32::evaluate(device, op, &[values]).await? as usize;
            let index = piece * MAX_EXACT_INDEX + within;
            if x[index].is_nan() {
                return Ok(index);
            }
            if x[index] > x[best] {
                best = index;
            }
        }
        Ok(best)
    }
}

macro_rules! define_methods {
    (
        vectors { $( $(#[$vdoc:meta])* $vname:ident $vasync:ident $vjs:ident $vop:ident ($($vin:ident),+) -> $vout:ident $({ $($vp:ident: $vt:ty),+ })? $vclass:ident, $vulp:literal $(, $vsamples:tt)? $(=> $vgradients:tt)?; )* }
        scalars { $( $(#[$sdoc:meta])* $sname:ident $sasync:ident $sjs:ident $sop:ident ($($sin:ident),+) -> $sout:ident $sclass:ident, $sulp:literal; )* }
    ) => {
        /// The operations. Slices hold `f32` elements; matrices are row-major. Lengths must match
        /// each other and the shape, or [`crate::Error`] names the one that does not. On an error
        /// the result is left unchanged.
        impl GpuDevice {
            $(
                $(#[$vdoc])*
                #[doc = ""]
                #[doc = concat!("Accurate to ", stringify!($vulp), " ULP of the condition-scaled result, on every back-end.")]
                #[allow(clippy::too_many_arguments)] // As many as the operation has.
                pub async fn $vasync(&self, $($vin: &[f32],)+ $vout: &mut [f32] $($(, $vp: $vt)+)?) -> Result<()> {
                    self.run_into_async(&Op::$vop $({ $($vp),+ })?, &[$($vin),+], $vout).await
                }

                $(#[$vdoc])*
                #[doc = ""]
                #[doc = concat!("Blocking version of [`GpuDevice::", stringify!($vasync), "`].")]
                #[cfg(not(target_arch = "wasm32"))]
                #[allow(clippy::too_many_arguments)] // As many as the operation has.
                pub fn $vname(&self, $($vin: &[f32],)+ $vout: &mut [f32] $($(, $vp: $vt)+)?) -> Result<()> {
                    self.run_into(&Op::$vop $({ $($vp),+ })?, &[$($vin),+], $vout)
                }
            )*
            $(
                $(#[$sdoc])*
                #[doc = ""]
                #[doc = concat!("Accurate to ", stringify!($sulp), " ULP of the condition-scaled result, on every back-end.")]
                pub async fn $sasync(&self, $($sin: &[f32]),+) -> Result<$sout> {
                    <$sout>::evaluate(self, &Op::$sop, &[$($sin),+]).await
                }

                $(#[$sdoc])*
                #[doc = ""]
                #[doc = concat!("Blocking version of [`GpuDevice::", stringify!($sasync), "`].")]
                #[cfg(not(target_arch = "wasm32"))]
                pub fn $sname(&self, $($sin: &[f32]),+) -> Result<$sout> {
                    crate::runtime::block_on(self.$sasync($($sin),+))
                }
            )*
        }
    };
}
for_each_op!(define_methods);

/// Convolution with stride 1 and no padding.
impl GpuDevice {
    /// Computes a two-dimensional convolution as in machine learning (the kernel is not flipped),
    /// with stride 1 and no padding. The result has
    /// `(input_rows − kernel_rows + 1)` × `(input_cols − kernel_cols + 1)` elements. For strides and
    /// padding see [`GpuDevice::convolve2d_with_async`]; for batches, channels, groups and dilation
    /// see [`crate::ConvLayer`].
    #[doc(alias = "conv2d")]
    #[doc(alias = "convolution")]
    #[allow(clippy::too_many_arguments)] // As users of other libraries know it.
    pub async fn convolve2d_async(
        &self,
        input: &[f32],
        kernel: &[f32],
        result: &mut [f32],
        input_rows: usize,
        input_cols: usize,
        kernel_rows: usize,
        kernel_cols: usize,
    ) -> Result<()> {
        let options = Conv2d::valid(input_rows, input_cols, kernel_rows, kernel_cols);
        self.convolve2d_with_async(input, kernel, result, options)
            .await
    }

    /// Blocking version of [`GpuDevice::convolve2d_async`].
    #[doc(alias = "conv2d")]
    #[doc(alias = "convolution")]
    #[cfg(not(target_arch = "wasm32"))]
    #[allow(clippy::too_many_arguments)]
    pub fn convolve2d(
        &self,
        input: &[f32],
        kernel: &[f32],
        result: &mut [f32],
        input_rows: usize,
        input_cols: usize,
        kernel_rows: usize,
        kernel_cols: usize,
    ) -> Result<()> {
        let options = Conv2d::valid(input_rows, input_cols, kernel_rows, kernel_cols);
        self.convolve2d_with(input, kernel, result, options)
    }
}

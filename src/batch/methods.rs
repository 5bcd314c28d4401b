//! The methods of [`GpuCommandBatch`] that come from the op table.

use crate::batch::{BufferId, GpuCommandBatch};
use crate::ops::ConvLayer;
use crate::ops::{Attention, Conv2d, Matmul, Op, Rearrange, ReduceAxis, Rope, for_each_op};

macro_rules! define_batch_methods {
    (
        vectors { $( $(#[$vdoc:meta])* $vname:ident $vasync:ident $vjs:ident $vop:ident ($($vin:ident),+) -> $vout:ident $({ $($vp:ident: $vt:ty),+ })? $vclass:ident, $vulp:literal $(, $vsamples:tt)? $(=> $vgradients:tt)?; )* }
        scalars { $( $(#[$sdoc:meta])* $sname:ident $sasync:ident $sjs:ident $sop:ident ($($sin:ident),+) -> $sout:ident $sclass:ident, $sulp:literal; )* }
    ) => {
        /// The operations, as in [`GpuDevice`](crate::GpuDevice). A reduction returns a buffer of
        /// one element; `argmax` takes at most 2²⁴ elements here.
        impl GpuCommandBatch {
            $(
                $(#[$vdoc])*
                #[track_caller]
                pub fn $vname(&mut self, $($vin: BufferId),+ $($(, $vp: $vt)+)?) -> BufferId {
                    self.record(Op::$vop $({ $($vp),+ })?, &[$($vin),+])
                }
            )*
            $(
                $(#[$sdoc])*
                #[track_caller]
                pub fn $sname(&mut self, $($sin: BufferId),+) -> BufferId {
                    self.record(Op::$sop, &[$($sin),+])
                }
            )*
        }
    };
}
for_each_op!(define_batch_methods);

/// Convolution with stride 1 and no padding.
impl GpuCommandBatch {
    /// Records a convolution with stride 1 and no padding: see
    /// [`GpuDevice::convolve2d_async`](crate::GpuDevice::convolve2d_async). For batches, channels,
    /// groups and dilation see [`crate::ConvLayer`].
    #[doc(alias = "conv2d")]
    #[doc(alias = "convolution")]
    #[track_caller]
    pub fn convolve2d(
        &mut self,
        input: BufferId,
        kernel: BufferId,
        input_rows: usize,
        input_cols: usize,
        kernel_rows: usize,
        kernel_cols: usize,
    ) -> BufferId {
        let options = Conv2d::valid(input_rows, input_cols, kernel_rows, kernel_cols);
        self.convolve2d_with(input, kernel, options)
    }
}

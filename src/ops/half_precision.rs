//! The state of matmul in f16.

/// Whether a device multiplies matrices in f16, or the reason why not.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, HalfPrecision};
///
/// let device = GpuDevice::builder().half_precision(true).build()?;
/// match device.info().half_precision {
///     HalfPrecision::Used => println!("matmuls in f16"),
///     reason => println!("matmuls in f32: {reason}"),
/// }
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum HalfPrecision {
    /// [`crate::DeviceBuilder::half_precision`] was not called, or the device was adopted.
    NotRequested,
    /// There is no GPU.
    NoGpu,
    /// The adapter or its driver has no cooperative matrices of 16 × 16 f16 with `f32`
    /// accumulators; through CUDA, the GPU is no Hopper (compute capability 9.0).
    NoCooperativeMatrices,
    /// The adapter's subgroups do not have the 32 invocations that the kernel needs.
    SubgroupSize,
    /// The adapter's workgroups have less memory or fewer invocations than the kernel needs.
    WorkgroupLimits,
    /// A check found wrong results in f16 and turned it off: [`crate::GpuDevice::verify_async`], or the load of a language
    /// model.
    WrongResults,
    /// Matmuls on the GPU run in f16; through CUDA, those by quantised matrices in bf16.
    Used,
}

impl HalfPrecision {
    /// Returns the name in JavaScript.
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotRequested => "not-requested",
            Self::NoGpu => "no-gpu",
            Self::NoCooperativeMatrices => "no-cooperative-matrices",
            Self::SubgroupSize => "subgroup-size",
            Self::WorkgroupLimits => "workgroup-limits",
            Self::WrongResults => "wrong-results",
            Self::Used => "used",
        }
    }
}

impl std::fmt::Display for HalfPrecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotRequested => "f16 was not requested",
            Self::NoGpu => "there is no GPU",
            Self::NoCooperativeMatrices => "there are no cooperative matrices of f16",
            Self::SubgroupSize => "subgroups are not 32 wide",
            Self::WorkgroupLimits => "workgroups are too small",
            Self::WrongResults => "this GPU's results in f16 are wrong",
            Self::Used => "matmuls in f16",
        })
    }
}

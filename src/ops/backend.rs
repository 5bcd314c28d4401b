//! [`Backend`]: the name of a back-end.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The back-end that runs operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Backend {
    /// A hardware GPU for work that gains by it, SIMD for everything else. This is a request only:
    /// [`GpuDevice::backend`](crate::GpuDevice::backend) returns the back-end that was chosen.
    #[default]
    Auto,
    /// The GPU for every operation; a software adapter if there is no hardware GPU.
    Gpu,
    /// The CPU's vector instructions for every operation.
    Simd,
    /// The first NVIDIA GPU, through its driver. Operations with a kernel in [`crate::ptx`] run on it, alone, in
    /// batches and in programs: matmul without transposed matrices, softmaxes, norms, `sum`, `mean`, `dot`, `max`
    /// and `min` of whole arrays, and relu, exp, sigmoid, abs, neg, sqrt, sums, differences, products, quotients, minima and maxima of
    /// elements. The CPU's vector instructions run all others.
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    Cuda,
}

impl Backend {
    /// The back-ends of this build.
    const ALL: &[Self] = &[
        Self::Auto,
        Self::Gpu,
        Self::Simd,
        #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
        Self::Cuda,
    ];
}

/// Parses the names that [`Display`](fmt::Display) writes.
///
/// ```
/// use relampago::Backend;
///
/// assert_eq!("simd".parse(), Ok(Backend::Simd));
/// assert!("tpu".parse::<Backend>().is_err());
/// ```
impl FromStr for Backend {
    type Err = Error;

    /// # Errors
    /// `InvalidArgument` for a name that no back-end of this build has.
    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|backend| backend.to_string() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(ToString::to_string).collect();
            let what = "`gpu` is WebGPU, Vulkan, Metal and DX12, `simd` is the CPU";
            let requirement = format!("one of {}: {what}", names.join(", "));
            Error::invalid("backend", name, requirement)
        })
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Gpu => "gpu",
            Self::Simd => "simd",
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            Self::Cuda => "cuda",
        })
    }
}

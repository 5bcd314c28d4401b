//! The types that the variants for a GPU hold, and the bodies of match arms for them.
//!
//! A build without a feature holds a type without values instead, which has no methods. Such an arm never runs,
//! so that its body is left out.

#[cfg(feature = "gpu")]
#[macro_use]
mod gpu {
    pub(crate) use crate::gpu::{GpuBuffer, GpuWeights, SharedGpu, Submitted, Texts, TimedPlan};

    /// Evaluates the body of a match arm for a value of the GPU back-end.
    macro_rules! with_gpu {
        ($value:ident, $body:expr) => {{
            let _ = $value;
            $body
        }};
    }
}

#[cfg(not(feature = "gpu"))]
#[macro_use]
mod gpu {
    pub(crate) use std::convert::{
        Infallible as GpuBuffer, Infallible as GpuWeights, Infallible as SharedGpu,
        Infallible as Submitted, Infallible as Texts, Infallible as TimedPlan,
    };

    macro_rules! with_gpu {
        ($value:ident, $body:expr) => {
            match *::std::borrow::Borrow::<::std::convert::Infallible>::borrow(&$value) {}
        };
    }
}

#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
#[macro_use]
mod cuda {
    pub(crate) use crate::cuda::{CudaValues, SharedCuda};

    /// Evaluates the body of a match arm for a value of the CUDA back-end.
    macro_rules! with_cuda {
        ($value:ident, $body:expr) => {{
            let _ = $value;
            $body
        }};
    }
}

#[cfg(not(all(feature = "cuda", not(target_arch = "wasm32"))))]
#[macro_use]
mod cuda {
    pub(crate) use std::convert::{Infallible as CudaValues, Infallible as SharedCuda};

    macro_rules! with_cuda {
        ($value:ident, $body:expr) => {
            match *::std::borrow::Borrow::<::std::convert::Infallible>::borrow(&$value) {}
        };
    }
}

pub(crate) use cuda::{CudaValues, SharedCuda};
pub(crate) use gpu::{GpuBuffer, GpuWeights, SharedGpu, Submitted, Texts, TimedPlan};

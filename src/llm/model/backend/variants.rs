//! The back-ends that run models.

use super::super::State;
use super::super::adapter::Parts;
use super::{BackendAdapter, BackendSequence};
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
use crate::cuda::SharedCuda;
use crate::device::executor::SharedGpu;
use crate::graph::steps::StepBackend;
use crate::simd::Cpu;

/// A back-end that has variants of [`State`] and [`Parts`].
pub(in super::super) trait ModelBackend: StepBackend {
    fn state(sequence: BackendSequence<Self>) -> State;

    /// Returns the sequence, if it is on this back-end.
    fn sequence(state: &State) -> Option<&BackendSequence<Self>>;

    fn parts(adapter: BackendAdapter<Self>) -> Parts;

    /// Returns the adapter, if it is on this back-end.
    fn adapter(parts: &Parts) -> Option<&BackendAdapter<Self>>;
}

macro_rules! model_backend {
    ($backend:ty, $variant:ident) => {
        impl ModelBackend for $backend {
            fn state(sequence: BackendSequence<Self>) -> State {
                State::$variant(sequence)
            }

            fn sequence(state: &State) -> Option<&BackendSequence<Self>> {
                match state {
                    State::$variant(sequence) => Some(sequence),
                    _ => None,
                }
            }

            fn parts(adapter: BackendAdapter<Self>) -> Parts {
                Parts::$variant(adapter)
            }

            fn adapter(parts: &Parts) -> Option<&BackendAdapter<Self>> {
                match parts {
                    Parts::$variant(adapter) => Some(adapter),
                    _ => None,
                }
            }
        }
    };
}

model_backend!(Cpu, Cpu);
model_backend!(SharedGpu, Gpu);
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
model_backend!(SharedCuda, Cuda);

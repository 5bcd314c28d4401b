//! Inputs of a plan's run, and the number of runs.

/// Values that no kernel of a plan computes, for a back-end whose buffers are `B`.
#[derive(Clone)]
pub(crate) enum Binding<'a, B> {
    /// A kernel computes the node, or no result needs it.
    Nothing,
    /// Values in the host's memory.
    Values(&'a [f32]),
    /// Values in memory of the back-end.
    Buffer(B),
    /// Values in JavaScript's memory, for a GPU.
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    Array(&'a js_sys::Float32Array),
}

/// The number of runs, and the results that become arguments of the next run.
#[derive(Clone, Copy)]
pub(crate) struct Repeat<'a> {
    pub(crate) times: usize,
    /// Pairs of an output's index and the node that takes its values in the next run.
    pub(crate) feedback: &'a [(usize, usize)],
}

impl Repeat<'_> {
    pub(crate) const ONCE: Self = Self {
        times: 1,
        feedback: &[],
    };
}

/// Values read from a GPU, in the requester's memory.
#[cfg(not(all(target_arch = "wasm32", feature = "js")))]
pub(crate) type Fetched = Vec<f32>;
#[cfg(all(target_arch = "wasm32", feature = "js"))]
pub(crate) type Fetched = js_sys::Float32Array;

/// Returns fetched values as a vector.
#[cfg(not(all(target_arch = "wasm32", feature = "js")))]
pub(crate) fn in_memory(values: Fetched) -> Vec<f32> {
    values
}

#[cfg(all(target_arch = "wasm32", feature = "js"))]
#[allow(clippy::needless_pass_by_value)] // As the other one has it.
pub(crate) fn in_memory(values: Fetched) -> Vec<f32> {
    values.to_vec()
}

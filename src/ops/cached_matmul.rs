//! [`CachedMatmul`]: a matmul with the weights of a cache, as an operation.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::ops::shape::{check_matrix, product};

/// Weights in the form in which a back-end has them. Each back-end knows its own types.
pub(crate) type Weights = Arc<dyn Any + Send + Sync>;

/// The matmul of `m × k` rows with the `k × n` weights of a
/// [`GpuMatmulCache`](crate::GpuMatmulCache), as
/// [`GpuCommandBatch::matmul_cached`](crate::GpuCommandBatch::matmul_cached) records it.
#[derive(Clone)]
pub struct CachedMatmul {
    shape: [usize; 3],
    weights: Weights,
}

impl CachedMatmul {
    /// Returns the matmul of `m` rows with weights of this shape.
    pub(crate) fn new(m: usize, [k, n]: [usize; 2], weights: Weights) -> Self {
        let shape = [m, k, n];
        Self { shape, weights }
    }

    /// Returns `[m, k, n]`.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Returns the weights if they have this type.
    pub(crate) fn weights<T: 'static>(&self) -> Option<&T> {
        self.weights.downcast_ref()
    }

    /// Checks the length of the input; returns that of the result.
    pub(crate) fn output_len(&self, input: usize) -> Result<usize> {
        let [m, k, n] = self.shape;
        check_matrix("input", [m, k], input, " (m × k)")?;
        product("out", m, n)
    }
}

/// Two matmuls are equal if they share their weights.
impl PartialEq for CachedMatmul {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && Arc::ptr_eq(&self.weights, &other.weights)
    }
}

impl fmt::Debug for CachedMatmul {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CachedMatmul").field(&self.shape).finish()
    }
}

//! Custom reductions as operations of graphs.

use std::fmt;

use crate::error::Result;
use crate::instruction_set::InstructionSet;
use crate::ops::reduce_op::ReductionText;
use crate::ops::shape::check_matrix;

/// Reduces each tile of a row-major matrix on SIMD: the threads, the matrix with its shape, the shape of a tile, and a
/// result for each tile.
pub(crate) type RunTiles = fn(
    (InstructionSet, usize),
    &[f32],
    shape: [usize; 2],
    tile: [usize; 2],
    out: &mut [f32],
) -> Result<()>;

/// A [`ReduceOp`](crate::ReduceOp) as constants and functions.
#[derive(Clone, Copy)]
pub(crate) struct Reduction {
    pub(crate) name: &'static str,
    pub(crate) identity: f32,
    /// `None` if it runs on SIMD alone.
    pub(crate) wgsl: Option<ReductionText>,
    /// Reduces tiles of elements.
    pub(crate) elements: RunTiles,
    /// Reduces tiles of results, which are not mapped again.
    pub(crate) results: RunTiles,
}

/// A reduction of each tile of a row-major matrix to one value by a [`ReduceOp`](crate::ReduceOp):
/// [`GpuCommandBatch::tiled_reduce_partial`](crate::GpuCommandBatch::tiled_reduce_partial).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CustomReduction {
    reduction: Reduction,
    /// Whether the values are results of the reduction already.
    is_again: bool,
    shape: [usize; 2],
    tile: [usize; 2],
}

impl Reduction {
    /// Returns the reduction of each tile of a matrix of elements.
    pub(crate) fn tiles(self, shape: [usize; 2], tile: [usize; 2]) -> CustomReduction {
        CustomReduction {
            reduction: self,
            is_again: false,
            shape,
            tile,
        }
    }

    /// Returns the identity, the text and the addresses of the functions. Reductions with equal keys are the same, since
    /// functions at one address have the same code.
    pub(crate) fn key(&self) -> (u32, Option<ReductionText>, [usize; 2]) {
        let functions = [self.elements, self.results].map(|function| function as usize);
        (self.identity.to_bits(), self.wgsl, functions)
    }
}

impl CustomReduction {
    /// Returns the name of the [`ReduceOp`](crate::ReduceOp).
    pub fn name(&self) -> &'static str {
        self.reduction.name
    }

    /// Returns the rows and columns of the matrix.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// Returns the rows and columns of a tile that is not at an edge.
    pub fn tile(&self) -> [usize; 2] {
        self.tile
    }

    /// Returns the rows and columns of tiles.
    pub(crate) fn tile_count(&self) -> [usize; 2] {
        let [rows, cols] = self.shape;
        if rows == 0 || cols == 0 {
            return [0; 2];
        }
        [rows.div_ceil(self.tile[0]), cols.div_ceil(self.tile[1])]
    }

    /// Returns the reduction of this one's results by tiles of the same shape.
    pub(crate) fn again(&self) -> Self {
        Self {
            is_again: true,
            shape: self.tile_count(),
            ..*self
        }
    }

    #[cfg(feature = "gpu")]
    pub(crate) fn identity(&self) -> f32 {
        self.reduction.identity
    }

    /// Returns the WGSL; `None` if it runs on SIMD alone.
    pub(crate) fn wgsl(&self) -> Option<ReductionText> {
        let wgsl = self.reduction.wgsl?;
        Some(if self.is_again {
            wgsl.of_results()
        } else {
            wgsl
        })
    }

    /// Checks the length of the matrix. Returns the number of tiles.
    pub(crate) fn output_len(&self, len: usize) -> Result<usize> {
        check_matrix("data", self.shape, len, " (rows × cols)")?;
        Ok(self.tile_count().into_iter().product())
    }

    /// Runs the reduction on SIMD.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn run(
        &self,
        cpu: (InstructionSet, usize),
        data: &[f32],
        out: &mut [f32],
    ) -> Result<()> {
        let Reduction {
            elements, results, ..
        } = self.reduction;
        let run = if self.is_again { results } else { elements };
        run(cpu, data, self.shape, self.tile, out)
    }
}

impl PartialEq for Reduction {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

/// Writes all that the result depends on, because programs of tensors are cached by it.
impl fmt::Debug for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.key())
    }
}

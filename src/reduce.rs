//! Tiled reductions: each tile of a matrix, or of any view, folded to one value, and those to
//! one for all.

mod device;

use crate::error::Result;
use crate::shape::{check_len, product};
use crate::simd::{self, Cpu, InstructionSet};
use crate::views::{BoundView, PartitionView, TensorView};

/// Rows and columns of a tile of the reductions named `tiled_…`.
pub const TILE_SIZE: usize = 16;

/// A reduction: an associative and commutative function of two values, and the value that
/// changes nothing. In which order values are combined is not said, nor whether each of them meets
/// the identity.
///
/// An operation of one's own runs on SIMD as it is, compiled for each instruction set; `combine`
/// should be `#[inline]` and without branches, so that it becomes vector instructions. It runs
/// on a GPU if [`ReduceOp::wgsl`] says how.
///
/// ```
/// use relampago::{ReduceOp, tiled_reduce_2d};
///
/// struct Product;
///
/// impl ReduceOp for Product {
///     fn identity() -> f32 {
///         1.0
///     }
///
///     #[inline]
///     fn combine(a: f32, b: f32) -> f32 {
///         a * b
///     }
///
///     fn wgsl() -> Option<&'static str> {
///         Some("a * b")
///     }
/// }
///
/// assert_eq!(tiled_reduce_2d::<Product>(&[1.0, 2.0, 3.0, 4.0], 2, 2)?, 24.0);
/// # Ok::<(), relampago::Error>(())
/// ```
pub trait ReduceOp {
    /// The value for which `combine(identity, x)` is `x`; the result of no values.
    fn identity() -> f32;

    /// Combines two values.
    fn combine(a: f32, b: f32) -> f32;

    /// `combine` as a WGSL expression of `a` and `b`, both `f32`, for GPUs; without one the
    /// reduction runs on SIMD whatever the device. It may call WGSL's functions and these:
    /// `maximum(a, b)` and `minimum(a, b)`, which keep NaN, and `is_nan(x)`.
    fn wgsl() -> Option<&'static str> {
        None
    }
}

/// Sum. A tile whose sum exceeds the range of `f32` gives an infinity.
#[derive(Clone, Copy, Debug)]
pub struct SumOp;

impl ReduceOp for SumOp {
    fn identity() -> f32 {
        0.0
    }

    #[inline]
    fn combine(a: f32, b: f32) -> f32 {
        a + b
    }

    fn wgsl() -> Option<&'static str> {
        Some("a + b")
    }
}

/// Maximum; NaN where any value is NaN, −∞ of no values.
#[derive(Clone, Copy, Debug)]
pub struct MaxOp;

impl ReduceOp for MaxOp {
    fn identity() -> f32 {
        f32::NEG_INFINITY
    }

    #[inline]
    fn combine(a: f32, b: f32) -> f32 {
        // A NaN in `b` fails the comparison and is taken by that.
        if a > b || a.is_nan() { a } else { b }
    }

    fn wgsl() -> Option<&'static str> {
        Some("maximum(a, b)")
    }
}

/// Minimum; NaN where any value is NaN, ∞ of no values.
#[derive(Clone, Copy, Debug)]
pub struct MinOp;

impl ReduceOp for MinOp {
    fn identity() -> f32 {
        f32::INFINITY
    }

    #[inline]
    fn combine(a: f32, b: f32) -> f32 {
        if a < b || a.is_nan() { a } else { b }
    }

    fn wgsl() -> Option<&'static str> {
        Some("minimum(a, b)")
    }
}

/// One value for each tile.
#[derive(Clone, Debug, PartialEq)]
pub struct Partials {
    /// The tiles' values, the last dimension varying fastest: row by row for a matrix.
    pub values: Vec<f32>,
    /// The number of tiles along each dimension: rows and columns of tiles for a matrix.
    pub tile_count: [usize; 4],
}

/// Folds each [`TILE_SIZE`]² tile of a row-major `rows × cols` matrix, on SIMD.
///
/// # Errors
/// `LengthMismatch` where `data` is not of that shape, `ShapeOverflow`, `OutOfMemory`.
pub fn tiled_reduce_partial<O: ReduceOp>(
    data: &[f32],
    rows: usize,
    cols: usize,
) -> Result<Partials> {
    let matrix = check_matrix(data, rows, cols)?;
    PartitionView::new_2d(matrix, TILE_SIZE, TILE_SIZE)?.reduce::<O>(data)
}

/// Folds a row-major `rows × cols` matrix to one value, tile by tile, on SIMD; the identity of
/// no values. Sums are pairwise: their error grows with the logarithm of the length.
///
/// # Errors
/// As [`tiled_reduce_partial`].
pub fn tiled_reduce_2d<O: ReduceOp>(data: &[f32], rows: usize, cols: usize) -> Result<f32> {
    check_matrix(data, rows, cols)?.bind(data)?.reduce::<O>()
}

/// The sum of a row-major `rows × cols` matrix: see [`tiled_reduce_2d`].
pub fn tiled_sum_2d(data: &[f32], rows: usize, cols: usize) -> Result<f32> {
    tiled_reduce_2d::<SumOp>(data, rows, cols)
}

/// The largest value of a row-major `rows × cols` matrix: see [`tiled_reduce_2d`] and [`MaxOp`].
pub fn tiled_max_2d(data: &[f32], rows: usize, cols: usize) -> Result<f32> {
    tiled_reduce_2d::<MaxOp>(data, rows, cols)
}

/// The smallest value of a row-major `rows × cols` matrix: see [`tiled_reduce_2d`] and [`MinOp`].
pub fn tiled_min_2d(data: &[f32], rows: usize, cols: usize) -> Result<f32> {
    tiled_reduce_2d::<MinOp>(data, rows, cols)
}

impl PartitionView {
    /// Folds each tile of values, read where they are, on SIMD.
    ///
    /// # Errors
    /// `LengthMismatch` where the view reaches beyond `data`, `OutOfMemory`.
    pub fn reduce<O: ReduceOp>(&self, data: &[f32]) -> Result<Partials> {
        simd::fold_tiles::<O>(every_thread(), &self.tensor().bind(data)?, self)
    }
}

impl BoundView<'_> {
    /// Folds all values, read where they are, to one, on SIMD; the identity of no values.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no memory for the results of tiles.
    pub fn reduce<O: ReduceOp>(&self) -> Result<f32> {
        fold_all::<O>(every_thread(), self)
    }
}

fn every_thread() -> Cpu {
    Cpu::new(InstructionSet::best(), None)
}

/// Folds tiles, then tiles of what they gave, until there is one.
fn fold_all<O: ReduceOp>(cpu: Cpu, values: &BoundView<'_>) -> Result<f32> {
    let partials = simd::fold_tiles::<O>(cpu, values, &tiles_of(*values.view())?)?;
    match partials.values[..] {
        [] => Ok(O::identity()),
        [one] => Ok(one),
        _ => {
            let view = TensorView::new(partials.tile_count)?;
            fold_all::<O>(cpu, &view.bind(&partials.values)?)
        }
    }
}

/// A view cut into tiles of as many values as [`TILE_SIZE`]² along its last dimensions.
fn tiles_of(view: TensorView) -> Result<PartitionView> {
    let shape = view.shape();
    let mut long = (0..shape.len()).rev().filter(|&dim| shape[dim] > 1);
    let mut tile = [1; 4];
    match (long.next(), long.next()) {
        (Some(last), Some(before)) => (tile[last], tile[before]) = (TILE_SIZE, TILE_SIZE),
        (Some(only), None) => tile[only] = TILE_SIZE * TILE_SIZE,
        _ => {}
    }
    PartitionView::new(view, tile)
}

fn check_matrix(data: &[f32], rows: usize, cols: usize) -> Result<TensorView> {
    check_len("data", product("data", rows, cols)?, data.len())?;
    TensorView::new_2d(rows, cols)
}

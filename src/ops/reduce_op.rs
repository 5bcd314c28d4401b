//! Tiled reductions: each tile of a matrix, or of any view, folded to one value, and those to
//! one for all.

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

//! Tiled reductions: each tile of a matrix or a view is reduced to one value, and these values to
//! one.

/// Rows and columns of a tile in the reductions named `tiled_…`.
pub const TILE_SIZE: usize = 16;

/// A reduction: an associative and commutative function of two values, and its identity. The order
/// of combination is unspecified, and so is whether an element is combined with the identity.
///
/// A custom reduction runs on SIMD, compiled for each instruction set; `combine` should be
/// `#[inline]` and without branches, so that the compiler can vectorise it. It runs on a GPU if
/// [`ReduceOp::wgsl`] returns an expression.
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
    /// Returns the value for which `combine(identity, x)` is `x`. It is the result of an empty
    /// reduction.
    fn identity() -> f32;

    /// Combines two values.
    fn combine(a: f32, b: f32) -> f32;

    /// Returns `combine` as a WGSL expression of `a` and `b`, both `f32`, for GPUs. If it returns
    /// `None`, the reduction runs on SIMD on every device. The expression may call WGSL's
    /// functions, `maximum(a, b)` and `minimum(a, b)`, which propagate NaN, and `is_nan(x)`.
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

/// Maximum; NaN if any element is NaN, −∞ for no elements.
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

/// Minimum; NaN if any element is NaN, ∞ for no elements.
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

/// The results of a reduction by tiles, one for each tile.
#[derive(Clone, Debug, PartialEq)]
pub struct Partials {
    /// The tiles' values, the last dimension varying fastest: row by row for a matrix.
    pub values: Vec<f32>,
    /// The number of tiles along each dimension: rows and columns of tiles for a matrix.
    pub tile_count: [usize; 4],
}

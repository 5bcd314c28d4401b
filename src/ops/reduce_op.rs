//! Tiled reductions: each tile of a matrix or a view is reduced to one value, and these values to
//! one.

use crate::error::{Error, Result};
use crate::ops::shape::number;

/// The number of rows, and of columns, of a tile in the reductions named `tiled_…`.
pub const TILE_SIZE: usize = 16;

/// A reduction: an optional function of each element, a function that combines two values, and its
/// identity.
///
/// `combine` must obey three laws for all values that [`MAP`](Self::MAP) returns, NaN included, because the order of
/// combination is unspecified, and so is the number of times that the identity takes part:
///
/// - `combine(identity, x)` and `combine(x, identity)` are `x`;
/// - `combine(a, b)` is `combine(b, a)`;
/// - `combine(a, combine(b, c))` is `combine(combine(a, b), c)`, up to rounding.
///
/// Then the result is the same on every back-end. Reductions check the first law on some values and return
/// `InvalidArgument` if it does not hold; builds with debug assertions check all three. Elements are changed in `MAP`,
/// not in `combine`: the largest magnitude is the largest of `|x|`, and not a `combine` that returns `|a|` or `|b|`. To
/// leave NaN out, map it to the identity.
///
/// A custom reduction runs on SIMD, compiled for each instruction set; `combine` should be
/// `#[inline]` and without branches, so that the compiler can vectorise it. It runs on a GPU if
/// [`ReduceOp::wgsl`] returns an expression and `MAP` has one.
///
/// ```
/// use relampago::{ElementMap, ReduceOp, tiled_reduce_2d};
///
/// /// The largest magnitude; NaN if any element is NaN.
/// struct LargestMagnitude;
///
/// impl ReduceOp for LargestMagnitude {
///     const MAP: Option<ElementMap> = Some(ElementMap::new(f32::abs).with_wgsl("abs(x)"));
///
///     fn identity() -> f32 {
///         0.0
///     }
///
///     #[inline]
///     fn combine(a: f32, b: f32) -> f32 {
///         if a > b || a.is_nan() { a } else { b }
///     }
///
///     fn wgsl() -> Option<&'static str> {
///         Some("maximum(a, b)")
///     }
/// }
///
/// assert_eq!(tiled_reduce_2d::<LargestMagnitude>(&[-7.0, 2.0, 3.0, 4.0], 2, 2)?, 7.0);
/// # Ok::<(), relampago::Error>(())
/// ```
pub trait ReduceOp {
    /// The function that is applied to each element once, before it is combined with others. `None`
    /// combines the elements themselves.
    const MAP: Option<ElementMap> = None;

    /// Returns the value that changes no other. It is the result of an empty reduction.
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

/// A function of one element, in Rust and in WGSL: see [`ReduceOp::MAP`].
#[derive(Clone, Copy, Debug)]
pub struct ElementMap {
    pub(crate) function: fn(f32) -> f32,
    pub(crate) wgsl: Option<&'static str>,
}

impl ElementMap {
    /// Creates a function for SIMD. A reduction with it runs on SIMD on every device.
    pub const fn new(function: fn(f32) -> f32) -> Self {
        let wgsl = None;
        Self { function, wgsl }
    }

    /// Returns the function for GPUs, too: `wgsl` is the same function as a WGSL expression of `x`,
    /// an `f32`, with the functions of [`ReduceOp::wgsl`].
    #[must_use]
    pub const fn with_wgsl(self, wgsl: &'static str) -> Self {
        let wgsl = Some(wgsl);
        Self { wgsl, ..self }
    }
}

/// The WGSL of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReductionText {
    pub(crate) combine: &'static str,
    /// `None` for elements as they are.
    pub(crate) map: Option<&'static str>,
}

impl ReductionText {
    /// Returns the WGSL of a reduction; `None` if it runs on SIMD alone.
    pub(crate) fn of<O: ReduceOp>() -> Option<Self> {
        let combine = O::wgsl()?;
        let map = match O::MAP {
            Some(map) => Some(map.wgsl?),
            None => None,
        };
        Some(Self { combine, map })
    }

    /// Returns the WGSL that combines results of the reduction.
    pub(crate) fn of_results(self) -> Self {
        Self { map: None, ..self }
    }
}

/// Values on which the laws of a reduction are checked.
const SAMPLES: [f32; 6] = [-7.0, -0.5, 0.0, 1.0, 3.0, f32::NAN];

/// Checks the laws of a reduction on some values.
///
/// # Errors
/// `InvalidArgument` with the values for which `combine` breaks a law.
pub(crate) fn check_laws<O: ReduceOp>() -> Result<()> {
    let samples = SAMPLES.map(|x| O::MAP.map_or(x, |map| (map.function)(x)));
    let identity = O::identity();
    for x in samples.into_iter().chain([identity]) {
        for [a, b] in [[identity, x], [x, identity]] {
            let why = "as the identity changes no value: change elements in `MAP`, before they are combined";
            check_law([a, b], O::combine(a, b), x, why)?;
        }
    }
    if cfg!(debug_assertions) {
        for (a, b) in samples.into_iter().flat_map(|a| samples.map(|b| (a, b))) {
            let why = "as the order of the values is unspecified";
            check_law([a, b], O::combine(a, b), O::combine(b, a), why)?;
            for c in samples {
                let (start, rest) = (O::combine(a, b), O::combine(b, c));
                let why = "as the order of combination is unspecified";
                check_law([start, c], O::combine(start, c), O::combine(a, rest), why)?;
            }
        }
    }
    Ok(())
}

#[inline]
fn check_law([a, b]: [f32; 2], value: f32, expected: f32, why: &'static str) -> Result<()> {
    if is_same(value, expected) {
        return Ok(());
    }
    Err(broken_law([a, b], value, expected, why))
}

#[cold]
fn broken_law([a, b]: [f32; 2], value: f32, expected: f32, why: &'static str) -> Error {
    let value = format!("{} for {} and {}", number(value), number(a), number(b));
    Error::invalid("combine", value, format!("{}, {why}", number(expected)))
}

/// Returns whether two values are equal up to rounding.
fn is_same(a: f32, b: f32) -> bool {
    let rounding = 1e-3 * a.abs().max(b.abs());
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= rounding
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
#[non_exhaustive]
pub struct Partials {
    /// The tiles' values in row-major order: the last dimension varies fastest.
    pub values: Vec<f32>,
    /// The number of tiles along each dimension: rows and columns of tiles for a matrix.
    pub tile_count: [usize; 4],
}

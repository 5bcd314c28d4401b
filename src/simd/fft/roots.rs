//! Roots of unity, computed in `f64` and cached for the life of the process.

use std::f64::consts::TAU;
use std::sync::OnceLock;

use super::WIDTH;
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::ops::rope::cosine_and_sine;

/// Complex numbers, real and imaginary parts apart.
pub(super) struct Roots {
    pub(super) re: Vec<f32>,
    pub(super) im: Vec<f32>,
}

/// The factors between the two transforms of a long row: element `(row, col)` is multiplied by the root `row · col`. That
/// is the product of one for the row and the panel's first column, and one for the row and the lane.
pub(super) struct LongRoots {
    /// For each panel, those of all rows.
    pub(super) firsts: Roots,
    /// For each row, those of all lanes.
    pub(super) lanes: Roots,
}

/// One list for each power of two.
static ROOTS: [OnceLock<Roots>; 32] = [const { OnceLock::new() }; 32];
static LONG_ROOTS: [OnceLock<LongRoots>; 32] = [const { OnceLock::new() }; 32];

/// Returns `e^(−2πi·k/len)` for `k` below `len`, a power of two.
///
/// # Errors
/// `OutOfMemory` if there is no memory for them.
pub(super) fn roots(len: usize) -> Result<&'static Roots> {
    cached(&ROOTS, len, || listed(len, len, |k| k))
}

/// Returns the factors of rows of `rows · cols` elements.
///
/// # Errors
/// `OutOfMemory` if there is no memory for them.
pub(super) fn long_roots(rows: usize, cols: usize) -> Result<&'static LongRoots> {
    let len = rows * cols;
    let first = |k: usize| k / rows * WIDTH * (k % rows);
    let lane = |k: usize| k / WIDTH * (k % WIDTH);
    cached(&LONG_ROOTS, len, || {
        Ok(LongRoots {
            firsts: listed(len, cols / WIDTH * rows, first)?,
            lanes: listed(len, rows * WIDTH, lane)?,
        })
    })
}

fn cached<T>(
    all: &'static [OnceLock<T>; 32],
    len: usize,
    new: impl FnOnce() -> Result<T>,
) -> Result<&'static T> {
    let own = &all[len.ilog2() as usize];
    match own.get() {
        Some(roots) => Ok(roots),
        None => new().map(|roots| own.get_or_init(|| roots)),
    }
}

/// Lists the roots of unity of order `len` by their exponents.
fn listed(len: usize, count: usize, exponent: impl Fn(usize) -> usize) -> Result<Roots> {
    let (mut re, mut im) = (try_zeros(count)?, try_zeros(count)?);
    for (at, (re, im)) in re.iter_mut().zip(&mut im).enumerate() {
        let angle = -TAU * (exponent(at) % len) as f64 / len as f64;
        [*re, *im] = cosine_and_sine(angle).map(|part| part as f32);
    }
    Ok(Roots { re, im })
}

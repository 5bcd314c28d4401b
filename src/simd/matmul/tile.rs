//! The innermost loop: a tile of `C` in the registers.

use std::ptr::NonNull;

use crate::alloc::scratch::LINE;
use crate::simd::isa::Isa;

/// The number of vectors in a row of a tile.
pub(super) const VECTORS: usize = 2;

/// The prefetch distance for a row of `B`, in steps of `k`.
const AHEAD: usize = 8;

/// The number of steps of the depth between two tests for its end.
const UNROLL: usize = 4;

/// A strip of an operand: the rows of `A` or the columns of `B` for one tile. Its value `i` at depth `p`
/// lies at `values + i · across + p · deep`.
#[derive(Clone, Copy)]
pub(super) struct Strip {
    pub(super) values: *const f32,
    pub(super) across: usize,
    pub(super) deep: usize,
}

/// The position of a tile in `C`, whether to accumulate, and the memory to prefetch meanwhile.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) c: *mut f32,
    pub(super) stride: usize,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) accumulate: bool,
    /// The memory that later tiles read: one cache line for each row of the tile.
    pub(super) next: Option<NonNull<f32>>,
}

/// Multiplies strips of `A` and `B`, `depth` deep, to a tile of `C`.
///
/// # Safety
/// `a` must have `place.rows` rows, at least one, rounded up to whole steps, at most
/// `I::TILE_ROWS`, and `b`, whose columns lie side by side, `place.cols` columns rounded up to
/// whole vectors, at most `VECTORS`. The rows and columns of `place` must be writable, and hold
/// numbers where they are accumulated, and what is next be readable.
#[inline(always)]
pub(super) unsafe fn multiply<I: Isa>(isa: I, a: Strip, b: Strip, depth: usize, place: Place) {
    // Rows that are slow to read unpacked are always packed.
    let packed = !I::BROADCASTS_ROWS || a.across == 1;
    // SAFETY: the caller's promise is passed on, the number of vectors chosen by the columns.
    unsafe {
        match (place.cols > I::LANES, packed) {
            (true, true) => any_height::<I, VECTORS, true>(isa, a, b, depth, place),
            (false, true) => any_height::<I, 1, true>(isa, a, b, depth, place),
            (true, false) => any_height::<I, VECTORS, false>(isa, a, b, depth, place),
            (false, false) => any_height::<I, 1, false>(isa, a, b, depth, place),
        }
    }
}

/// # Safety
/// As for [`multiply`], with `V` vectors; `a.across` must be 1 where it is `PACKED`.
#[inline(always)]
unsafe fn any_height<I: Isa, const V: usize, const PACKED: bool>(
    isa: I,
    a: Strip,
    b: Strip,
    depth: usize,
    place: Place,
) {
    macro_rules! by_height {
        ($($rows:literal)*) => {
            match place.rows.next_multiple_of(I::TILE_STEP) {
                // SAFETY: the caller's promise is passed on, the height chosen by the rows.
                $($rows if $rows <= I::TILE_ROWS && $rows % I::TILE_STEP == 0 => unsafe {
                    tile::<I, $rows, V, PACKED>(isa, a, b, depth, place);
                },)*
                rows => debug_assert!(false, "no tile has {rows} rows"),
            }
        };
    }
    by_height!(1 2 3 4 5 6 7 8 9 10 11 12);
}

/// # Safety
/// As for [`multiply`], with `R` rows and `V` vectors; `a.across` must be 1 where it is
/// `PACKED`.
// A function of its own in WebAssembly, where engines allocate registers better in small ones; what
// is not inlined needs the features itself. Natively they reach only what is inlined.
#[cfg_attr(target_family = "wasm", inline(never))]
#[cfg_attr(
    all(target_family = "wasm", not(target_feature = "simd128")),
    target_feature(enable = "simd128")
)]
#[cfg_attr(relampago_relaxed, target_feature(enable = "relaxed-simd"))]
#[cfg_attr(not(target_family = "wasm"), inline(always))]
unsafe fn tile<I: Isa, const R: usize, const V: usize, const PACKED: bool>(
    isa: I,
    a: Strip,
    b: Strip,
    depth: usize,
    place: Place,
) {
    for i in 0..R {
        // No touch: results come from farther away than what is packed, and stores wait for them by themselves.
        isa.prefetch(place.c.wrapping_add(i.min(place.rows - 1) * place.stride));
        if let Some(next) = place.next {
            // SAFETY: so many lines are readable.
            unsafe { isa.touch(next.as_ptr().add(i * LINE)) };
        }
    }
    // SAFETY: the caller's promise is passed on.
    let sums = unsafe { sums::<I, R, V, PACKED>(isa, a, b, depth) };
    if place.cols < V * I::LANES || place.rows < R {
        // A copy, so that the sums of whole tiles need not be in memory.
        let copy = sums;
        // SAFETY: these are the sums of the place's rows.
        return unsafe { store_part(isa, copy.as_flattened(), V, place) };
    }
    for (i, sums) in sums.into_iter().enumerate() {
        for (j, sum) in sums.into_iter().enumerate() {
            // SAFETY: these are columns of row `i` of the place.
            unsafe {
                let c = place.c.add(i * place.stride + j * I::LANES);
                let sum = if place.accumulate {
                    isa.add(isa.load_ptr(c), sum)
                } else {
                    sum
                };
                isa.store_ptr(sum, c);
            }
        }
    }
}

/// # Safety
/// As for [`tile`].
#[inline(always)]
unsafe fn sums<I: Isa, const R: usize, const V: usize, const PACKED: bool>(
    isa: I,
    mut a: Strip,
    mut b: Strip,
    depth: usize,
) -> [[I::F32; V]; R] {
    if PACKED {
        // Known, these spare an address for each row.
        (a.across, a.deep) = (1, R);
    }
    // Unpacked rows already take all the registers that there are for addresses; and engines of
    // WebAssembly keep fewer sums in registers where there is more than one step.
    let unroll = if PACKED && !cfg!(target_family = "wasm") {
        UNROLL
    } else {
        1
    };
    let mut sums = [[isa.splat(0.0); V]; R];
    let mut left = depth / unroll;
    while left > 0 {
        for p in 0..unroll {
            // SAFETY: within the depth of both strips, whose rows and vectors the caller vouches
            // for.
            unsafe { step(isa, a, b, p, &mut sums) };
        }
        a.values = advanced(a.values, unroll * a.deep);
        b.values = advanced(b.values, unroll * b.deep);
        left -= 1;
    }
    for p in 0..depth % unroll {
        // SAFETY: as above.
        unsafe { step(isa, a, b, p, &mut sums) };
    }
    sums
}

/// Returns the pointer to the element `count` further on.
///
/// For WebAssembly it goes through an integer. LLVM would otherwise give each load of the next step an addition for its
/// constant offset, and matmuls in Chromium took 8 to 19% longer.
#[inline(always)]
fn advanced(values: *const f32, count: usize) -> *const f32 {
    if cfg!(target_family = "wasm") {
        let address = values.expose_provenance();
        return std::ptr::with_exposed_provenance(address.wrapping_add(count * size_of::<f32>()));
    }
    values.wrapping_add(count)
}

/// Adds the products at depth `p`.
///
/// # Safety
/// As for [`tile`]. The strips must have values at depth `p`.
#[inline(always)]
unsafe fn step<I: Isa, const R: usize, const V: usize>(
    isa: I,
    a: Strip,
    b: Strip,
    p: usize,
    sums: &mut [[I::F32; V]; R],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let (a, a_across) = (a.values.add(p * a.deep), a.across);
        let (b, ahead) = (
            b.values.add(p * b.deep),
            // A single row may be said to lie any distance from the next.
            b.values.wrapping_add((p + AHEAD).wrapping_mul(b.deep)),
        );
        let mut columns = [isa.splat(0.0); V];
        for (j, column) in columns.iter_mut().enumerate() {
            if (j * I::LANES).is_multiple_of(LINE) {
                isa.prefetch(ahead.wrapping_add(j * I::LANES));
            }
            *column = isa.load_ptr(b.add(j * I::LANES));
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            let a = isa.splat(*a.add(i * a_across));
            for (sum, &column) in sums.iter_mut().zip(&columns) {
                *sum = isa.mul_add(a, column, *sum);
            }
        }
    }
}

/// Writes rows of `vectors` sums each to the tile's columns in `C`, or adds them to its elements.
///
/// # Safety
/// There must be sums for each row of the place, and its values numbers where they are
/// accumulated.
#[cfg_attr(target_family = "wasm", inline(never))]
#[cfg_attr(
    all(target_family = "wasm", not(target_feature = "simd128")),
    target_feature(enable = "simd128")
)]
#[cfg_attr(not(target_family = "wasm"), inline(always))]
unsafe fn store_part<I: Isa>(isa: I, sums: &[I::F32], vectors: usize, place: Place) {
    let rows = sums.chunks_exact(vectors).take(place.rows);
    for (i, sums) in rows.enumerate() {
        for (j, &sum) in sums.iter().enumerate() {
            let cols = I::LANES.min(place.cols - j * I::LANES);
            // SAFETY: these are columns of row `i` of the place.
            let c = unsafe {
                let c = place.c.add(i * place.stride + j * I::LANES);
                std::slice::from_raw_parts_mut(c, cols)
            };
            let sum = if place.accumulate {
                isa.add(isa.load_first(c, 0.0), sum)
            } else {
                sum
            };
            isa.store_first(sum, c);
        }
    }
}

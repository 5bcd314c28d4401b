//! A product block by block: panels of `B`, blocks of `A`, strips of both, tiles of `C`.

use std::ops::Range;
use std::ptr::NonNull;

use super::Matrix;
use super::pack;
use super::panel::{KC, PACK_STRIPS, Panel, Panels, Part};
use super::tile::{self, Place, Strip, VECTORS};
use crate::alloc::scratch::LINE;
use crate::error::Result;
use crate::simd::isa::{Isa, Kernel};

/// The number of rows of a block of `A`: `MC × KC` values take half of a second-level cache.
const MC: usize = 192;

/// A block of `C`: some rows of `A`, as deep as `k`, times some columns of `B`.
pub(super) struct Product<B> {
    pub(super) a: Matrix,
    pub(super) b: B,
    /// `C` with its rows `stride` apart.
    pub(super) c: *mut f32,
    pub(super) stride: usize,
    pub(super) k: usize,
    pub(super) rows: Range<usize>,
    pub(super) cols: Range<usize>,
    /// Whether the product is added to the elements of `C`.
    pub(super) accumulate: bool,
}

// SAFETY: operands are only read, and blocks that run at the same time do not overlap in `C`.
unsafe impl<B: Panels> Send for Product<B> {}

impl<B: Panels> Kernel for Product<B> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Result<()> {
        let (k, stride) = (self.k, self.stride);
        let (m, n) = (self.rows.len(), self.cols.len());
        let width = VECTORS * I::LANES;
        // SAFETY: the block lies within the matrices.
        let (a, c) = unsafe {
            (
                self.a.from(self.rows.start, 0),
                self.c.add(self.rows.start * stride + self.cols.start),
            )
        };
        // The tile reads rows of `A` that lie as they do untransposed. Rows that start one value
        // apart, as those of a view that overlaps itself, it would take for packed ones.
        let [across, deep] = [self.a.row, self.a.col];
        let in_place = deep == 1 && across != 1 && I::BROADCASTS_ROWS;
        let pack_a = !in_place || n > PACK_STRIPS * width;
        let rows = MC.min(m).next_multiple_of(I::TILE_STEP);
        let mut block = pack::room(if pack_a { rows } else { 0 }, KC.min(k))?;
        let mut room = self.b.room::<I>([m, k, n])?;
        for col in (0..n).step_by(B::PANEL_COLS) {
            for p in (0..k).step_by(KC) {
                let part = Part {
                    col: self.cols.start + col,
                    cols: B::PANEL_COLS.min(n - col),
                    p,
                    depth: KC.min(k - p),
                };
                // SAFETY: all of these lie within the matrices, by their lengths.
                unsafe {
                    let panel = self.b.panel(isa, part, &mut room);
                    for row in (0..m).step_by(MC) {
                        let place = Place {
                            c: c.add(row * stride + col),
                            stride,
                            rows: MC.min(m - row),
                            cols: part.cols,
                            accumulate: p > 0 || self.accumulate,
                            next: None,
                        };
                        isa.call(Block {
                            a: a.from(row, p),
                            scratch: pack_a.then_some(&mut block[..]),
                            panel: &panel,
                            place,
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

/// A block of `A`, packed to `scratch` if there is some, times a panel of `B`.
///
/// `a` has the rows of `place`, as deep as the panel, which has its columns; those are writable.
struct Block<'a> {
    a: Matrix,
    scratch: Option<&'a mut [f32]>,
    panel: &'a Panel<'a>,
    place: Place,
}

impl Kernel for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Block {
            a,
            mut scratch,
            panel,
            place,
        } = self;
        let (width, depth) = (VECTORS * I::LANES, panel.depth);
        for col in (0..place.cols).step_by(width) {
            let cols = width.min(place.cols - col);
            let b = panel.strip(col, cols.next_multiple_of(I::LANES));
            let next = panel.packed_from(col + width);
            let mut row = 0;
            while row < place.rows {
                let rows = height::<I>(place.rows - row);
                let height = rows.next_multiple_of(I::TILE_STEP);
                // SAFETY: rows and columns of the block and the panel.
                unsafe {
                    let a = a.from(row, 0);
                    let a = match &mut scratch {
                        Some(scratch) if col == 0 => {
                            pack::strip(isa, a, [rows, height], depth, &mut scratch[row * depth..])
                        }
                        Some(scratch) => Strip {
                            values: scratch[row * depth..].as_ptr(),
                            across: 1,
                            deep: height,
                        },
                        None => Strip {
                            values: a.values,
                            across: a.row,
                            deep: a.col,
                        },
                    };
                    let place = Place {
                        c: place.c.add(row * place.stride + col),
                        rows,
                        cols,
                        // A line for each row: all of the next strip, where there are as many
                        // rows as it is deep in lines.
                        next: next
                            .get(row * LINE..(row + height) * LINE)
                            .map(|lines| NonNull::from(lines).cast()),
                        ..place
                    };
                    tile::multiply(isa, a, b, depth, place);
                }
                row += rows;
            }
        }
    }
}

/// Returns the rows of the next tile, a multiple of the step unless it is the last. The last two
/// tiles share their rows, so that the last one is not too low.
#[inline(always)]
fn height<I: Isa>(rows: usize) -> usize {
    if rows > I::TILE_ROWS && rows < 2 * I::TILE_ROWS {
        rows.div_ceil(2).next_multiple_of(I::TILE_STEP)
    } else {
        rows.min(I::TILE_ROWS)
    }
}

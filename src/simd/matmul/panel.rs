//! Sources of the columns of `B`, panel by panel.

use super::Matrix;
use super::pack;
use super::tile::{Strip, VECTORS};
use crate::alloc::scratch::{LINE, Scratch};
use crate::error::Result;
use crate::simd::isa::Isa;

/// The depth of a panel. A strip of packed `B` stays in the first-level cache, and no accumulator adds
/// up more than this many products, which bounds the rounding error.
pub(super) const KC: usize = 256;

/// The number of columns of a panel of `B`.
const NC: usize = 2048;

/// The size of `B`, in elements, from which it is packed. A smaller one stays in the caches in any
/// layout.
const PACK_B_VALUES: usize = 128 * 128;

/// An operand is packed if each of its strips is multiplied by more than this number of strips of the other operand.
pub(super) const PACK_STRIPS: usize = 6;

/// A range of columns of `B`, and a range of their elements.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) col: usize,
    pub(super) cols: usize,
    pub(super) p: usize,
    pub(super) depth: usize,
}

/// An operand `B` that gives panels of its columns.
pub(super) trait Panels: Copy {
    /// The number of columns of a panel, a multiple of every strip's width.
    const PANEL_COLS: usize;
    /// The memory for one panel at a time, and state shared by all panels.
    type Room;

    /// Allocates the memory that panels of an `m × k` by `k × n` matmul need.
    fn room<I: Isa>(self, shape: [usize; 3]) -> Result<Self::Room>;

    /// The columns of a part as strips. A part starts at a multiple of [`KC`] and has that
    /// depth, unless `B` ends; it has at most `PANEL_COLS` columns.
    ///
    /// # Safety
    /// The part must lie within the matrix, and `room` be of a product at least so large.
    unsafe fn panel<'r, I: Isa>(self, isa: I, part: Part, room: &'r mut Self::Room) -> Panel<'r>
    where
        Self: 'r;
}

/// `B`, transposed, as it is in memory. Its columns are packed if they are read often enough, or if
/// the tile cannot read them in place.
#[derive(Clone, Copy)]
pub(super) struct Unpacked(pub(super) Matrix);

impl Panels for Unpacked {
    const PANEL_COLS: usize = NC;
    /// Whether all columns are packed, and the memory for them. Otherwise only the columns after the last full strip
    /// are packed.
    type Room = (bool, Scratch);

    #[inline(always)]
    fn room<I: Isa>(self, [m, k, n]: [usize; 3]) -> Result<(bool, Scratch)> {
        let width = VECTORS * I::LANES;
        let often = m > PACK_STRIPS * I::TILE_ROWS && k * n >= PACK_B_VALUES;
        let pack = self.0.row != 1 || often;
        let in_place = if pack { 0 } else { n / width * width };
        let packed_cols = NC.min(n - in_place).next_multiple_of(width);
        Ok((pack, pack::room(packed_cols, KC.min(k))?))
    }

    #[inline(always)]
    unsafe fn panel<'r, I: Isa>(
        self,
        isa: I,
        part: Part,
        (pack, scratch): &'r mut (bool, Scratch),
    ) -> Panel<'r>
    where
        Self: 'r,
    {
        let Part {
            col,
            cols,
            p,
            depth,
        } = part;
        // SAFETY: the part lies within the matrix.
        let b = unsafe { self.0.from(col, p) };
        let width = VECTORS * I::LANES;
        let in_place = if *pack { 0 } else { cols / width * width };
        let packed = &mut scratch[..];
        // A few rows of all strips at a time, so that each line of memory is read once.
        for p in (0..depth).step_by(LINE) {
            let rows = LINE.min(depth - p);
            for col in (in_place..cols).step_by(width) {
                let used = width.min(cols - col);
                let widths = [used, used.next_multiple_of(I::LANES)];
                let to = &mut packed[(col - in_place) * depth + p * widths[1]..];
                // SAFETY: these rows and columns are the part's.
                unsafe { pack::strip(isa, b.from(col, p), widths, rows, to) };
            }
        }
        Panel {
            b,
            depth,
            in_place,
            packed,
        }
    }
}

/// A `B` that is not stored as a matrix: its columns are computed strip by strip, again for each panel.
pub(super) trait Strips: Copy {
    /// Writes the columns of a part as rows of `wide` values, in whole vectors. The values after the columns are zero.
    fn strip<I: Isa>(self, isa: I, part: Part, wide: usize, to: &mut [f32]);
}

/// The number of columns of a panel that is made: it takes a quarter of a second-level cache.
pub(super) const MADE_COLS: usize = 256;

impl<S: Strips> Panels for S {
    const PANEL_COLS: usize = MADE_COLS;
    type Room = Scratch;

    #[inline(always)]
    fn room<I: Isa>(self, [_, k, n]: [usize; 3]) -> Result<Scratch> {
        let width = VECTORS * I::LANES;
        pack::room(MADE_COLS.min(n.next_multiple_of(width)), KC.min(k))
    }

    #[inline(always)]
    unsafe fn panel<'r, I: Isa>(self, isa: I, part: Part, room: &'r mut Scratch) -> Panel<'r>
    where
        Self: 'r,
    {
        let Part { col, cols, .. } = part;
        let depth = part.depth;
        let width = VECTORS * I::LANES;
        let packed = &mut room[..];
        for start in (0..cols).step_by(width) {
            let cols = width.min(cols - start);
            let wide = cols.next_multiple_of(I::LANES);
            let col = col + start;
            let to = &mut packed[start * depth..][..wide * depth];
            self.strip(isa, Part { col, cols, ..part }, wide, to);
        }
        Panel {
            b: Matrix::NONE,
            depth,
            in_place: 0,
            packed,
        }
    }
}

/// Panels of `B` as strips: the first in place, the rest packed.
pub(super) struct Panel<'a> {
    /// The strips that are read in place.
    pub(super) b: Matrix,
    pub(super) depth: usize,
    pub(super) in_place: usize,
    pub(super) packed: &'a [f32],
}

impl Panel<'_> {
    /// Returns the packed strips from a column on.
    #[inline(always)]
    pub(super) fn packed_from(&self, col: usize) -> &[f32] {
        let place = col.checked_sub(self.in_place);
        let packed = place.and_then(|place| self.packed.get(place * self.depth..));
        packed.unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn strip(&self, col: usize, width: usize) -> Strip {
        if col < self.in_place {
            Strip {
                // SAFETY: within the columns that the panel was promised to have.
                values: unsafe { self.b.at(col, 0) },
                across: 1,
                deep: self.b.col,
            }
        } else {
            Strip {
                values: self.packed[(col - self.in_place) * self.depth..].as_ptr(),
                across: 1,
                deep: width,
            }
        }
    }
}

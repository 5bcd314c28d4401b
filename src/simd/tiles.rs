//! Reduction of each tile of a view to one value by a user's function.
//!
//! Everything is a loop over two slices of one length. The compiler turns it into vector instructions, so a user's
//! function that handles one number at a time is vectorised, too. Only these loops are compiled for each function, in
//! [`Band`].

use std::marker::PhantomData;

use super::InstructionSet;
use super::isa::{Isa, Kernel, dispatch};
use super::threads::{Cpu, share_out};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::ops::OpClass;
use crate::ops::Reduction;
use crate::ops::reduce_op::{Partials, ReduceOp, ReductionText, check_laws};
use crate::tensor::{BoundView, PartitionView, Plane, TensorView, for_each_plane};

/// The number of rows of a block, which are combined row by row. The columns of the result are then combined by halves,
/// so no value goes through more than `ROWS + log₂ COLS` roundings in a block.
const ROWS: usize = 16;
/// The largest number of columns of a block.
const COLS: usize = 1024;

/// A [`ReduceOp`] as constants and functions.
#[derive(Clone, Copy)]
pub(crate) struct Fold {
    pub(crate) identity: f32,
    /// `None` if it runs on SIMD alone.
    pub(crate) wgsl: Option<ReductionText>,
    combine: fn(f32, f32) -> f32,
    /// Folds elements, or results if this is the fold of those.
    band: fn(InstructionSet, Band<'_>),
    /// Folds results.
    again: fn(InstructionSet, Band<'_>),
}

impl Fold {
    /// Returns the fold of a reduction.
    ///
    /// # Errors
    /// `InvalidArgument` if the reduction breaks a law of [`ReduceOp`].
    pub(crate) fn of<O: ReduceOp>() -> Result<Self> {
        check_laws::<O>()?;
        Ok(Self::unchecked::<O>())
    }

    fn unchecked<O: ReduceOp>() -> Self {
        Self {
            identity: O::identity(),
            wgsl: ReductionText::of::<O>(),
            combine: O::combine,
            band: |isa, band| dispatch(isa, FoldBand::<O, true>(band, PhantomData)),
            again: |isa, band| dispatch(isa, FoldBand::<O, false>(band, PhantomData)),
        }
    }

    /// Returns the fold that combines results of this fold. It does not map them again.
    pub(crate) fn of_results(&self) -> Self {
        Self {
            band: self.again,
            ..*self
        }
    }

    /// Folds each tile of a view's values. `tiles` must be of the same view.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn tiles(
        &self,
        cpu: Cpu,
        values: &BoundView<'_>,
        tiles: &PartitionView,
    ) -> Result<Partials> {
        let mut folded = try_zeros(tiles.total_tiles())?;
        self.tiles_into(cpu, values, tiles, &mut folded)?;
        Ok(Partials {
            values: folded,
            tile_count: tiles.tile_count(),
        })
    }

    /// Folds each tile of a view's values like [`Fold::tiles`] into one of `out`.
    fn tiles_into(
        &self,
        cpu: Cpu,
        values: &BoundView<'_>,
        tiles: &PartitionView,
        out: &mut [f32],
    ) -> Result<()> {
        debug_assert_eq!(values.view(), tiles.tensor());
        let pieces = cpu.split(values.view().numel() as u64, OpClass::Reduction);
        share_out(pieces, 1, out, |first, out| {
            let isa = cpu.isa;
            self.some_tiles(isa, values, tiles, first, out);
            Ok(())
        })
    }

    /// Folds tiles from `index` on, in the order of their numbers.
    fn some_tiles(
        &self,
        isa: InstructionSet,
        values: &BoundView<'_>,
        tiles: &PartitionView,
        mut index: usize,
        mut out: &mut [f32],
    ) {
        let data = values.data();
        let matrix = values.plane();
        let matrix = matrix.and_then(|plane| SmallTiles::new(plane, tiles.tile_shape()));
        let columns = &mut [0.0; COLS];
        while !out.is_empty() {
            let folded = if let Some(matrix) = &matrix {
                let (plane, tile_cols, count) = matrix.part(index, out.len());
                (self.band)(
                    isa,
                    Band {
                        data,
                        plane,
                        tile_cols,
                        columns,
                        out: &mut out[..count],
                    },
                );
                count
            } else {
                let tile = tiles.nth_tile(index);
                let mut pairs = Pairs::new();
                for_each_plane(values.view(), tile.start, tile.size, |plane| {
                    self.blocks(isa, data, plane, columns, &mut pairs);
                });
                out[0] = pairs.fold(self.combine).unwrap_or(self.identity);
                1
            };
            index += folded;
            out = &mut out[folded..];
        }
    }

    /// Folds each block of a plane.
    fn blocks(
        &self,
        isa: InstructionSet,
        data: &[f32],
        plane: Plane,
        columns: &mut [f32; COLS],
        pairs: &mut Pairs,
    ) {
        for row in (0..plane.rows).step_by(ROWS) {
            for col in (0..plane.cols).step_by(COLS) {
                let block = Plane {
                    offset: plane.offset + row * plane.row_stride + col * plane.col_stride,
                    rows: ROWS.min(plane.rows - row),
                    cols: COLS.min(plane.cols - col),
                    ..plane
                };
                let mut value = [0.0];
                (self.band)(
                    isa,
                    Band {
                        data,
                        plane: block,
                        tile_cols: block.cols,
                        columns,
                        out: &mut value,
                    },
                );
                pairs.push(value[0], self.combine);
            }
        }
    }
}

impl Reduction {
    /// Returns a reduction as an operation of graphs needs it.
    ///
    /// # Errors
    /// `InvalidArgument` if it breaks a law of [`ReduceOp`].
    pub(crate) fn of<O: ReduceOp>() -> Result<Self> {
        check_laws::<O>()?;
        let name = std::any::type_name::<O>();
        Ok(Self {
            // Types with parameters have paths in their names, too.
            name: match name.rsplit_once("::") {
                Some((_, short)) if !name.contains('<') => short,
                _ => name,
            },
            identity: O::identity(),
            wgsl: ReductionText::of::<O>(),
            elements: |cpu, data, shape, tile, out| {
                fold_matrix(&Fold::unchecked::<O>(), cpu, data, (shape, tile), out)
            },
            results: |cpu, data, shape, tile, out| {
                let fold = Fold::unchecked::<O>().of_results();
                fold_matrix(&fold, cpu, data, (shape, tile), out)
            },
        })
    }
}

/// Folds each tile of a row-major matrix.
fn fold_matrix(
    fold: &Fold,
    (isa, threads): (InstructionSet, usize),
    data: &[f32],
    ([rows, cols], [tile_rows, tile_cols]): ([usize; 2], [usize; 2]),
    out: &mut [f32],
) -> Result<()> {
    let matrix = TensorView::new_2d(rows, cols)?;
    let tiles = PartitionView::new_2d(matrix, tile_rows, tile_cols)?;
    fold.tiles_into(Cpu { isa, threads }, &matrix.bind(data)?, &tiles, out)
}

/// A matrix with any strides, cut into tiles of at most [`ROWS`] × [`COLS`] elements.
struct SmallTiles {
    matrix: Plane,
    tile_rows: usize,
    tile_cols: usize,
    /// The number of tiles side by side.
    across: usize,
    /// Whether tiles that are side by side are folded together.
    in_bands: bool,
}

impl SmallTiles {
    /// Returns `None` if the tiles are larger.
    fn new(mut matrix: Plane, [mut tile_rows, mut tile_cols, ..]: [usize; 4]) -> Option<Self> {
        // Whole rows without gaps between them lie side by side in one row of all values, where those of
        // few columns need not be folded one by one.
        if tile_cols >= matrix.cols && matrix.is_gapless() {
            tile_cols = tile_rows.min(matrix.rows) * matrix.cols;
            tile_rows = 1;
            matrix = Plane {
                offset: matrix.offset,
                ..Plane::row_major(1, matrix.rows * matrix.cols)
            };
        }
        let tile = Plane {
            rows: tile_rows.min(matrix.rows),
            cols: tile_cols.min(matrix.cols),
            ..matrix
        };
        let in_bands = matrix.col_stride == 1 && tile.rows <= ROWS;
        let tile = if in_bands { tile } else { tile.along_memory() };
        (tile.rows <= ROWS && tile.cols <= COLS).then(|| Self {
            matrix,
            tile_rows,
            tile_cols,
            across: matrix.cols.div_ceil(tile_cols),
            in_bands,
        })
    }

    /// Returns at most `most` tiles of one row of tiles, from `index` on: the matrix of them all, the number of
    /// columns of a tile, and the number of tiles.
    fn part(&self, index: usize, most: usize) -> (Plane, usize, usize) {
        let matrix = self.matrix;
        let (row, col) = (index / self.across, index % self.across);
        let mut tiles = 1;
        if self.in_bands {
            let fit = (COLS / self.tile_cols).clamp(1, most);
            tiles = fit.min(self.across - col);
        }
        let (row, col) = (row * self.tile_rows, col * self.tile_cols);
        let part = Plane {
            offset: matrix.offset + row * matrix.row_stride + col * matrix.col_stride,
            rows: self.tile_rows.min(matrix.rows - row),
            cols: (tiles * self.tile_cols).min(matrix.cols - col),
            ..matrix
        };
        if self.in_bands {
            (part, self.tile_cols, tiles)
        } else {
            let part = part.along_memory();
            (part, part.cols, tiles)
        }
    }
}

/// Results of blocks, combined like with like: `folded[i]` is of 2ⁱ blocks if bit `i` of `count`
/// is set.
struct Pairs {
    folded: [f32; usize::BITS as usize],
    count: usize,
}

impl Pairs {
    fn new() -> Self {
        Self {
            folded: [0.0; usize::BITS as usize],
            count: 0,
        }
    }

    fn push(&mut self, mut value: f32, combine: fn(f32, f32) -> f32) {
        let mut level = 0;
        while self.count >> level & 1 == 1 {
            value = combine(self.folded[level], value);
            level += 1;
        }
        self.folded[level] = value;
        self.count += 1;
    }

    /// Returns `None` if nothing was pushed.
    fn fold(self, combine: fn(f32, f32) -> f32) -> Option<f32> {
        let levels = self.folded.iter().enumerate();
        let some = levels.filter(|(level, _)| self.count >> level & 1 == 1);
        some.map(|(_, &value)| value).reduce(|a, b| combine(b, a))
    }
}

/// Tiles of `tile_cols` columns that lie side by side and have at least one row and at most [`ROWS`]; only the last
/// may have fewer columns. There is a result for each.
struct Band<'a> {
    data: &'a [f32],
    plane: Plane,
    tile_cols: usize,
    /// Room for the columns' results.
    columns: &'a mut [f32; COLS],
    out: &'a mut [f32],
}

/// The fold of a band; of elements if `MAPS`, else of results.
struct FoldBand<'a, O, const MAPS: bool>(Band<'a>, PhantomData<O>);

impl<O: ReduceOp, const MAPS: bool> Kernel for FoldBand<'_, O, MAPS> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        let Band {
            data,
            plane,
            tile_cols,
            columns,
            out,
        } = self.0;
        let columns = &mut columns[..plane.cols];
        fold_columns::<O, MAPS>(data, plane, columns);
        for (tile, out) in columns.chunks_mut(tile_cols).zip(out) {
            *out = fold_halves::<O>(tile);
        }
    }
}

/// Folds each column of a block that has at least one row.
#[inline(always)]
fn fold_columns<O: ReduceOp, const MAPS: bool>(data: &[f32], block: Plane, columns: &mut [f32]) {
    let mapped = |value: f32| match O::MAP {
        Some(map) if MAPS => (map.function)(value),
        _ => value,
    };
    for row in 0..block.rows {
        let start = block.offset + row * block.row_stride;
        if block.col_stride != 1 {
            for (col, column) in columns.iter_mut().enumerate() {
                let value = mapped(data[start + col * block.col_stride]);
                *column = if row == 0 {
                    value
                } else {
                    O::combine(*column, value)
                };
            }
            continue;
        }
        let values = &data[start..start + block.cols];
        if row == 0 {
            for (column, &value) in columns.iter_mut().zip(values) {
                *column = mapped(value);
            }
        } else {
            for (column, &value) in columns.iter_mut().zip(values) {
                *column = O::combine(*column, mapped(value));
            }
        }
    }
}

/// Folds at least one value, the second half onto the first until one is left.
#[inline(always)]
fn fold_halves<O: ReduceOp>(values: &mut [f32]) -> f32 {
    let mut len = values.len();
    while len > 1 {
        let half = len.div_ceil(2);
        let (low, high) = values[..len].split_at_mut(half);
        for (low, &high) in low.iter_mut().zip(&*high) {
            *low = O::combine(*low, high);
        }
        len = half;
    }
    values[0]
}

//! Tiles of a view to one value each, by a function of the caller's.
//!
//! Values gather in an array of lanes, which becomes vector registers of whatever instruction
//! set the kernel is compiled for; so a function that knows nothing of vectors gains by them.

use std::marker::PhantomData;

use super::isa::{Isa, Kernel, MAX_LANES, dispatch};
use super::threads::{Cpu, share_out};
use crate::error::{Result, try_zeros};
use crate::ops::OpClass;
use crate::reduce::{Partials, ReduceOp};
use crate::views::{BoundView, PartitionView, Plane, for_each_plane};

/// Values that gather in [`MAX_LANES`] lanes before they count as one: the longest chain of
/// roundings is that of one lane here, plus those of pairing.
const BLOCK: usize = 256;

/// Rows of a block, where there are so many.
const BLOCK_ROWS: usize = 16;

/// Folds each tile of a view's values. `tiles` must be of the same view.
///
/// # Errors
/// `OutOfMemory`.
pub(crate) fn fold_tiles<O: ReduceOp>(
    cpu: Cpu,
    values: &BoundView<'_>,
    tiles: &PartitionView,
) -> Result<Partials> {
    debug_assert_eq!(values.view(), tiles.tensor());
    let mut folded = try_zeros(tiles.total_tiles())?;
    let pieces = cpu.split(values.view().numel() as u64, OpClass::Reduction);
    share_out(pieces, 1, &mut folded, |first, out| {
        let op = PhantomData::<fn() -> O>;
        let kernel = FoldTiles {
            values,
            tiles,
            first,
            out,
            op,
        };
        dispatch(cpu.isa, kernel);
        Ok(())
    })?;
    Ok(Partials {
        values: folded,
        tile_count: tiles.tile_count(),
    })
}

/// Tiles from `first` on, in the order of their numbers.
struct FoldTiles<'a, O> {
    values: &'a BoundView<'a>,
    tiles: &'a PartitionView,
    first: usize,
    out: &'a mut [f32],
    op: PhantomData<fn() -> O>,
}

impl<O: ReduceOp> Kernel for FoldTiles<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        for (index, out) in (self.first..).zip(self.out) {
            let tile = self.tiles.nth_tile(index);
            let mut pairs = Pairs::<O>::new();
            for_each_plane(self.values.view(), tile.start, tile.size, |plane| {
                fold_plane::<O>(self.values.data(), plane, &mut pairs);
            });
            *out = pairs.fold();
        }
    }
}

/// Results of blocks, combined like with like: `folded[i]` is of 2ⁱ blocks if bit `i` of `count`
/// is set.
struct Pairs<O> {
    folded: [f32; usize::BITS as usize],
    count: usize,
    op: PhantomData<O>,
}

impl<O: ReduceOp> Pairs<O> {
    #[inline(always)]
    fn new() -> Self {
        Self {
            folded: [0.0; usize::BITS as usize],
            count: 0,
            op: PhantomData,
        }
    }

    #[inline(always)]
    fn push(&mut self, mut value: f32) {
        let mut level = 0;
        while self.count >> level & 1 == 1 {
            value = O::combine(self.folded[level], value);
            level += 1;
        }
        self.folded[level] = value;
        self.count += 1;
    }

    #[inline(always)]
    fn fold(self) -> f32 {
        let levels = self.folded.iter().enumerate();
        let some = levels.filter(|(level, _)| self.count >> level & 1 == 1);
        let all = some
            .map(|(_, &value)| value)
            .reduce(|a, b| O::combine(b, a));
        all.unwrap_or_else(O::identity)
    }
}

#[inline(always)]
fn fold_plane<O: ReduceOp>(data: &[f32], plane: Plane, pairs: &mut Pairs<O>) {
    let rows = plane.rows.min(BLOCK_ROWS);
    let cols = (BLOCK / rows).next_multiple_of(MAX_LANES);
    for row in (0..plane.rows).step_by(rows) {
        for col in (0..plane.cols).step_by(cols) {
            let block = Plane {
                offset: plane.offset + row * plane.row_stride + col * plane.col_stride,
                rows: rows.min(plane.rows - row),
                cols: cols.min(plane.cols - col),
                ..plane
            };
            pairs.push(fold_block::<O>(data, block));
        }
    }
}

#[inline(always)]
fn fold_block<O: ReduceOp>(data: &[f32], block: Plane) -> f32 {
    let mut lanes = [O::identity(); MAX_LANES];
    for row in 0..block.rows {
        let start = block.offset + row * block.row_stride;
        if block.col_stride == 1 {
            let (whole, rest) = data[start..start + block.cols].as_chunks::<MAX_LANES>();
            for values in whole {
                for (lane, &value) in lanes.iter_mut().zip(values) {
                    *lane = O::combine(*lane, value);
                }
            }
            for (lane, &value) in lanes.iter_mut().zip(rest) {
                *lane = O::combine(*lane, value);
            }
        } else {
            for col in 0..block.cols {
                let lane = &mut lanes[col % MAX_LANES];
                *lane = O::combine(*lane, data[start + col * block.col_stride]);
            }
        }
    }
    let mut width = MAX_LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = O::combine(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

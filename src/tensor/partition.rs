//! [`PartitionView`]: a view cut into tiles.

use crate::error::{Error, Result};
use crate::ops::shape::check_limit;
use crate::tensor::{LAST_DIM, TensorView};

/// A view cut into tiles of one shape. Tiles at the ends of dimensions may be smaller.
///
/// ```
/// use relampago::{PartitionView, SumOp, TensorView};
///
/// let values = vec![1.0; 20 * 20];
/// let tiles = PartitionView::new_2d(TensorView::new_2d(20, 20)?, 16, 16)?;
/// assert_eq!(tiles.tile_count(), [2, 2, 1, 1]);
/// let sums = tiles.reduce::<SumOp>(&values)?;
/// assert_eq!(sums.values, [256.0, 64.0, 64.0, 16.0]);
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct PartitionView<T = f32> {
    tensor: TensorView<T>,
    tile_shape: [usize; 4],
}

/// The part of a view that a tile covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TileInfo {
    /// The tile's index in each dimension.
    pub tile_idx: [usize; 4],
    /// The indices of the tile's first element.
    pub start: [usize; 4],
    /// The tile's length in each dimension.
    pub size: [usize; 4],
    /// Whether the tile is smaller than the others because the view ends.
    pub is_edge: bool,
}

impl<T> Clone for PartitionView<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PartitionView<T> {}

impl<T> PartitionView<T> {
    /// Cuts a view into tiles.
    ///
    /// # Errors
    /// `InvalidArgument` if a tile has length 0 in any dimension.
    pub fn new(tensor: TensorView<T>, tile_shape: [usize; 4]) -> Result<Self> {
        if tile_shape.contains(&0) {
            let value = format!("{tile_shape:?}");
            return Err(Error::invalid(
                "tile_shape",
                value,
                "at least 1 in each dimension",
            ));
        }
        Ok(Self { tensor, tile_shape })
    }

    /// Cuts a view into tiles of `tile_rows` by `tile_cols`.
    pub fn new_2d(tensor: TensorView<T>, tile_rows: usize, tile_cols: usize) -> Result<Self> {
        Self::new(tensor, [tile_rows, tile_cols, 1, 1])
    }

    /// Cuts a view into tiles whose lengths are powers of two with these exponents.
    ///
    /// # Errors
    /// `LimitExceeded` if a length exceeds `usize`.
    pub fn new_power_of_two(tensor: TensorView<T>, tile_log2: [usize; 4]) -> Result<Self> {
        let largest = usize::BITS as usize - 1;
        for power in tile_log2 {
            check_limit("the power of two of a tile's length", power, largest)?;
        }
        Self::new(tensor, tile_log2.map(|power| 1 << power))
    }

    /// Returns the view that is cut.
    pub fn tensor(&self) -> &TensorView<T> {
        &self.tensor
    }

    /// Returns the shape of a tile that is not at an edge.
    pub fn tile_shape(&self) -> [usize; 4] {
        self.tile_shape
    }

    /// Returns the number of tiles along each dimension.
    pub fn tile_count(&self) -> [usize; 4] {
        let mut count = self.tensor.shape();
        for (len, tile) in count.iter_mut().zip(self.tile_shape) {
            *len = len.div_ceil(tile);
        }
        count
    }

    /// Returns the total number of tiles; 0 for an empty view.
    pub fn total_tiles(&self) -> usize {
        if self.tensor.is_empty() {
            return 0;
        }
        self.tile_count().iter().product()
    }

    /// Returns the number of elements in a tile that is not at an edge, saturating.
    pub fn elements_per_tile(&self) -> usize {
        self.tile_shape
            .iter()
            .fold(1, |n: usize, &len| n.saturating_mul(len))
    }

    /// Returns whether all lengths of a tile are powers of two.
    pub fn is_power_of_two_tiles(&self) -> bool {
        self.tile_shape.iter().all(|len| len.is_power_of_two())
    }

    /// Returns the tile at this index; `None` if it is out of range.
    pub fn get_tile(&self, tile_idx: [usize; 4]) -> Option<TileInfo> {
        let count = self.tile_count();
        let exists = tile_idx.iter().zip(&count).all(|(i, count)| i < count);
        (exists && !self.tensor.is_empty()).then(|| self.tile(tile_idx))
    }

    /// Returns the view of the tile at this index.
    ///
    /// # Errors
    /// `InvalidArgument` if the index is out of range, or if the data is stored in tiles that this
    /// tile is not aligned to.
    pub fn get_tile_view(&self, tile_idx: [usize; 4]) -> Result<TensorView<T>> {
        let counts = self.tile_count();
        for (index, count) in tile_idx.into_iter().zip(counts) {
            if index >= count {
                let requirement = format!("below {counts:?}, the number of tiles");
                return Err(Error::invalid(
                    "tile_idx",
                    format!("{tile_idx:?}"),
                    requirement,
                ));
            }
        }
        let TileInfo { start, size, .. } = self.tile(tile_idx);
        (0..=LAST_DIM).try_fold(self.tensor, |view, dim| {
            view.slice_dim(dim, start[dim]..start[dim] + size[dim])
        })
    }

    /// Iterates over all tiles, the last dimension varying fastest.
    pub fn iter_tiles(&self) -> impl ExactSizeIterator<Item = TileInfo> {
        let partition = *self;
        (0..self.total_tiles()).map(move |index| partition.nth_tile(index))
    }

    /// Returns the tile at this position in the order of [`PartitionView::iter_tiles`].
    #[inline]
    pub(crate) fn nth_tile(&self, mut index: usize) -> TileInfo {
        let count = self.tile_count();
        let mut tile_idx = [0; 4];
        for dim in (0..=LAST_DIM).rev() {
            // Most partitions have one tile along most dimensions.
            if count[dim] > 1 {
                tile_idx[dim] = index % count[dim];
                index /= count[dim];
            }
        }
        self.tile(tile_idx)
    }

    /// Returns the tile at an index that is in range.
    #[inline]
    fn tile(&self, tile_idx: [usize; 4]) -> TileInfo {
        let (mut start, mut size) = ([0; 4], [0; 4]);
        for dim in 0..=LAST_DIM {
            start[dim] = tile_idx[dim] * self.tile_shape[dim];
            size[dim] = self.tile_shape[dim].min(self.tensor.shape[dim] - start[dim]);
        }
        TileInfo {
            tile_idx,
            start,
            size,
            is_edge: size != self.tile_shape,
        }
    }
}

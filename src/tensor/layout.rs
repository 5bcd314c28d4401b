//! Memory layouts and their strides.

use crate::error::{Error, Result};

/// The order of elements in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryLayout {
    /// The last dimension varies fastest, as in C.
    #[default]
    RowMajor,
    /// The first dimension varies fastest, as in Fortran.
    ColumnMajor,
    /// A matrix in tiles, stored one after the other in row-major order; the elements of a tile are
    /// row-major, too. Tiles at the edges have their full size and contain elements outside the
    /// view.
    Tiled {
        /// Rows and columns of a tile, each at least 1.
        tile_size: [usize; 2],
    },
}

/// The tiles of a matrix that is stored in tiles: the view's strides hold within a tile, these
/// strides from one tile to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tiling {
    pub(super) size: [usize; 2],
    pub(super) strides: [usize; 2],
}

/// Returns row-major strides. They saturate for shapes that `checked` refuses or that are empty.
pub(super) fn row_major([_, d1, d2, d3]: [usize; 4]) -> [usize; 4] {
    let plane = d2.saturating_mul(d3);
    [d1.saturating_mul(plane), plane, d3, 1]
}

pub(super) fn column_major([d0, d1, d2, _]: [usize; 4]) -> [usize; 4] {
    let plane = d0.saturating_mul(d1);
    [1, d0, plane, plane.saturating_mul(d2)]
}

pub(super) fn tiled(shape: [usize; 4], tile_size: [usize; 2]) -> Result<([usize; 4], Tiling)> {
    let [rows, cols] = tile_size;
    if rows == 0 || cols == 0 {
        let value = format!("{rows}×{cols}");
        return Err(Error::invalid("tile_size", value, "at least 1×1"));
    }
    if shape[2..] != [1, 1] {
        let value = format!("{shape:?}");
        return Err(Error::invalid(
            "shape",
            value,
            "of two dimensions to be tiled",
        ));
    }
    let tile = rows.saturating_mul(cols);
    let down = tile.saturating_mul(shape[1].div_ceil(cols));
    let tiling = Tiling {
        size: tile_size,
        strides: [down, tile],
    };
    Ok(([cols, 1, 1, 1], tiling))
}

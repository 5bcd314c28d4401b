//! Views: shapes with strides and an offset over data of one dimension.
//!
//! A [`TensorView`] is a shape of up to four dimensions with strides and an offset. Slicing,
//! transposing and tiling return another view of the same data and copy nothing.
//! [`TensorView::bind`] ties a view to a slice and checks once that it stays within. Matmuls
//! ([`crate::GpuDevice::matmul_view_async`]) and reductions ([`BoundView::reduce`],
//! [`PartitionView::reduce`]) read the data in place.

// The files:
//
// - `bound` ties a shape to a slice and checks its bounds once, `planes` cuts a view into the parts that kernels read,
//   `partition` cuts it into tiles.
// - `quantized` has weights of few bits.

mod bound;
#[cfg_attr(not(feature = "llm-core"), allow(dead_code, unreachable_pub))]
pub(crate) mod cache_type;
#[cfg(feature = "llm-core")]
pub(crate) mod ggml;
mod layout;
mod partition;
mod planes;
pub(crate) mod quantized;

use std::marker::PhantomData;
use std::ops::Range;

pub use bound::BoundView;
pub(crate) use cache_type::CacheType;
pub use layout::MemoryLayout;
pub use partition::{PartitionView, TileInfo};
pub(crate) use planes::{Plane, for_each_plane};

use crate::error::{Error, MAX_LEN, Result};
use crate::ops::shape::{check_len, check_limit, volume};
use layout::{Tiling, column_major, row_major, tiled};

/// The index of a view's last dimension.
const LAST_DIM: usize = 3;

/// A shape of four dimensions (unused ones are 1) with strides and an offset. A view holds no data.
///
/// The element at `[i, j, k, l]` has the index `offset + i·strides[0] + j·strides[1] + …` in the data. A view has at
/// most as many elements as a slice, and reaches at most as far; a constructor that exceeds this returns
/// `ShapeOverflow` or `InvalidArgument`.
///
/// ```
/// use relampago::TensorView;
///
/// let matrix = TensorView::<f32>::new_2d(3, 4)?;
/// let columns = matrix.transpose(0, 1)?.slice(1..3)?; // columns 1 and 2 as rows
/// assert_eq!(columns.shape(), [2, 3, 1, 1]);
/// let values: Vec<f32> = (0..12).map(|i| i as f32).collect();
/// assert_eq!(*columns.bind(&values)?.contiguous()?, [1.0, 5.0, 9.0, 2.0, 6.0, 10.0]);
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct TensorView<T = f32> {
    shape: [usize; 4],
    strides: [usize; 4],
    offset: usize,
    tiling: Option<Tiling>,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for TensorView<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TensorView<T> {}

impl<T> TensorView<T> {
    /// Creates a row-major view of this shape with offset 0.
    pub fn new(shape: [usize; 4]) -> Result<Self> {
        Self::with_strides(shape, row_major(shape))
    }

    /// Creates a view of this shape with these strides, in elements. A stride of 0 repeats
    /// elements.
    pub fn with_strides(shape: [usize; 4], strides: [usize; 4]) -> Result<Self> {
        let view = Self {
            shape,
            strides,
            offset: 0,
            tiling: None,
            element: PhantomData,
        };
        view.checked()
    }

    /// Creates a view of a vector.
    pub fn new_1d(len: usize) -> Result<Self> {
        Self::new([len, 1, 1, 1])
    }

    /// Creates a view of a row-major matrix.
    pub fn new_2d(rows: usize, cols: usize) -> Result<Self> {
        Self::new([rows, cols, 1, 1])
    }

    /// Creates a row-major view of three dimensions.
    pub fn new_3d(d0: usize, d1: usize, d2: usize) -> Result<Self> {
        Self::new([d0, d1, d2, 1])
    }

    /// Creates a row-major view of four dimensions.
    pub fn new_4d(d0: usize, d1: usize, d2: usize, d3: usize) -> Result<Self> {
        Self::new([d0, d1, d2, d3])
    }

    /// Returns a view of the same shape and offset over data in this layout.
    ///
    /// # Errors
    /// `InvalidArgument` for tiles without rows or columns, or for tiles of a view with more than
    /// two dimensions.
    pub fn with_layout(self, layout: MemoryLayout) -> Result<Self> {
        let shape = self.shape;
        let (strides, tiling) = match layout {
            MemoryLayout::RowMajor => (row_major(shape), None),
            MemoryLayout::ColumnMajor => (column_major(shape), None),
            MemoryLayout::Tiled { tile_size } => {
                let (strides, tiling) = tiled(shape, tile_size)?;
                (strides, Some(tiling))
            }
        };
        let view = Self {
            strides,
            tiling,
            ..self
        };
        view.checked()
    }

    /// Returns this view with its first element `offset` elements further on.
    pub fn with_offset(self, offset: usize) -> Result<Self> {
        Self { offset, ..self }.checked()
    }

    /// Returns the lengths of the dimensions.
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Returns the distance between neighbouring elements in each dimension, in elements; in a
    /// tiled layout, the distance within a tile.
    pub fn strides(&self) -> [usize; 4] {
        self.strides
    }

    /// Returns the index of the first element in the data.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the layout, if the elements are stored without gaps; `None` otherwise, for example
    /// after slicing.
    pub fn layout(&self) -> Option<MemoryLayout> {
        if let Some(tiling) = self.tiling {
            let whole = tiled(self.shape, tiling.size).ok();
            let same = whole == Some((self.strides, tiling));
            let tile_size = tiling.size;
            return same.then_some(MemoryLayout::Tiled { tile_size });
        }
        if self.has_strides(row_major(self.shape)) {
            return Some(MemoryLayout::RowMajor);
        }
        let column_major = self.has_strides(column_major(self.shape));
        column_major.then_some(MemoryLayout::ColumnMajor)
    }

    /// Returns the number of dimensions up to the last that is not 1, at least 1.
    pub fn ndim(&self) -> usize {
        let used = self.shape.iter().rposition(|&len| len != 1);
        used.map_or(1, |last| last + 1)
    }

    /// Returns the number of elements.
    pub fn numel(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.shape.iter().product()
    }

    /// Returns whether the view has no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Returns whether the elements are row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.layout() == Some(MemoryLayout::RowMajor)
    }

    /// Returns the least length of the data that this view can be bound to.
    pub fn reach(&self) -> usize {
        let last = self.shape.map(|len| len.saturating_sub(1));
        self.linear_index(last).map_or(0, |index| index + 1)
    }

    /// Returns the index in the data of the element at these indices; `None` outside the shape.
    pub fn linear_index(&self, indices: [usize; 4]) -> Option<usize> {
        let within = indices.iter().zip(&self.shape).all(|(i, len)| i < len);
        within.then(|| self.index_of(indices))
    }

    /// Returns a range of the first dimension, such as rows of a matrix.
    pub fn slice(&self, range: Range<usize>) -> Result<Self> {
        self.slice_dim(0, range)
    }

    /// Returns a range of a dimension.
    ///
    /// # Errors
    /// `LimitExceeded` if the dimension or the range is out of bounds, `InvalidArgument` if the
    /// range ends before it starts or starts within a tile of a tiled layout.
    pub fn slice_dim(&self, dim: usize, range: Range<usize>) -> Result<Self> {
        check_limit("the dimension", dim, LAST_DIM)?;
        check_limit("the end of the range", range.end, self.shape[dim])?;
        if range.start > range.end {
            let value = format!("{}..{}", range.start, range.end);
            return Err(Error::invalid(
                "range",
                value,
                "a range that does not end before it starts",
            ));
        }
        if let Some(side) = self.tile_side(dim)
            && !range.start.is_multiple_of(side)
        {
            let value = format!("{}..{}", range.start, range.end);
            let requirement = format!("one that starts at a multiple of {side}, where a tile does");
            return Err(Error::invalid("range", value, requirement));
        }
        let mut slice = *self;
        slice.shape[dim] = range.end - range.start;
        if !slice.is_empty() {
            let mut first = [0; 4];
            first[dim] = range.start;
            slice.offset = self.index_of(first);
        }
        Ok(slice)
    }

    /// Returns the view with two dimensions exchanged.
    ///
    /// # Errors
    /// `LimitExceeded` if a dimension is out of bounds, `InvalidArgument` if a tiled layout does
    /// not have it.
    pub fn transpose(&self, dim0: usize, dim1: usize) -> Result<Self> {
        let dim = dim0.max(dim1);
        check_limit("the dimension", dim, LAST_DIM)?;
        let mut view = *self;
        view.shape.swap(dim0, dim1);
        view.strides.swap(dim0, dim1);
        if let Some(tiling) = &mut view.tiling
            && dim0 != dim1
        {
            if dim > 1 {
                return Err(Error::invalid(
                    "dim",
                    dim.to_string(),
                    "0 or 1 in a tiled layout",
                ));
            }
            tiling.size.reverse();
            tiling.strides.reverse();
        }
        Ok(view)
    }

    /// Returns a view of the same elements in another shape.
    ///
    /// # Errors
    /// `LengthMismatch` if the number of elements differs, `InvalidArgument` if the view is not
    /// contiguous.
    pub fn reshape(&self, shape: [usize; 4]) -> Result<Self> {
        let view = Self::new(shape)?;
        check_len("shape", self.numel(), view.numel())?;
        if !self.is_contiguous() {
            let value = format!("{:?} at strides {:?}", self.shape, self.strides);
            return Err(Error::invalid(
                "view",
                value,
                "contiguous to be reshaped: copy its elements first",
            ));
        }
        view.with_offset(self.offset)
    }

    /// Returns the view without its dimensions of length 1, except at the end. A tiled view is
    /// returned unchanged.
    #[must_use]
    pub fn squeeze(&self) -> Self {
        if self.tiling.is_some() {
            return *self;
        }
        let (mut view, mut used) = (*self, 0);
        (view.shape, view.strides) = ([1; 4], [1; 4]);
        for dim in (0..=LAST_DIM).filter(|&dim| self.shape[dim] != 1) {
            (view.shape[used], view.strides[used]) = (self.shape[dim], self.strides[dim]);
            used += 1;
        }
        view
    }

    /// Returns the view with one more dimension of length 1 before dimension `dim`.
    ///
    /// # Errors
    /// `LimitExceeded` if `dim` is out of bounds or the view has four dimensions already,
    /// `InvalidArgument` for a tiled view.
    pub fn unsqueeze(&self, dim: usize) -> Result<Self> {
        check_limit("the dimension", dim, LAST_DIM)?;
        check_limit("the number of dimensions", self.ndim() + 1, LAST_DIM + 1)?;
        if let Some(tiling) = self.tiling {
            let [rows, cols] = tiling.size;
            let value = format!("of tiles of {rows}×{cols}");
            return Err(Error::invalid(
                "layout",
                value,
                "row-major: add dimensions before tiles",
            ));
        }
        let mut view = *self;
        view.shape[dim..].rotate_right(1);
        view.strides[dim..].rotate_right(1);
        (view.shape[dim], view.strides[dim]) = (1, 1);
        Ok(view)
    }

    /// Returns the side of the storage's tiles along a dimension.
    fn tile_side(&self, dim: usize) -> Option<usize> {
        self.tiling?.size.get(dim).copied()
    }

    fn has_strides(&self, strides: [usize; 4]) -> bool {
        let differs = |dim: usize| self.shape[dim] != 1 && self.strides[dim] != strides[dim];
        self.is_empty() || !(0..=LAST_DIM).any(differs)
    }

    /// Returns the index in the data of an element within the shape. `checked` has made sure that
    /// it does not overflow.
    #[inline]
    fn index_of(&self, indices: [usize; 4]) -> usize {
        let [i, j, k, l] = indices;
        let [s0, s1, s2, s3] = self.strides;
        let inner = k * s2 + l * s3 + self.offset;
        match self.tiling {
            None => i * s0 + j * s1 + inner,
            Some(Tiling {
                size: [rows, cols],
                strides: [down, across],
            }) => i % rows * s0 + i / rows * down + j % cols * s1 + j / cols * across + inner,
        }
    }

    /// Returns the view, or an error if its number of elements or its last index is too large.
    fn checked(self) -> Result<Self> {
        if self.is_empty() {
            return Ok(self);
        }
        volume("view", self.shape)?;
        // No dimension is beyond 2⁶¹ now, so this fits; places grow with every index.
        let last = |dim: usize| {
            let (i, stride) = (self.shape[dim] - 1, self.strides[dim] as u128);
            match self.tiling {
                Some(tiling) if dim < 2 => {
                    let (size, step) = (tiling.size[dim], tiling.strides[dim] as u128);
                    (i % size) as u128 * stride + (i / size) as u128 * step
                }
                _ => i as u128 * stride,
            }
        };
        let last = (0..=LAST_DIM)
            .map(last)
            .fold(self.offset as u128, u128::saturating_add);
        if last < MAX_LEN as u128 {
            return Ok(self);
        }
        let requirement = format!("within the {MAX_LEN} values that an array can have");
        // Strides follow from the size of tiles.
        let (what, value) = if let Some(tiling) = self.tiling {
            let [rows, cols] = tiling.size;
            ("tile_size", format!("{rows}×{cols}"))
        } else {
            let value = format!("{:?} at strides {:?}", self.shape, self.strides);
            ("view", format!("{value} from element {} on", self.offset))
        };
        Err(Error::invalid(what, value, requirement))
    }
}

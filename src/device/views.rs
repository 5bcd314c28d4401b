//! Matmuls of views.

use std::borrow::Cow;

use crate::device::GpuDevice;
use crate::error::{Error, Result};
use crate::ops::shape::{check_len, product};
use crate::ops::{Matmul, Op};
use crate::simd;
use crate::tensor::{BoundView, MemoryLayout};

/// Matmuls of views with any layout.
impl GpuDevice {
    /// Computes the matmul `C = A · B` of views, `m × k` times `k × n`; `c` is row-major.
    ///
    /// SIMD reads views in place at any strides. A GPU reads row-major and column-major views in
    /// place; others are copied first. Tiled layouts are copied on both.
    ///
    /// # Errors
    /// `InvalidArgument` if a view has more than two dimensions or if the rows of `b` differ from
    /// the columns of `a`, `LengthMismatch` if `c` does not have `m · n` elements, `ShapeOverflow` if
    /// `m · n` is too large, `OutOfMemory`, and device errors.
    #[doc(alias = "gemm")]
    #[doc(alias = "mm")]
    pub async fn matmul_view_async(
        &self,
        a: &BoundView<'_>,
        b: &BoundView<'_>,
        c: &mut [f32],
    ) -> Result<()> {
        let shape = check(a, b, c.len())?;
        if self.multiply_in_place(shape, a, b, c)? {
            return Ok(());
        }
        let (a, b) = (StoredMatrix::new(a)?, StoredMatrix::new(b)?);
        let op = matmul(shape, &a, &b);
        self.run_into_async(&op, &[&a.values, &b.values], c).await
    }

    /// Blocking version of [`GpuDevice::matmul_view_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn matmul_view(&self, a: &BoundView<'_>, b: &BoundView<'_>, c: &mut [f32]) -> Result<()> {
        crate::runtime::block_on(self.matmul_view_async(a, b, c))
    }

    /// Multiplies in place at the views' strides if the matmul runs on SIMD and this saves a copy.
    /// Returns whether it did.
    fn multiply_in_place(
        &self,
        shape: [usize; 3],
        a: &BoundView<'_>,
        b: &BoundView<'_>,
        c: &mut [f32],
    ) -> Result<bool> {
        self.check()?;
        let whole =
            StoredMatrix::without_copy(a).is_some() && StoredMatrix::without_copy(b).is_some();
        let [m, k, n] = shape;
        let on_gpu = self.uses_gpu(&Op::Matmul { m, k, n }, &[m * k, k * n]);
        let (Some(a_plane), Some(b_plane)) = (a.plane(), b.plane()) else {
            return Ok(false);
        };
        if whole || on_gpu {
            return Ok(false);
        }
        let (a, b) = ((a.data(), a_plane), (b.data(), b_plane));
        simd::multiply_planes(self.cpu(), a, b, c).map(|()| true)
    }
}

/// A row-major matrix, or a column-major one if it is transposed.
struct StoredMatrix<'a> {
    values: Cow<'a, [f32]>,
    transposed: bool,
}

impl<'a> StoredMatrix<'a> {
    /// Returns the view's matrix, copied if it has another layout.
    fn new(view: &BoundView<'a>) -> Result<Self> {
        if let Some(stored) = Self::without_copy(view) {
            return Ok(stored);
        }
        let (values, transposed) = (view.contiguous()?, false);
        Ok(Self { values, transposed })
    }

    fn without_copy(view: &BoundView<'a>) -> Option<Self> {
        let layouts = [MemoryLayout::RowMajor, MemoryLayout::ColumnMajor];
        layouts.into_iter().find_map(|layout| {
            let values = Cow::Borrowed(view.stored_as(layout)?);
            let transposed = layout == MemoryLayout::ColumnMajor;
            Some(Self { values, transposed })
        })
    }
}

fn matmul([m, k, n]: [usize; 3], a: &StoredMatrix<'_>, b: &StoredMatrix<'_>) -> Op {
    let options = Matmul {
        m,
        k,
        n,
        transpose_a: a.transposed,
        transpose_b: b.transposed,
    };
    Op::MatmulWith { options }
}

/// Returns the shape `[m, k, n]`, or an error if the shapes do not match.
fn check(a: &BoundView<'_>, b: &BoundView<'_>, c_len: usize) -> Result<[usize; 3]> {
    for (what, view) in [("a", a.view()), ("b", b.view())] {
        if view.ndim() > 2 {
            let value = format!("of shape {:?}", view.shape());
            return Err(Error::invalid(what, value, "of one or two dimensions"));
        }
    }
    let ([m, k, ..], [rows, n, ..]) = (a.view().shape(), b.view().shape());
    if rows != k {
        let requirement = format!("of {k} rows, as many as `a`, {m}×{k}, has columns");
        return Err(Error::invalid("b", format!("{rows}×{n}"), requirement));
    }
    check_len("c", product("c", m, n)?, c_len)?;
    Ok([m, k, n])
}

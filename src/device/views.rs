//! Products of views.

use std::borrow::Cow;

use crate::device::GpuDevice;
use crate::error::{Error, Result};
use crate::ops::shape::{check_len, product};
use crate::ops::{Matmul, Op};
use crate::simd;
use crate::tensor::{BoundView, MemoryLayout};

/// Products of matrices that lie anyhow.
impl GpuDevice {
    /// Matrix product `C = A · B` of views, `m × k` times `k × n`; `c` is row-major.
    ///
    /// On SIMD the views are read where they are, at any strides. A GPU reads row-major and
    /// column-major ones; others are copied for it, as are tiled layouts for both.
    ///
    /// # Errors
    /// `InvalidArgument` for a view of more than two dimensions or where `b` has another number
    /// of rows than `a` has columns, `LengthMismatch` where `c` has not `m · n` values,
    /// `OutOfMemory`, and what the device says.
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
        let (a, b) = (Stored::new(a)?, Stored::new(b)?);
        let op = matmul(shape, &a, &b);
        self.run_into_async(&op, &[&a.values, &b.values], c).await
    }

    /// Waits for [`GpuDevice::matmul_view_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn matmul_view(&self, a: &BoundView<'_>, b: &BoundView<'_>, c: &mut [f32]) -> Result<()> {
        crate::runtime::block_on(self.matmul_view_async(a, b, c))
    }

    /// Multiplies at the views' strides if that takes SIMD and spares a copy; tells whether it
    /// did.
    fn multiply_in_place(
        &self,
        shape: [usize; 3],
        a: &BoundView<'_>,
        b: &BoundView<'_>,
        c: &mut [f32],
    ) -> Result<bool> {
        self.check()?;
        let whole = Stored::without_copy(a).is_some() && Stored::without_copy(b).is_some();
        let [m, k, n] = shape;
        let on_gpu = self.gpu_for(&Op::Matmul { m, k, n }, &[m * k, k * n]);
        let (Some(a_plane), Some(b_plane)) = (a.plane(), b.plane()) else {
            return Ok(false);
        };
        if whole || on_gpu.is_some() {
            return Ok(false);
        }
        let (a, b) = ((a.data(), a_plane), (b.data(), b_plane));
        simd::multiply_planes(self.cpu(), a, b, c).map(|()| true)
    }
}

/// A matrix stored row by row, or column by column where it is transposed.
struct Stored<'a> {
    values: Cow<'a, [f32]>,
    transposed: bool,
}

impl<'a> Stored<'a> {
    /// Copied if it lies otherwise.
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

fn matmul([m, k, n]: [usize; 3], a: &Stored<'_>, b: &Stored<'_>) -> Op {
    let options = Matmul {
        m,
        k,
        n,
        transpose_a: a.transposed,
        transpose_b: b.transposed,
    };
    Op::MatmulWith { options }
}

/// The shape `[m, k, n]`, if there is such a product.
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

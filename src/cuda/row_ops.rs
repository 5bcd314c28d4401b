//! Softmax and norms of rows, with the number of threads, blocks and kernels for each row.

use super::buffer::{CudaBuffer, Scratch};
use super::device::CudaDevice;
use super::error::Result;
use super::launch::{Argument, CudaKernel};
use relampago_ptx::kernels::RowLayout;
use relampago_ptx::{LayerNormKernel, SoftmaxKernel};

/// The maximum number of rows that are split among blocks: the limit of a grid along y.
const MOST_ROWS: usize = 65_535;

impl CudaDevice {
    /// Computes the softmax of each row of a row-major matrix.
    ///
    /// # Errors
    /// [`crate::cuda::Error::Length`] if a buffer does not match its shape.
    pub fn softmax_rows(
        &self,
        x: &CudaBuffer<f32>,
        y: &mut CudaBuffer<f32>,
        rows: usize,
        cols: usize,
    ) -> Result<()> {
        self.softmax(SoftmaxKernel::new(), [x, y], [rows, cols])
    }

    /// Computes the logarithm of the softmax of each row of a row-major matrix.
    ///
    /// # Errors
    /// [`crate::cuda::Error::Length`] if a buffer does not match its shape.
    pub fn log_softmax_rows(
        &self,
        x: &CudaBuffer<f32>,
        y: &mut CudaBuffer<f32>,
        rows: usize,
        cols: usize,
    ) -> Result<()> {
        self.softmax(SoftmaxKernel::new().log(), [x, y], [rows, cols])
    }

    /// Returns the fastest layout of rows of this length on this GPU.
    pub(super) fn row_layout(&self, cols: usize) -> RowLayout {
        RowLayout::for_target(cols as u32, self.target())
    }

    fn softmax(
        &self,
        kernel: SoftmaxKernel,
        [x, y]: [&CudaBuffer<f32>; 2],
        [rows, cols]: [usize; 2],
    ) -> Result<()> {
        self.check("x", x, rows, cols)?;
        self.check("y", y, rows, cols)?;
        let layout = self.row_layout(cols);
        let kernel = kernel.with_layout(layout);
        let sizes = [rows, cols].map(|size| Argument::U32(size as u32));
        if in_parts(layout, rows) {
            let kernels = [self.load(&kernel.statistics())?, self.load(&kernel.rest())?];
            return self.rows_in_parts(&kernels, [x, y], &[], (&sizes, &[]), [rows, cols]);
        }
        let buffers = [x, y].map(|buffer| Argument::Pointer(buffer.address()));
        let arguments = [buffers, sizes].concat();
        // SAFETY: both buffers have the matrix's length; the callers borrow `y` exclusively.
        unsafe { self.submit(&kernel, &[x.input(), y.output()], &arguments) }
    }

    /// Runs an operation on rows that are split among blocks: one kernel computes statistics of
    /// each part, a second one the result. `sizes` are the arguments of both kernels after the
    /// buffers, the last parameter those of the second kernel alone.
    fn rows_in_parts(
        &self,
        [first, second]: &[CudaKernel; 2],
        [x, y]: [&CudaBuffer<f32>; 2],
        arrays: &[&CudaBuffer<f32>],
        (sizes, scalars): (&[Argument], &[Argument]),
        [rows, cols]: [usize; 2],
    ) -> Result<()> {
        let parts = cols.div_ceil(RowLayout::PART as usize);
        let mut uses = vec![x.input(), y.output()];
        uses.extend(arrays.iter().map(|array| array.input()));
        self.ordered(&uses, |turn| {
            let numbers = Scratch::new(turn, rows * parts * 2 * size_of::<f32>())?;
            let [x, y, numbers] =
                [x.address(), y.address(), numbers.address].map(Argument::Pointer);
            let arrays = arrays
                .iter()
                .map(|array| Argument::Pointer(array.address()));
            let arrays: Vec<Argument> = arrays.collect();
            let rest = [&[x, y, numbers], arrays.as_slice(), sizes, scalars].concat();
            // SAFETY: the callers checked all lengths and borrow `y` exclusively; there are two
            // numbers for each part.
            unsafe {
                turn.launch(first, &[&[x, numbers], sizes].concat())?;
                turn.launch(second, &rest)
            }
        })
    }

    /// Computes the layer norm of each row of a row-major matrix with `weight.len()` columns.
    ///
    /// # Errors
    /// [`crate::cuda::Error::Length`] if a buffer does not match its shape.
    pub fn layer_norm(
        &self,
        x: &CudaBuffer<f32>,
        weight: &CudaBuffer<f32>,
        bias: &CudaBuffer<f32>,
        y: &mut CudaBuffer<f32>,
        epsilon: f32,
    ) -> Result<()> {
        self.norm(LayerNormKernel::new(), [x, y], &[weight, bias], epsilon)
    }

    /// Computes the RMS norm of each row of a row-major matrix with `weight.len()` columns.
    ///
    /// # Errors
    /// [`crate::cuda::Error::Length`] if a buffer does not match its shape.
    pub fn rms_norm(
        &self,
        x: &CudaBuffer<f32>,
        weight: &CudaBuffer<f32>,
        y: &mut CudaBuffer<f32>,
        epsilon: f32,
    ) -> Result<()> {
        self.norm(LayerNormKernel::rms(), [x, y], &[weight], epsilon)
    }

    /// Runs a norm with weights, and biases if the kernel has any.
    fn norm(
        &self,
        kernel: LayerNormKernel,
        [x, y]: [&CudaBuffer<f32>; 2],
        arrays: &[&CudaBuffer<f32>],
        epsilon: f32,
    ) -> Result<()> {
        let cols = arrays.first().map_or(0, |weight| weight.len());
        let rows = x.len() / cols.max(1);
        self.check("x", x, rows, cols)?;
        self.check("y", y, rows, cols)?;
        for (array, what) in arrays.iter().zip(["weight", "bias"]) {
            self.check(what, array, 1, cols)?;
        }
        let layout = self.row_layout(cols);
        let kernel = kernel.with_layout(layout);
        let sizes = [rows, cols].map(|size| Argument::U32(size as u32));
        let scalars = [Argument::F32(epsilon)];
        if in_parts(layout, rows) {
            let kernels = [self.load(&kernel.statistics())?, self.load(&kernel.rest())?];
            let last = (sizes.as_slice(), scalars.as_slice());
            return self.rows_in_parts(&kernels, [x, y], arrays, last, [rows, cols]);
        }
        let inputs = [x].into_iter().chain(arrays.iter().copied());
        let mut uses: Vec<_> = inputs.map(CudaBuffer::input).collect();
        uses.push(y.output());
        let buffers = [x, y].into_iter().chain(arrays.iter().copied());
        let buffers = buffers.map(|buffer| Argument::Pointer(buffer.address()));
        let arguments = [&buffers.collect::<Vec<_>>()[..], &sizes, &scalars].concat();
        // SAFETY: all buffers match their shapes; the callers borrow `y` exclusively.
        unsafe { self.submit(&kernel, &uses, &arguments) }
    }
}

/// Whether rows that do not fit into one block or cluster are split among blocks. With very many
/// rows, one block for each row is enough.
fn in_parts(layout: RowLayout, rows: usize) -> bool {
    layout.held.is_none() && rows <= MOST_ROWS
}

//! Products of many rows on Hopper's tensor cores, which read matrices of bf16 from shared memory. Weights are unpacked for
//! each product to memory that the next one overwrites.
//!
//! With `half_precision`, rows and weights are rounded to bf16. Else each is the sum of two bf16, as in the kernels for fewer
//! rows.

use super::{Columns, CudaPass, CudaWeights, Elements, Product, sizes};
use crate::cuda::launch::Argument;
use crate::cuda::ops::LARGEST;
use crate::error::Result;
use crate::ops::HalfPrecision;
use relampago_ptx::kernels::{PlanesMatmulKernel, SplitKernel, UnpackKernel};

impl CudaPass<'_> {
    /// The number of bf16 whose sum a number is.
    fn planes(&self) -> usize {
        match self.cuda.half_precision() {
            HalfPrecision::Used => 1,
            _ => 2,
        }
    }

    /// Returns memory for the planes of rows and weights if a product whose result has these columns is faster with unpacked
    /// weights, as measured on an H200. Where the GPU has no room for them, other kernels multiply.
    pub(super) fn memory_for_planes(
        &mut self,
        weights: &CudaWeights,
        tokens: usize,
        [column, stride]: [usize; 2],
    ) -> Option<[Elements; 2]> {
        let (fewest_rows, fewest_weights) = match self.planes() {
            1 => (64, 1 << 21),
            _ => (256, 1 << 24),
        };
        let lens = [tokens, weights.rows].map(|rows| rows.saturating_mul(weights.cols));
        let even = |n: &usize| n.is_multiple_of(2);
        let fits = tokens >= fewest_rows
            && lens[1] >= fewest_weights
            && lens.iter().all(|&len| len <= LARGEST)
            && [column, stride, weights.rows].iter().all(even)
            && self.cuda.has(&PlanesMatmulKernel::wide());
        if !fits {
            return None;
        }
        // Two bf16 lie where one f32 would.
        let words = lens.map(|len| (len * self.planes()).div_ceil(2));
        let [a, b] = [0, 1].map(|which| {
            let device = &self.cuda.device;
            self.memory.planes(device, which, words[which]).ok()
        });
        Some([a?, b?])
    }

    /// Multiplies rows by unpacked weights.
    pub(super) fn multiply_planes(
        &mut self,
        x: &Elements,
        weights: &CudaWeights,
        (y, column, stride): Columns<'_, Elements>,
        product: Product,
        [a, b]: [Elements; 2],
    ) -> Result<()> {
        let planes = self.planes();
        let lens = [product.rows, weights.rows].map(|rows| rows * weights.cols);
        let pointers = [x.from(0), a.from(0)];
        let arguments = [&pointers[..], &sizes([lens[0], planes])].concat();
        self.launch(&SplitKernel, arguments)?;
        let pointers = [weights.words.from(0), weights.scales.from(0), b.from(0)];
        let shift = weights.group_shift() as usize;
        let least = [Argument::F32(weights.least)];
        let arguments = [&pointers[..], &sizes([lens[1], shift, planes]), &least].concat();
        self.launch(&UnpackKernel::new(weights.format), arguments)?;
        let pointers = [a.from(0), b.from(0), y.from(column)];
        let shape = sizes([product.rows, weights.rows, weights.cols, stride, planes]);
        let beta = if product.adds { 1.0 } else { 0.0 };
        let factors = [product.scale, beta].map(Argument::F32);
        let arguments = [&pointers[..], &shape, &factors].concat();
        let kernel = self.planes_kernel(product.rows, weights.rows);
        self.launch(&kernel, arguments)
    }

    /// The kernel whose tiles take the multiprocessors less time.
    fn planes_kernel(&self, rows: usize, cols: usize) -> PlanesMatmulKernel {
        let multiprocessors = self.cuda.device.multiprocessors() as usize;
        let rounds =
            |tile: usize| (rows.div_ceil(128) * cols.div_ceil(tile)).div_ceil(multiprocessors);
        // Half a tile takes somewhat more than half the time.
        if 20 * rounds(256) <= 11 * rounds(128) {
            return PlanesMatmulKernel::wide();
        }
        PlanesMatmulKernel::narrow()
    }
}

//! The choice of kernels that multiply few rows. All choices were measured on an H200.

use super::{CudaBackend, CudaWeights, TILED_FROM};
use relampago_ptx::kernels::{Activation, DigitSplit, PackedFormat, PackedMatmulKernel};

/// The number of rows from which on tiles of rows are faster than four rows at once.
const DIGITS_BELOW: usize = 13;

/// The kernels that multiply few rows as digits on tensor cores, if they can.
#[derive(Clone, Copy)]
pub(super) struct FewRows {
    /// For one row.
    one: Option<DigitSplit>,
    /// Whether a kernel multiplies several rows at once.
    several: bool,
}

impl CudaBackend {
    /// The number of rows from which on a product is computed in tiles.
    pub(super) fn tiles_from(&self) -> usize {
        let kernel = PackedMatmulKernel::digits(PackedFormat::Nibbles, None, DigitSplit::Tokens);
        if self.has(&kernel) {
            DIGITS_BELOW
        } else {
            TILED_FROM
        }
    }
}

impl FewRows {
    /// The choice for a matrix in groups of weights.
    pub(super) fn of(
        cuda: &CudaBackend,
        format: PackedFormat,
        [rows, cols, group]: [usize; 3],
    ) -> Self {
        let multiprocessors = cuda.device.multiprocessors() as usize;
        let tiles = rows.div_ceil(PackedMatmulKernel::DIGIT_ROWS as usize);
        let split = if tiles >= 3 * multiprocessors {
            DigitSplit::Rows
        } else {
            DigitSplit::Columns
        };
        let has_digits = match format {
            PackedFormat::Nibbles => group >= 32,
            PackedFormat::Bytes => true,
            _ => false,
        };
        // A few tiles of bytes are read as quickly without digits.
        let pays = format == PackedFormat::Nibbles || tiles > multiprocessors;
        let fits = |split: DigitSplit| {
            let kernel = PackedMatmulKernel::digits(format, None, split);
            has_digits && cuda.has(&kernel) && cols <= split.cols(cuda.device.target()) as usize
        };
        Self {
            one: (pays && fits(split)).then_some(split),
            several: fits(DigitSplit::Tokens),
        }
    }

    /// Whether products of these rows are faster in tiles, if they have neither a norm nor a gate.
    pub(super) fn are_tiled(self, rows: usize) -> bool {
        rows >= TILED_FROM && !self.several
    }
}

impl CudaWeights {
    /// The kernel for few rows, which may be normalised. Half of the rows of weights belong to gates, if there are any.
    pub(super) fn few_kernel(
        &self,
        rows: usize,
        normalises: bool,
        gate: Option<Activation>,
    ) -> PackedMatmulKernel {
        match (self.split(rows, normalises), gate) {
            (Some(split), gate) => PackedMatmulKernel::digits(self.format, gate, split),
            (None, Some(activation)) => PackedMatmulKernel::gated(self.format, activation),
            (None, None) => PackedMatmulKernel::few(self.format),
        }
    }

    fn split(&self, rows: usize, normalises: bool) -> Option<DigitSplit> {
        if rows > 1 {
            return self.few.several.then_some(DigitSplit::Tokens);
        }
        // For bytes without a norm, the kernel that computes in floats is as quick.
        let pays = normalises || self.format == PackedFormat::Nibbles;
        self.few.one.filter(|_| pays)
    }

    /// The name of the kernel for a row.
    pub(super) fn name_of_row_kernel(&self, normalises: bool) -> &'static str {
        match (self.format, self.split(1, normalises)) {
            (PackedFormat::Nibbles, None) => "multiply_nibbles",
            (PackedFormat::Nibbles, Some(DigitSplit::Rows)) => "multiply_nibbles_digits",
            (PackedFormat::Nibbles, Some(_)) => "multiply_nibbles_digits_columns",
            (PackedFormat::Bytes, None) => "multiply_bytes",
            (PackedFormat::Bytes, Some(DigitSplit::Rows)) => "multiply_bytes_digits",
            (PackedFormat::Bytes, Some(_)) => "multiply_bytes_digits_columns",
            _ => "multiply_floats",
        }
    }
}

//! The choice of kernels that multiply few rows.

use super::{CudaBackend, CudaWeights};
use relampago_ptx::kernels::{Activation, DigitSplit, PackedFormat, PackedMatmulKernel};

/// The rows of weights of a tile.
const TILE: usize = 16;

impl CudaWeights {
    /// Adds the division of work by which digits on tensor cores are faster than the other kernels, as measured on an H200:
    /// 1.05 to 1.8 times for nibbles, and for bytes up to 1.5 times if there are more tiles than multiprocessors.
    pub(super) fn with_digits(mut self, cuda: &CudaBackend) -> Self {
        let multiprocessors = cuda.device.multiprocessors() as usize;
        let tiles = self.rows.div_ceil(TILE);
        let split = if tiles >= 3 * multiprocessors {
            DigitSplit::Rows
        } else {
            DigitSplit::Columns
        };
        let pays = match self.format {
            PackedFormat::Nibbles => self.group_len >= 32,
            PackedFormat::Bytes => tiles > multiprocessors,
            _ => false,
        };
        let kernel = PackedMatmulKernel::digits(self.format, None, split);
        let fits = self.cols <= PackedMatmulKernel::DIGIT_COLS as usize && cuda.has(&kernel);
        self.digits = (pays && fits).then_some(split);
        self
    }

    /// The kernel for few rows. Half of the rows of weights belong to gates, if there are any.
    pub(super) fn few(&self, gate: Option<Activation>) -> PackedMatmulKernel {
        match (self.digits, gate) {
            (Some(split), gate) => PackedMatmulKernel::digits(self.format, gate, split),
            (None, Some(activation)) => PackedMatmulKernel::gated(self.format, activation),
            (None, None) => PackedMatmulKernel::few(self.format),
        }
    }

    /// The name of the kernel for a row.
    pub(super) fn row_kernel(&self) -> &'static str {
        match (self.format, self.digits) {
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

//! Softmax and log-softmax of each row of a matrix.

use super::Kernel;
use super::common::Combine;
use super::rows::{Matrix, Part, Row, RowLayout, Share, each_row};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::Reg;
use crate::kernel::PtxKernel;
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

/// Computes `yᵢ = exp(xᵢ − max x) / Σⱼ exp(xⱼ − max x)`, or the logarithm of `yᵢ`, for each row of a
/// row-major `rows × cols` matrix.
///
/// Parameters: `x`, `y` (f32), `rows`, `cols`. A row with a NaN, or with only −∞, gives NaN. Rows
/// that do not fit into one block or cluster need two kernels. Both have a parameter `numbers` (f32):
/// [`SoftmaxKernel::statistics`] has it in place of `y`, and [`SoftmaxKernel::rest`] has it after `y`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SoftmaxKernel {
    layout: RowLayout,
    logarithm: bool,
    share: Share,
}

impl SoftmaxKernel {
    /// Creates a softmax for rows of any length.
    pub fn new() -> Self {
        SoftmaxKernel {
            layout: RowLayout::ANY,
            logarithm: false,
            share: Share::Whole,
        }
    }

    /// Creates the fastest softmax for rows of `cols` elements.
    pub fn for_cols(cols: u32) -> Self {
        Self::new().with_layout(RowLayout::for_cols(cols))
    }

    /// Sets the layout of threads.
    #[must_use]
    pub fn with_layout(self, layout: RowLayout) -> Self {
        SoftmaxKernel { layout, ..self }
    }

    /// Computes the logarithm of the softmax: `yᵢ = xᵢ − max x − log Σⱼ exp(xⱼ − max x)`.
    #[must_use]
    pub fn log(self) -> Self {
        SoftmaxKernel {
            logarithm: true,
            ..self
        }
    }

    /// Selects the first of two kernels for rows that are split among blocks. It uses only the
    /// width of the layout. `numbers` holds two numbers for each started [`RowLayout::PART`] of a
    /// row. There may be at most 65,535 rows.
    #[must_use]
    pub fn statistics(self) -> Self {
        SoftmaxKernel {
            share: Share::Statistics,
            ..self
        }
    }

    /// Selects the second of the two kernels for rows that are split among blocks.
    #[must_use]
    pub fn rest(self) -> Self {
        SoftmaxKernel {
            share: Share::Rest,
            ..self
        }
    }

    /// Computes the maximum and the sum of exponentials relative to it. For a part of only −∞ these
    /// are the lowest finite number and 0, so that other parts can be added.
    fn sums(k: &mut Builder, row: &Row, parts: bool) -> [Reg; 2] {
        let max = row.reduce(k, Combine::Max, |_, x| x);
        let max = if parts { k.max(max, f32::MIN) } else { max };
        [max, row.reduce(k, Combine::Sum, |k, x| power(k, x, max))]
    }

    fn write(self, k: &mut Builder, row: &Row, [max, sum]: [Reg; 2]) {
        if self.logarithm {
            let log2 = k.lg2(sum);
            let log = k.mul(log2, std::f32::consts::LN_2);
            row.write(k, &[], |k, x, _| {
                let shifted = k.sub(x, max);
                k.sub(shifted, log)
            });
        } else {
            let scale = k.rcp(sum);
            row.write(k, &[], |k, x, _| {
                let power = power(k, x, max);
                k.mul(power, scale)
            });
        }
    }

    /// Returns the layout of threads.
    pub fn layout(&self) -> RowLayout {
        self.layout
    }
}

impl Default for SoftmaxKernel {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernel for SoftmaxKernel {
    fn name(&self) -> String {
        let name = if self.logarithm {
            "log_softmax"
        } else {
            "softmax"
        };
        format!("{name}_{}", self.share.suffix(self.layout))
    }

    fn first_target(&self) -> Target {
        match self.share {
            Share::Whole => self.layout.first_target(),
            _ => Target::Sm70,
        }
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        self.layout.check()?;
        let mut k = Builder::new(self.name(), target, self.share.launch(self.layout, 0));
        let input = k.pointer("x", F32);
        let mut pointer = |name, there: bool| there.then(|| k.pointer(name, F32));
        let output = pointer("y", self.share != Share::Statistics);
        let numbers = pointer("numbers", self.share != Share::Whole);
        let matrix = Matrix {
            input,
            output: output.unwrap_or(input),
            rows: k.scalar("rows", U32),
            cols: k.scalar("cols", U32),
        };
        let Some(numbers) = numbers else {
            each_row(&mut k, self.layout, &matrix, &[], false, |k, row| {
                let sums = Self::sums(k, row, false);
                self.write(k, row, sums);
            });
            return k.finish();
        };
        let part = Part::new(&mut k, (self.layout, self.share), &matrix, numbers, false);
        if self.share == Share::Statistics {
            let sums = Self::sums(&mut k, &part.row, true);
            part.leave(&mut k, sums);
        } else {
            let max = part.max(&mut k);
            let sum = part.sum(&mut k, |k, [of_part, sum], _| {
                let weight = power(k, of_part, max);
                k.mul(sum, weight)
            });
            self.write(&mut k, &part.row, [max, sum]);
        }
        k.finish()
    }
}

/// Computes `exp(x − max)`.
fn power(k: &mut Builder, x: Reg, max: Reg) -> Reg {
    let shifted = k.sub(x, max);
    k.exp(shifted)
}

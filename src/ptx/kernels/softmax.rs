//! Softmax and its logarithm, of each row of a matrix.

use super::Kernel;
use super::common::Combine;
use super::rows::{Matrix, RowLayout, each_row};
use crate::ptx::build::Builder;
use crate::ptx::error::Result;
use crate::ptx::kernel::PtxKernel;
use crate::ptx::types::PtxType::{F32, U32};
use crate::ptx::types::Target;

/// `yᵢ = exp(xᵢ − max x) / Σⱼ exp(xⱼ − max x)` of each row of a row-major `rows × cols` matrix, or
/// its logarithm.
///
/// Parameters: `x`, `y` (f32), `rows`, `cols`. A row with a NaN or of only −∞ is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SoftmaxKernel {
    layout: RowLayout,
    logarithm: bool,
}

impl SoftmaxKernel {
    /// For rows of any length.
    pub fn new() -> Self {
        SoftmaxKernel {
            layout: RowLayout::ANY,
            logarithm: false,
        }
    }

    /// The fastest one for rows of `cols` values.
    pub fn for_cols(cols: u32) -> Self {
        Self::new().with_layout(RowLayout::for_cols(cols))
    }

    /// Threads in another layout.
    #[must_use]
    pub fn with_layout(self, layout: RowLayout) -> Self {
        SoftmaxKernel { layout, ..self }
    }

    /// The logarithm of the softmax: `yᵢ = xᵢ − max x − log Σⱼ exp(xⱼ − max x)`.
    #[must_use]
    pub fn log(self) -> Self {
        SoftmaxKernel {
            logarithm: true,
            ..self
        }
    }

    /// How its threads share out rows.
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
        format!("{name}_{}", self.layout.suffix())
    }

    fn first_target(&self) -> Target {
        self.layout.first_target()
    }

    fn build(&self, target: Target) -> Result<PtxKernel> {
        self.layout.check()?;
        let mut k = Builder::new(self.name(), target, self.layout.launch());
        let matrix = Matrix {
            input: k.pointer("x", F32),
            output: k.pointer("y", F32),
            rows: k.scalar("rows", U32),
            cols: k.scalar("cols", U32),
        };
        each_row(&mut k, self.layout, &matrix, |k, row| {
            let max = row.reduce(k, Combine::Max, |_, x| x);
            let power = |k: &mut Builder, x| {
                let shifted = k.sub(x, max);
                k.exp(shifted)
            };
            let sum = row.reduce(k, Combine::Sum, power);
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
                    let power = power(k, x);
                    k.mul(power, scale)
                });
            }
        });
        k.finish()
    }
}

//! Layer norm and RMS norm, of each row of a matrix.

use super::Kernel;
use super::common::Combine;
use super::rows::{Matrix, Row, RowLayout, each_row};
use crate::ptx::build::Builder;
use crate::ptx::error::Result;
use crate::ptx::inst::Reg;
use crate::ptx::kernel::PtxKernel;
use crate::ptx::types::PtxType::{F32, U32};
use crate::ptx::types::Target;

/// Layer norm (Ba, Kiros and Hinton, 2016), `y = (x − mean) / √(variance + ε) · weight + bias`, or
/// RMS norm (Zhang and Sennrich, 2019), `y = x / √(mean of x² + ε) · weight`, of each row of a
/// row-major `rows × cols` matrix.
///
/// Parameters: `x`, `y`, `weight`, for layer norm `bias` (f32; `cols` weights and biases), `rows`,
/// `cols`, `epsilon` (f32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LayerNormKernel {
    layout: RowLayout,
    centred: bool,
}

impl LayerNormKernel {
    /// Layer norm, for rows of any length.
    pub fn new() -> Self {
        LayerNormKernel {
            layout: RowLayout::ANY,
            centred: true,
        }
    }

    /// RMS norm, for rows of any length.
    pub fn rms() -> Self {
        LayerNormKernel {
            centred: false,
            ..Self::new()
        }
    }

    /// Threads in another layout; [`RowLayout::for_cols`] knows the fastest.
    #[must_use]
    pub fn with_layout(self, layout: RowLayout) -> Self {
        LayerNormKernel { layout, ..self }
    }

    /// How its threads share out rows.
    pub fn layout(&self) -> RowLayout {
        self.layout
    }

    /// What is subtracted, and what the rest is multiplied by.
    fn statistics(self, k: &mut Builder, row: &Row, cols: Reg, epsilon: Reg) -> (Option<Reg>, Reg) {
        let count = k.convert(crate::ptx::Op::CvtF32U32, F32, &[cols.into()]);
        let mean = self.centred.then(|| {
            let sum = row.reduce(k, Combine::Sum, |_, x| x);
            k.div(sum, count)
        });
        // A second pass, since Σx² − n·mean² cancels where the mean is large.
        let squares = row.reduce(k, Combine::Sum, |k, x| {
            let x = mean.map_or(x, |mean| k.sub(x, mean));
            k.mul(x, x)
        });
        let variance = k.div(squares, count);
        let shifted = k.add(variance, epsilon);
        let deviation = k.sqrt(shifted);
        (mean, k.rcp(deviation))
    }
}

impl Default for LayerNormKernel {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernel for LayerNormKernel {
    fn name(&self) -> String {
        let name = if self.centred {
            "layer_norm"
        } else {
            "rms_norm"
        };
        format!("{name}_{}", self.layout.suffix())
    }

    fn first_target(&self) -> Target {
        self.layout.first_target()
    }

    fn build(&self, target: Target) -> Result<PtxKernel> {
        self.layout.check()?;
        let mut k = Builder::new(self.name(), target, self.layout.launch());
        let (input, output) = (k.pointer("x", F32), k.pointer("y", F32));
        let weight = k.pointer("weight", F32);
        let bias = self.centred.then(|| k.pointer("bias", F32));
        let matrix = Matrix {
            input,
            output,
            rows: k.scalar("rows", U32),
            cols: k.scalar("cols", U32),
        };
        let epsilon = k.scalar("epsilon", F32);
        each_row(&mut k, self.layout, &matrix, |k, row| {
            let (mean, scale) = self.statistics(k, row, matrix.cols, epsilon);
            let arrays: Vec<Reg> = [weight].into_iter().chain(bias).collect();
            row.write(k, &arrays, |k, x, of_column| {
                let centred = mean.map_or(x, |mean| k.sub(x, mean));
                let normal = k.mul(centred, scale);
                match of_column {
                    [weight, bias] => k.fma(normal, *weight, *bias),
                    of_column => k.mul(normal, of_column[0]),
                }
            });
        });
        k.finish()
    }
}

//! Layer norm and RMS norm of each row of a matrix.

use super::Kernel;
use super::common::Combine;
use super::rows::{Matrix, Part, Row, RowLayout, Share, each_row};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg};
use crate::kernel::{Launch, PtxKernel};
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

/// Layer norm (Ba, Kiros and Hinton, 2016), `y = (x − mean) / √(variance + ε) · weight + bias`, or
/// RMS norm (Zhang and Sennrich, 2019), `y = x / √(mean of x² + ε) · weight`, of each row of a
/// row-major `rows × cols` matrix.
///
/// Parameters: `x`, `y`, `weight`, for layer norm `bias` (f32; `cols` weights and biases), `rows`,
/// `cols`, `epsilon` (f32). Rows that do not fit into one block or cluster need two kernels with
/// the additional parameter `numbers` (f32): [`LayerNormKernel::statistics`] has the parameters
/// `x`, `numbers`, `rows` and `cols`, and [`LayerNormKernel::rest`] has `numbers` after `y`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LayerNormKernel {
    layout: RowLayout,
    centred: bool,
    share: Share,
}

impl LayerNormKernel {
    /// Creates a layer norm for rows of any length.
    pub fn new() -> Self {
        LayerNormKernel {
            layout: RowLayout::ANY,
            centred: true,
            share: Share::Whole,
        }
    }

    /// Creates an RMS norm for rows of any length.
    pub fn rms() -> Self {
        LayerNormKernel {
            centred: false,
            ..Self::new()
        }
    }

    /// Sets the layout of threads; [`RowLayout::for_cols`] returns the fastest.
    #[must_use]
    pub fn with_layout(self, layout: RowLayout) -> Self {
        LayerNormKernel { layout, ..self }
    }

    /// Returns the layout of threads.
    pub fn layout(&self) -> RowLayout {
        self.layout
    }

    /// Selects the first of two kernels for rows that are split among blocks. It uses only the
    /// width of the layout. `numbers` holds two numbers for each started [`RowLayout::PART`] of a
    /// row. There may be at most 65,535 rows.
    #[must_use]
    pub fn statistics(self) -> Self {
        LayerNormKernel {
            share: Share::Statistics,
            ..self
        }
    }

    /// Selects the second of the two kernels for rows that are split among blocks.
    #[must_use]
    pub fn rest(self) -> Self {
        LayerNormKernel {
            share: Share::Rest,
            ..self
        }
    }

    /// Returns the launch. Threads may cache weights, and biases for layer norm.
    fn launch(self) -> Launch {
        let arrays = if self.centred { 2 } else { 1 };
        self.share.launch(self.layout, arrays)
    }

    /// Computes the mean, which is 0 for RMS norm, and the sum of squared deviations from it.
    fn moments(self, k: &mut Builder, row: &Row, count: Reg) -> [Reg; 2] {
        if let Some(moments) = row.moments(k, count) {
            return moments;
        }
        let mean = if self.centred {
            let sum = row.reduce(k, Combine::Sum, |_, x| x);
            k.div(sum, count)
        } else {
            k.value(F32, 0.0f32)
        };
        // Use a second pass, since Σx² − n·mean² cancels if the mean is large.
        let squares = row.reduce(k, Combine::Sum, |k, x| {
            let x = self.centre(k, x, mean);
            k.mul(x, x)
        });
        [mean, squares]
    }

    /// Combines the moments of a row's parts (Chan et al., 1979).
    fn of_parts(self, k: &mut Builder, part: &Part, count: Reg) -> [Reg; 2] {
        let mean = if self.centred {
            let sum = part.sum(k, |k, [mean, _], index| {
                let count = part.count_of(k, index);
                k.mul(mean, count)
            });
            k.div(sum, count)
        } else {
            k.value(F32, 0.0f32)
        };
        let squares = part.sum(k, |k, [of_part, squares], index| {
            if !self.centred {
                return squares;
            }
            let count = part.count_of(k, index);
            let off = k.sub(of_part, mean);
            let off_squared = k.mul(off, off);
            k.fma(off_squared, count, squares)
        });
        [mean, squares]
    }

    fn centre(self, k: &mut Builder, x: Reg, mean: Reg) -> Reg {
        if self.centred { k.sub(x, mean) } else { x }
    }

    /// Computes the factor for deviations from the mean.
    fn scale(k: &mut Builder, squares: Reg, count: Reg, epsilon: Reg) -> Reg {
        let variance = k.div(squares, count);
        let shifted = k.add(variance, epsilon);
        let deviation = k.sqrt(shifted);
        k.rcp(deviation)
    }

    fn write(self, k: &mut Builder, row: &Row, arrays: &[Reg], [mean, scale]: [Reg; 2]) {
        row.write(k, arrays, |k, x, of_column| {
            let centred = self.centre(k, x, mean);
            let normal = k.mul(centred, scale);
            match of_column {
                [weight, bias] => k.fma(normal, *weight, *bias),
                of_column => k.mul(normal, of_column[0]),
            }
        });
    }

    /// Builds the kernel that computes the statistics of each part.
    fn build_statistics(self, mut k: Builder) -> Result<PtxKernel> {
        let (input, numbers) = (k.pointer("x", F32), k.pointer("numbers", F32));
        let matrix = Matrix {
            input,
            output: input,
            rows: k.scalar("rows", U32),
            cols: k.scalar("cols", U32),
        };
        // The sum of squares alone needs one pass.
        let once = !self.centred;
        let part = Part::new(&mut k, (self.layout, self.share), &matrix, numbers, once);
        let count = k.convert(Op::CvtF32U32, F32, &[part.count().into()]);
        let numbers = self.moments(&mut k, &part.row, count);
        part.leave(&mut k, numbers);
        k.finish()
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
        let mut k = Builder::new(self.name(), target, self.launch());
        if self.share == Share::Statistics {
            return self.build_statistics(k);
        }
        let (input, output) = (k.pointer("x", F32), k.pointer("y", F32));
        let shared = self.share == Share::Rest;
        let numbers = shared.then(|| k.pointer("numbers", F32));
        let weight = k.pointer("weight", F32);
        let bias = self.centred.then(|| k.pointer("bias", F32));
        let mut arrays: Vec<Reg> = [weight].into_iter().chain(bias).collect();
        let matrix = Matrix {
            input,
            output,
            rows: k.scalar("rows", U32),
            cols: k.scalar("cols", U32),
        };
        let epsilon = k.scalar("epsilon", F32);
        let Some(numbers) = numbers else {
            each_row(
                &mut k,
                self.layout,
                &matrix,
                &arrays,
                self.centred,
                |k, row| {
                    let count = k.convert(Op::CvtF32U32, F32, &[matrix.cols.into()]);
                    let [mean, squares] = self.moments(k, row, count);
                    let scale = Self::scale(k, squares, count, epsilon);
                    self.write(k, row, &arrays, [mean, scale]);
                },
            );
            return k.finish();
        };
        let part = Part::new(&mut k, (self.layout, self.share), &matrix, numbers, false);
        let count = k.convert(Op::CvtF32U32, F32, &[matrix.cols.into()]);
        let [mean, squares] = self.of_parts(&mut k, &part, count);
        let scale = Self::scale(&mut k, squares, count, epsilon);
        for array in &mut arrays {
            *array = k.at(*array, part.first, 4);
        }
        self.write(&mut k, &part.row, &arrays, [mean, scale]);
        k.finish()
    }
}

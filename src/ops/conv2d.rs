//! Convolutions of a single image with one channel.

/// The padding of a convolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Padding {
    /// Without padding: `(input − kernel) / stride + 1` outputs, rounded down.
    #[default]
    Valid,
    /// Zero padding: `input / stride` outputs, rounded up. If the number of padding rows or columns
    /// is odd, the extra one is at the end (TensorFlow's rule). An infinite weight times padding is
    /// NaN.
    Same,
}

/// The shape and options of a two-dimensional convolution of one image with one channel, all
/// matrices row-major. For batches, channels, groups and dilation see [`crate::ConvLayer`].
///
/// ```
/// use relampago::Conv2d;
///
/// let convolution = Conv2d::valid(5, 7, 3, 3).with_stride(1, 2);
/// assert_eq!(convolution.output_shape(), (3, 3));
/// ```
#[doc(alias = "convolve2d")]
#[doc(alias = "convolution")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Conv2d {
    /// The number of rows of the input.
    pub input_rows: usize,
    /// The number of columns of the input.
    pub input_cols: usize,
    /// The number of rows of the kernel, at least 1.
    pub kernel_rows: usize,
    /// The number of columns of the kernel, at least 1.
    pub kernel_cols: usize,
    /// The number of rows between two windows (the vertical stride), at least 1.
    pub stride_rows: usize,
    /// The number of columns between two windows (the horizontal stride), at least 1.
    pub stride_cols: usize,
    /// The padding at the border.
    pub padding: Padding,
}

impl Conv2d {
    /// Creates a convolution of stride 1 without padding.
    pub fn valid(
        input_rows: usize,
        input_cols: usize,
        kernel_rows: usize,
        kernel_cols: usize,
    ) -> Self {
        Self {
            input_rows,
            input_cols,
            kernel_rows,
            kernel_cols,
            stride_rows: 1,
            stride_cols: 1,
            padding: Padding::Valid,
        }
    }

    /// Creates a convolution of stride 1 whose result has the size of the input.
    pub fn same(
        input_rows: usize,
        input_cols: usize,
        kernel_rows: usize,
        kernel_cols: usize,
    ) -> Self {
        Self {
            padding: Padding::Same,
            ..Self::valid(input_rows, input_cols, kernel_rows, kernel_cols)
        }
    }

    /// Returns the convolution with these strides.
    #[must_use]
    pub fn with_stride(self, rows: usize, cols: usize) -> Self {
        Self {
            stride_rows: rows,
            stride_cols: cols,
            ..self
        }
    }

    /// Returns the convolution with this padding.
    #[must_use]
    pub fn with_padding(self, padding: Padding) -> Self {
        Self { padding, ..self }
    }

    /// Returns the rows and columns of the result.
    pub fn output_shape(&self) -> (usize, usize) {
        let along = |input: usize, kernel: usize, stride: usize| match self.padding {
            Padding::Valid if kernel > input => 0,
            // A kernel of no rows is refused elsewhere; here it must not be one too many.
            Padding::Valid => ((input - kernel) / stride.max(1)).wrapping_add(1),
            Padding::Same => input.div_ceil(stride.max(1)),
        };
        (
            along(self.input_rows, self.kernel_rows, self.stride_rows),
            along(self.input_cols, self.kernel_cols, self.stride_cols),
        )
    }

    /// Returns the rows and columns of zeros before the first row and column of the input.
    pub fn padding_before(&self) -> (usize, usize) {
        let before = |input: usize, kernel: usize, stride: usize| match self.padding {
            Padding::Valid => 0,
            Padding::Same => {
                let stride = stride.max(1);
                let last_window = input.saturating_sub(1) / stride * stride;
                last_window.saturating_add(kernel).saturating_sub(input) / 2
            }
        };
        (
            before(self.input_rows, self.kernel_rows, self.stride_rows),
            before(self.input_cols, self.kernel_cols, self.stride_cols),
        )
    }
}

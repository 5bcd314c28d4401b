//! Convolutions of images with many channels.

use super::Conv2d;

/// Shape and options of a convolution layer: `filters` weighted sums over windows of several channels, of each of
/// `batch` images.
///
/// The input is `batch × channels × input_rows × input_cols` values, the weights are
/// `filters × channels / groups × kernel_rows × kernel_cols`, and the result is `batch × filters` times the
/// [output shape](Self::output_shape), all of them row-major ("NCHW" and "OIHW"). Filters and channels are divided
/// into `groups` of neighbours, and a filter sees the channels of its own group: as many groups as channels make a
/// depthwise convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvLayer {
    /// Rows, columns, kernel, stride and padding of each channel.
    pub image: Conv2d,
    /// Images.
    pub batch: usize,
    /// Channels of the input, a multiple of the groups.
    pub channels: usize,
    /// Channels of the result, a multiple of the groups.
    pub filters: usize,
    /// Groups of channels and filters, at least 1.
    pub groups: usize,
    /// Rows from a row of the kernel to the next one's place, at least 1.
    pub dilation_rows: usize,
    /// Columns from a column of the kernel to the next one's place, at least 1.
    pub dilation_cols: usize,
}

impl ConvLayer {
    /// So many filters of one image of so many channels, in one group and without dilation.
    pub fn new(image: Conv2d, channels: usize, filters: usize) -> Self {
        Self {
            image,
            batch: 1,
            channels,
            filters,
            groups: 1,
            dilation_rows: 1,
            dilation_cols: 1,
        }
    }

    /// The same layer of so many images.
    #[must_use]
    pub fn with_batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    /// The same layer in groups.
    #[must_use]
    pub fn with_groups(self, groups: usize) -> Self {
        Self { groups, ..self }
    }

    /// The same layer with a kernel whose weights are so many rows and columns apart.
    #[must_use]
    pub fn with_dilation(self, rows: usize, cols: usize) -> Self {
        Self {
            dilation_rows: rows,
            dilation_cols: cols,
            ..self
        }
    }

    /// Rows and columns of each of the result's channels: those of a convolution by a kernel as large as
    /// the dilated one.
    pub fn output_shape(&self) -> (usize, usize) {
        self.window().output_shape()
    }

    /// Rows and columns of zeros before the first row and column of each channel.
    pub fn padding_before(&self) -> (usize, usize) {
        self.window().padding_before()
    }

    /// The convolution of a channel, with a kernel of the window's size.
    pub(crate) fn window(&self) -> Conv2d {
        let spread = |weights: usize, dilation: usize| {
            let between = weights.saturating_sub(1).saturating_mul(dilation);
            between.saturating_add(weights.min(1))
        };
        Conv2d {
            kernel_rows: spread(self.image.kernel_rows, self.dilation_rows),
            kernel_cols: spread(self.image.kernel_cols, self.dilation_cols),
            ..self.image
        }
    }

    /// Channels and filters of a group; nothing where there are no groups, which is refused elsewhere.
    pub(crate) fn of_group(&self) -> [usize; 2] {
        [self.channels, self.filters].map(|all| all / self.groups.max(1))
    }

    /// Weights of a filter.
    pub(crate) fn depth(&self) -> usize {
        let [channels, _] = self.of_group();
        let sides = [self.image.kernel_rows, self.image.kernel_cols];
        sides.into_iter().fold(channels, usize::saturating_mul)
    }
}

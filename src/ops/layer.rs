//! Convolution layers: batches of images with many channels.

use super::Conv2d;

/// The shape and options of a convolution layer (`nn.Conv2d`): each of `filters` outputs is a
/// weighted sum over windows of several channels, for each of `batch` images. For one image with
/// one channel see [`Conv2d`].
///
/// The input has `batch × channels × input_rows × input_cols` elements, the weights have `filters ×
/// channels / groups × kernel_rows × kernel_cols`, and the result has `batch × filters` times the
/// [output shape](Self::output_shape), all row-major ("NCHW" and "OIHW"). Filters and channels are
/// divided into `groups` of neighbours; a filter reads the channels of its own group. A depthwise
/// convolution has as many groups as channels.
///
/// ```
/// use relampago::{Conv2d, ConvLayer};
///
/// // 8 filters of 3 × 3 over 3 channels of 32 × 32, like `nn.Conv2d(3, 8, 3, padding="same")`.
/// let layer = ConvLayer::new(Conv2d::same(32, 32, 3, 3), 3, 8);
/// assert_eq!(layer.output_shape(), (32, 32));
/// assert_eq!(layer.with_dilation(2, 2).output_shape(), (32, 32));
/// ```
#[doc(alias = "conv2d")]
#[doc(alias = "nn.Conv2d")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ConvLayer {
    /// Rows, columns, kernel, stride and padding of each channel.
    pub image: Conv2d,
    /// The number of images.
    pub batch: usize,
    /// The number of input channels, a multiple of `groups`.
    pub channels: usize,
    /// The number of output channels, a multiple of `groups`.
    pub filters: usize,
    /// The number of groups of channels and filters, at least 1.
    pub groups: usize,
    /// The distance between rows of the kernel (the vertical dilation), at least 1.
    pub dilation_rows: usize,
    /// The distance between columns of the kernel (the horizontal dilation), at least 1.
    pub dilation_cols: usize,
}

impl ConvLayer {
    /// Creates a layer for one image, with one group and no dilation.
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

    /// Returns the layer with this number of images.
    #[must_use]
    pub fn with_batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    /// Returns the layer with this number of groups.
    #[must_use]
    pub fn with_groups(self, groups: usize) -> Self {
        Self { groups, ..self }
    }

    /// Returns the layer with kernel weights that are `rows` and `cols` apart (dilation).
    #[must_use]
    pub fn with_dilation(self, rows: usize, cols: usize) -> Self {
        Self {
            dilation_rows: rows,
            dilation_cols: cols,
            ..self
        }
    }

    /// Returns the rows and columns of each output channel.
    pub fn output_shape(&self) -> (usize, usize) {
        self.window().output_shape()
    }

    /// Returns the rows and columns of zeros before the first row and column of each channel.
    pub fn padding_before(&self) -> (usize, usize) {
        self.window().padding_before()
    }

    /// Returns the convolution of one channel with a kernel of the dilated size.
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

    /// Returns the channels and filters of a group; zeros if there are no groups, which validation
    /// refuses.
    pub(crate) fn of_group(&self) -> [usize; 2] {
        [self.channels, self.filters].map(|all| all / self.groups.max(1))
    }

    /// Returns the number of weights of a filter.
    pub(crate) fn depth(&self) -> usize {
        let [channels, _] = self.of_group();
        let sides = [self.image.kernel_rows, self.image.kernel_cols];
        sides.into_iter().fold(channels, usize::saturating_mul)
    }
}

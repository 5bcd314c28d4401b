//! Two-dimensional convolutions.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::join::with_front_axis;
use crate::lazy::movement::{check_positive, reshape};
use crate::lazy::node::{Kind, Node};
use crate::lazy::numeric::pad::pad;
use crate::lazy::shape::{check_result, mismatch};
use crate::lazy::tensor::Tensor;
use crate::ops::shape::MAX_KERNEL_SIDE;
use crate::ops::{Conv2d, ConvLayer};

/// The elements beyond the border of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Border {
    /// Zeros.
    #[default]
    Zeros,
    /// The nearest elements of the image.
    Edge,
    /// The elements of the image in reverse order, without the one at the border.
    Reflect,
}

/// The options of [`Tensor::conv2d`]: by default stride 1, no padding, no dilation and one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvOptions {
    stride: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
    border: Border,
    /// The padding before and after rows and columns; `None` is that of [`ConvOptions::same`].
    padding: Option<[usize; 2]>,
}

impl Default for ConvOptions {
    fn default() -> Self {
        Self {
            stride: [1; 2],
            dilation: [1; 2],
            groups: 1,
            border: Border::Zeros,
            padding: Some([0; 2]),
        }
    }
}

impl ConvOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the options with this distance between windows, at least 1.
    #[must_use]
    pub fn stride(self, rows: usize, cols: usize) -> Self {
        let stride = [rows, cols];
        Self { stride, ..self }
    }

    /// Returns the options with kernel elements that are so far apart, at least 1.
    #[must_use]
    pub fn dilation(self, rows: usize, cols: usize) -> Self {
        let dilation = [rows, cols];
        Self { dilation, ..self }
    }

    /// Returns the options with this number of groups of channels and filters, at least 1.
    #[must_use]
    pub fn groups(self, groups: usize) -> Self {
        Self { groups, ..self }
    }

    /// Returns the options with these numbers of elements before and after rows and columns.
    #[must_use]
    pub fn padding(self, rows: usize, cols: usize) -> Self {
        let padding = Some([rows, cols]);
        Self { padding, ..self }
    }

    /// Returns the options with the padding with which a result has `length / stride` elements, rounded up. The odd
    /// element is at the end.
    #[must_use]
    pub fn same(self) -> Self {
        let padding = None;
        Self { padding, ..self }
    }

    /// Returns the options with padding of this kind.
    #[must_use]
    pub fn border(self, border: Border) -> Self {
        Self { border, ..self }
    }

    fn check(&self) -> Result<()> {
        check_positive("groups", self.groups)?;
        for (what, sides) in [("stride", self.stride), ("dilation", self.dilation)] {
            sides
                .into_iter()
                .try_for_each(|side| check_positive(what, side))?;
        }
        Ok(())
    }

    /// Returns the elements before and after an axis of `length` elements, for windows of `window`.
    fn sides(&self, axis: usize, length: usize, window: usize) -> [usize; 2] {
        if let Some(padding) = self.padding {
            return [padding[axis]; 2];
        }
        let last = (length - 1) / self.stride[axis] * self.stride[axis];
        let total = last.saturating_add(window).saturating_sub(length);
        [total / 2, total - total / 2]
    }
}

/// Convolutions.
impl Tensor {
    /// Convolves images of shape `[images, channels, rows, columns]`, or one image without the first axis, with weights of
    /// shape `[filters, channels / groups, rows, columns]`. As in machine learning, kernels are not flipped.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{Border, ConvOptions, GpuDevice, Tensors};
    ///
    /// let tensors = Tensors::new(&GpuDevice::new()?);
    /// let image = tensors.tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], &[1, 3, 3])?;
    /// let kernel = tensors.full(&[1, 1, 3, 3], 1.0 / 9.0)?;
    /// let blurred = image.conv2d(&kernel, ConvOptions::new().same().border(Border::Edge))?;
    /// assert_eq!(blurred.shape(), [1, 3, 3]);
    /// assert!((blurred.read()?[4] - 5.0).abs() < 1e-5);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ShapeMismatch` for channels or kernels that do not fit, `Empty` for images without elements, `InvalidArgument` for
    /// an option of 0.
    #[doc(alias = "convolution")]
    pub fn conv2d(&self, weights: &Tensor, options: ConvOptions) -> Result<Tensor> {
        let weights = self.beside("weights", weights)?;
        options.check()?;
        check_layer(&self.node, &weights, options.groups)?;
        let is_stack = self.rank() == 4;
        let images = if is_stack {
            Arc::clone(&self.node)
        } else {
            with_front_axis(&self.node)
        };
        let result = convolve(images, &weights, &options)?;
        if is_stack {
            return Ok(self.with(result));
        }
        let shape = result.shape[1..].to_vec();
        Ok(self.with(reshape(&result, &shape)))
    }
}

/// Checks ranks, channels and groups.
fn check_layer(x: &Node, weights: &Node, groups: usize) -> Result<()> {
    let (own, needed) = (&x.shape, &weights.shape);
    if !matches!(own.len(), 3 | 4) || needed.len() != 4 {
        let shapes = format!("shapes {own:?} and {needed:?} of `weights`");
        let must =
            "[images, channels, rows, columns] and [filters, channels / groups, rows, columns]";
        return Err(mismatch("conv2d", format!("{shapes} must be {must}")));
    }
    let channels = own[own.len() - 3];
    let is_divided = needed[0].is_multiple_of(groups);
    if needed[1].checked_mul(groups) != Some(channels) || !is_divided {
        let has = format!("`weights` has shape {needed:?}");
        let what = format!("the {channels} channels in {groups} groups of {own:?}");
        return Err(mismatch(
            "conv2d",
            format!("{has}, which does not fit {what}"),
        ));
    }
    if own[own.len() - 2..].contains(&0) || needed.contains(&0) {
        return Err(Error::Empty { op: "conv2d" });
    }
    Ok(())
}

/// Records the convolution of a stack of images.
fn convolve(images: Arc<Node>, weights: &Arc<Node>, options: &ConvOptions) -> Result<Arc<Node>> {
    let lengths = [images.shape[2], images.shape[3]];
    let kernel = [weights.shape[2], weights.shape[3]];
    let window = [
        spread(kernel[0], options.dilation[0])?,
        spread(kernel[1], options.dilation[1])?,
    ];
    let sides = [0, 1].map(|k| options.sides(k, lengths[k], window[k]));
    // The kernels themselves pad by zeros.
    let is_same = options.border == Border::Zeros && options.padding.is_none();
    let mut padded = images;
    if !is_same {
        for (k, sides) in sides.into_iter().enumerate() {
            padded = pad("conv2d", &padded, k + 2, sides, &options.border.into())?;
        }
    }
    let fits = |k: usize| is_same || window[k] <= padded.shape[k + 2];
    if !fits(0) || !fits(1) {
        let dilation = options.dilation;
        let kernel = format!("a kernel of {kernel:?} elements with dilation {dilation:?}");
        let images = &padded.shape[2..];
        let message = format!("{kernel} does not fit into images of {images:?}");
        return Err(mismatch("conv2d", message));
    }
    layer(&padded, weights, options, is_same)
}

/// Returns the number of elements of an axis that a kernel of `side` elements covers.
fn spread(side: usize, dilation: usize) -> Result<usize> {
    let spread = (side - 1).checked_mul(dilation);
    let window = spread.and_then(|spread| spread.checked_add(1));
    let window = window.filter(|&window| window <= MAX_KERNEL_SIDE);
    window.ok_or_else(|| {
        let spread = format!("the {side} elements of the kernel spread over {MAX_KERNEL_SIDE}");
        let requirement = format!("such that {spread} at most");
        Error::invalid("dilation", dilation.to_string(), requirement)
    })
}

fn layer(
    images: &Arc<Node>,
    weights: &Arc<Node>,
    options: &ConvOptions,
    is_same: bool,
) -> Result<Arc<Node>> {
    let &[batch, channels, rows, cols] = &images.shape[..] else {
        return Err(mismatch(
            "conv2d",
            format!("{:?} are no images", images.shape),
        ));
    };
    let (filters, kernel) = (weights.shape[0], &weights.shape[2..]);
    let image = if is_same {
        Conv2d::same(rows, cols, kernel[0], kernel[1])
    } else {
        Conv2d::valid(rows, cols, kernel[0], kernel[1])
    };
    let image = image.with_stride(options.stride[0], options.stride[1]);
    let layer = ConvLayer::new(image, channels, filters)
        .with_batch(batch)
        .with_groups(options.groups)
        .with_dilation(options.dilation[0], options.dilation[1]);
    let (rows, cols) = layer.output_shape();
    let shape = [batch, filters, rows, cols];
    check_result(&shape)?;
    Ok(Node::operation(
        Kind::Convolve(layer),
        &[images, weights],
        &shape,
    ))
}

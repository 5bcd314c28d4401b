//! Fourier transforms of any length. Lengths other than powers of two become convolutions, whose length is one
//! (Bluestein, 1970).

use std::f64::consts::PI;

use crate::alloc::try_zeros;
use crate::error::{Error, Result};
use crate::lazy::axes::axis_of;
use crate::lazy::node::Rows;
use crate::lazy::shape::mismatch;
use crate::lazy::tensor::Tensor;
use crate::lazy::tensors::Tensors;
use crate::ops::rope::cosine_and_sine;
use crate::ops::shape::{MAX_EXACT_INDEX, check_limit};

/// Fourier transforms. The last axis of complex numbers has their real and imaginary parts, and `axis` counts the others.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[1.0, 2.0, 0.0, 1.0], &[4])?;
/// let spectrum = x.rfft(0)?;
/// assert_eq!(spectrum.shape(), [3, 2]);
/// assert_eq!(spectrum.read()?, [4.0, 0.0, 1.0, -1.0, -2.0, 0.0]);
/// assert_eq!(spectrum.irfft(4, 0)?.read()?, [1.0, 2.0, 0.0, 1.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// The discrete Fourier transform of complex numbers: `yₖ = Σⱼ xⱼ · e^(−2πi·jk/n)`.
    ///
    /// # Errors
    /// `ShapeMismatch` unless the last axis has 2 elements, `InvalidArgument` for an axis that complex numbers do not
    /// have, `Empty` for an axis without elements, `LimitExceeded` for more than 2²³ of them (2²⁴, if that is their
    /// number).
    pub fn fft(&self, axis: isize) -> Result<Tensor> {
        let axis = self.complex_axis("fft", axis)?;
        let last = self.swap_axes(axis, -2)?;
        transformed(&last)?.swap_axes(axis, -2)
    }

    /// The inverse of [`fft`](Self::fft): `yⱼ = 1/n · Σₖ xₖ · e^(2πi·jk/n)`.
    ///
    /// # Errors
    /// The errors of [`fft`](Self::fft).
    pub fn ifft(&self, axis: isize) -> Result<Tensor> {
        let axis = self.complex_axis("ifft", axis)?;
        // Numbers with their parts swapped have the inverse transform, with its parts swapped.
        let transform = self.flip(-1)?.fft(axis)?.flip(-1)?;
        transform.mul(1.0 / self.shape()[axis as usize] as f32)
    }

    /// The first `n / 2 + 1` elements of the transform of `n` real numbers, which have the others as conjugates. The
    /// result has one axis more.
    ///
    /// # Errors
    /// `InvalidArgument` for an axis that the tensor does not have, and the errors of [`fft`](Self::fft).
    pub fn rfft(&self, axis: isize) -> Result<Tensor> {
        let axis = axis_of(axis, self.shape())?;
        let real = self.unsqueeze(-1)?;
        let complex = Self::concat(&[&real, &real.zeros_like()?], -1)?;
        let end = self.shape()[axis] / 2 + 1;
        complex
            .fft(axis as isize)?
            .slice(axis as isize, ..end as isize)
    }

    /// The `len` real numbers whose transform by [`rfft`](Self::rfft) this is. The imaginary parts of the first element
    /// and, if `len` is even, of the last one count as 0.
    ///
    /// # Errors
    /// `ShapeMismatch` unless the axis has `len / 2 + 1` elements and the last axis 2, and the errors of
    /// [`fft`](Self::fft).
    pub fn irfft(&self, len: usize, axis: isize) -> Result<Tensor> {
        let axis = self.complex_axis("irfft", axis)?;
        let own = self.shape()[axis as usize];
        if len == 0 || own != len / 2 + 1 {
            let has = format!("axis {axis} of shape {:?} has {own} elements", self.shape());
            let needed = format!("{} for a result of {len}", len / 2 + 1);
            return Err(mismatch("irfft", format!("{has}, but must have {needed}")));
        }
        let conjugates = self.slice(axis, 1..len.div_ceil(2) as isize)?.flip(axis)?;
        let conjugates = conjugates.mul(&self.tensors().tensor(&[1.0, -1.0], &[2])?)?;
        Self::concat(&[self, &conjugates], axis)?
            .ifft(axis)?
            .at(-1, 0)
    }

    /// Returns an axis of complex numbers from 0 on.
    fn complex_axis(&self, op: &'static str, axis: isize) -> Result<isize> {
        let Some((2, lengths)) = self.shape().split_last() else {
            let shape = self.shape();
            let message =
                format!("shape {shape:?} must end in an axis of 2 elements, for complex numbers");
            return Err(mismatch(op, message));
        };
        let axis = axis_of(axis, lengths)?;
        if lengths[axis] == 0 {
            return Err(Error::Empty { op });
        }
        Ok(axis as isize)
    }
}

/// Records the transform of the last axis of complex numbers.
fn transformed(x: &Tensor) -> Result<Tensor> {
    let len = x.shape()[x.rank() - 2];
    if !len.is_power_of_two() {
        return convolved(x, len);
    }
    check_limit("the length of the axis", len, MAX_EXACT_INDEX)?;
    let own: Vec<isize> = x.shape().iter().map(|&length| length as isize).collect();
    let mut joined = own.clone();
    joined.truncate(own.len() - 2);
    joined.push(2 * len as isize);
    let rows = x.reshape(&joined)?;
    rows.along_axis("fft", -1, Rows::Fft, &[])?.reshape(&own)
}

/// Records the transform as a convolution with a chirp: `jk = (j² + k² − (k − j)²) / 2`.
fn convolved(x: &Tensor, len: usize) -> Result<Tensor> {
    let tensors = x.tensors();
    let wide = (2 * len - 1).next_power_of_two();
    check_limit("twice the length of the axis", wide, MAX_EXACT_INDEX)?;
    let down = chirp(&tensors, len, |at| (at < len).then_some(at), -1.0, len)?;
    let both_ways = |at: usize| {
        (at < len)
            .then_some(at)
            .or((wide - at < len).then(|| wide - at))
    };
    let up = chirp(&tensors, len, both_ways, 1.0, wide)?;
    let mut sides = vec![[0; 2]; x.rank()];
    sides[x.rank() - 2] = [0, wide - len];
    let padded = times(x, &down)?.pad_with(&sides, 0.0)?;
    let spectrum = times(&transformed(&padded)?, &transformed(&up)?)?;
    let result = transformed(&spectrum.flip(-1)?)?.flip(-1)?;
    let result = result.slice(-2, ..len as isize)?.mul(1.0 / wide as f32)?;
    times(&result, &down)
}

/// Creates `count` complex numbers `e^(sign · πi·j²/len)`, where `index` returns `j`; 0 where there is none.
fn chirp(
    tensors: &Tensors,
    len: usize,
    index: impl Fn(usize) -> Option<usize>,
    sign: f64,
    count: usize,
) -> Result<Tensor> {
    let mut values = try_zeros(2 * count)?;
    for (at, pair) in values.chunks_exact_mut(2).enumerate() {
        if let Some(j) = index(at) {
            // The square is exact, since indices are at most 2²⁴.
            let turns = (j as u64 * j as u64 % (2 * len as u64)) as f64 / len as f64;
            pair.copy_from_slice(&cosine_and_sine(sign * PI * turns).map(|part| part as f32));
        }
    }
    tensors.tensor(&values, &[count, 2])
}

/// Records the product of complex numbers.
fn times(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let signs = a.tensors().tensor(&[-1.0, 1.0], &[2])?;
    let (re, im) = (b.slice(-1, ..1)?, b.slice(-1, 1..)?);
    a.mul(&re)?.add(&a.flip(-1)?.mul(&im.mul(&signs)?)?)
}

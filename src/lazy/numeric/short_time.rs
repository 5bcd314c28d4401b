//! Short-time Fourier transforms.

use crate::error::{Error, Result};
use crate::lazy::conv2d::Border;
use crate::lazy::movement::check_positive;
use crate::lazy::shape::mismatch;
use crate::lazy::tensor::Tensor;

/// Short-time Fourier transforms, as `PyTorch`'s `stft` with `center=True` and its inverse.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let signal = tensors.arange(0.0, 64.0, 1.0)?.mul(0.5)?.sin()?;
/// let window = tensors.ones(&[16])?;
/// let spectrogram = signal.stft(&window, 4)?;
/// assert_eq!(spectrogram.shape(), [9, 17, 2]);
/// let again = spectrogram.istft(&window, 4, 64)?;
/// assert!(again.sub(&signal)?.abs()?.max(..)?.item()? < 1e-5);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// The spectra of windows of the last axis, `hop` elements apart: shape `[…, frequencies, windows, 2]`. The signal is
    /// reflected at both ends, so that window `k` has its centre at element `k · hop`. `window` is a vector of weights.
    ///
    /// # Errors
    /// `ShapeMismatch` for a window that is no vector, `InvalidArgument` for a hop of 0 and for a signal of not more than
    /// half a window, `Empty` for no signal or no window.
    #[doc(alias = "spectrogram")]
    pub fn stft(&self, window: &Tensor, hop: usize) -> Result<Tensor> {
        let size = window_size("stft", window, hop)?;
        let Some(&len) = self.shape().last() else {
            return Err(mismatch(
                "stft",
                "a scalar has no axis to transform".to_owned(),
            ));
        };
        let mut sides = vec![[0; 2]; self.rank()];
        sides[self.rank() - 1] = [size / 2; 2];
        let padded = self.pad(&sides, Border::Reflect)?;
        let count = (len + size / 2 * 2).saturating_sub(size) / hop + 1;
        let indices = (0..count).flat_map(|at| (at * hop..at * hop + size).map(|at| at as f32));
        let indices: Vec<f32> = indices.collect();
        let indices = self.tensors().tensor(&indices, &[count, size])?;
        let windows = padded.gather(&indices, -1)?.mul(window)?;
        windows.rfft(-1)?.swap_axes(-3, -2)
    }

    /// The signal of `len` elements whose windows have these spectra: the inverse of [`stft`](Self::stft), and the
    /// nearest signal (Griffin and Lim, 1984) where no signal has them. NaN where no window has a weight.
    ///
    /// # Errors
    /// `ShapeMismatch` for spectra of another window and for a length beyond them, and the errors of `stft`.
    pub fn istft(&self, window: &Tensor, hop: usize, len: usize) -> Result<Tensor> {
        let size = window_size("istft", window, hop)?;
        let rank = self.rank();
        if rank < 3 || self.shape()[rank - 3] != size / 2 + 1 || self.shape()[rank - 1] != 2 {
            let shape = self.shape();
            let needed = format!(
                "[…, {}, windows, 2] for a window of {size} elements",
                size / 2 + 1
            );
            let message = format!("shape {shape:?} must be {needed}");
            return Err(mismatch("istft", message));
        }
        let count = self.shape()[rank - 2];
        let most = (size + hop * count.saturating_sub(1)).saturating_sub(size / 2);
        if count == 0 {
            return Err(Error::Empty { op: "istft" });
        }
        if len > most {
            let message = format!("the {count} windows reach to {most} elements, but not to {len}");
            return Err(mismatch("istft", message));
        }
        let windows = self.swap_axes(-3, -2)?.irfft(size, -1)?.mul(window)?;
        let weights = window.square()?.broadcast_to(&[count, size])?;
        let sums = windows.overlapped(hop)?.div(&weights.overlapped(hop)?)?;
        let start = (size / 2) as isize;
        sums.slice(-1, start..start + len as isize)
    }

    /// Adds windows, whose elements are the last axis, that are `hop` elements apart.
    fn overlapped(&self, hop: usize) -> Result<Tensor> {
        let rank = self.rank();
        let [count, size] = [self.shape()[rank - 2], self.shape()[rank - 1]];
        let parts = size.div_ceil(hop);
        let mut sides = vec![[0; 2]; rank];
        sides[rank - 1] = [0, parts * hop - size];
        let padded = self.pad_with(&sides, 0.0)?;
        let part = |at: usize| {
            let start = (at * hop) as isize;
            let part = padded.slice(-1, start..start + hop as isize)?;
            let mut sides = vec![[0; 2]; rank];
            sides[rank - 2] = [at, parts - 1 - at];
            part.pad_with(&sides, 0.0)
        };
        let sum = (1..parts).try_fold(part(0)?, |sum, at| sum.add(&part(at)?))?;
        let mut shape: Vec<isize> = sum.shape().iter().map(|&length| length as isize).collect();
        shape.truncate(rank - 2);
        shape.push(((count + parts - 1) * hop) as isize);
        sum.reshape(&shape)
    }
}

fn window_size(op: &'static str, window: &Tensor, hop: usize) -> Result<usize> {
    check_positive("hop", hop)?;
    match window.shape() {
        [0] => Err(Error::Empty { op }),
        &[size] => Ok(size),
        shape => Err(mismatch(
            op,
            format!("`window` has shape {shape:?}, but must be a vector"),
        )),
    }
}

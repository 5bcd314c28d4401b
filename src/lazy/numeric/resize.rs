//! Resizing of axes by interpolation.

use crate::alloc::try_zeros;
use crate::error::{Error, Result};
use crate::lazy::movement::check_positive;
use crate::lazy::shape::mismatch;
use crate::lazy::tensor::Tensor;
use crate::ops::shape::{MAX_EXACT_INDEX, check_limit};

/// The function by which [`Tensor::resize`] computes elements between others. Names and meaning are those of `PyTorch`'s
/// `interpolate` with `align_corners=False`: the centre of element `i` of `n` is at `(i + ½) / n` of the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interpolation {
    /// The element at `⌊i · length / n⌋`.
    Nearest,
    /// A line between two neighbours.
    Bilinear,
    /// A cubic of four neighbours, with the coefficient −0.75.
    Bicubic,
    /// [`Bilinear`](Self::Bilinear), whose triangle is widened by the factor of a reduction: smaller images have no
    /// aliases.
    BilinearAntialiased,
    /// A cubic with the coefficient −0.5, which is widened by the factor of a reduction.
    BicubicAntialiased,
}

/// The elements that an element of the result is a weighted sum of: weights from a first index on.
struct Taps {
    first: usize,
    weights: Vec<f64>,
}

/// The number of weights up to which sums of gathered elements are faster than a matmul.
const MOST_GATHERED: usize = 16;

/// Resizing.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Interpolation, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let row = tensors.tensor(&[0.0, 4.0], &[1, 1, 2])?;
/// let wide = row.resize(&[1, 4], Interpolation::Bilinear)?;
/// assert_eq!(wide.read()?, [0.0, 1.0, 3.0, 4.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Resizes the last axes to these lengths, one after the other.
    ///
    /// # Errors
    /// `ShapeMismatch` for more lengths than axes, `InvalidArgument` for a length of 0, `Empty` for an axis without
    /// elements.
    #[doc(alias = "interpolate")]
    #[doc(alias = "upsample")]
    pub fn resize(&self, lengths: &[usize], interpolation: Interpolation) -> Result<Tensor> {
        let rank = self.rank();
        if lengths.len() > rank {
            let shape = self.shape();
            let message = format!("{lengths:?} has more lengths than shape {shape:?} has axes");
            return Err(mismatch("resize", message));
        }
        let mut x = self.clone();
        for (k, &length) in lengths.iter().enumerate() {
            check_positive("lengths", length)?;
            x = x.resized(rank - lengths.len() + k, length, interpolation)?;
        }
        Ok(x)
    }

    fn resized(&self, axis: usize, length: usize, interpolation: Interpolation) -> Result<Tensor> {
        let own = self.shape()[axis];
        if own == 0 {
            return Err(Error::Empty { op: "resize" });
        }
        if own == length {
            return Ok(self.clone());
        }
        check_limit("the length of the axis", own.max(length), MAX_EXACT_INDEX)?;
        let taps: Vec<Taps> = (0..length)
            .map(|at| taps(interpolation, at, own, length))
            .collect();
        let most = taps.iter().map(|taps| taps.weights.len()).max();
        match most.unwrap_or(1) {
            1 => self.gather(&self.indices(&taps, 0)?, axis as isize),
            count if count <= MOST_GATHERED => self.gathered(axis, &taps, count),
            _ => self.multiplied(axis, &taps, own),
        }
    }

    /// Sums elements that are gathered by index and weighted.
    fn gathered(&self, axis: usize, taps: &[Taps], count: usize) -> Result<Tensor> {
        let mut shape = vec![1; self.rank() - axis];
        shape[0] = taps.len();
        let part = |at: usize| {
            let weights = taps.iter().map(|taps| taps.weight(at) as f32);
            let weights = self
                .tensors()
                .tensor(&weights.collect::<Vec<_>>(), &shape)?;
            let elements = self.gather(&self.indices(taps, at)?, axis as isize)?;
            elements.mul(&weights)
        };
        (1..count).try_fold(part(0)?, |sum, at| sum.add(&part(at)?))
    }

    /// Returns the index of the element that has weight number `at`; the first one, where there are fewer.
    fn indices(&self, taps: &[Taps], at: usize) -> Result<Tensor> {
        let index = |taps: &Taps| {
            let is_there = at < taps.weights.len();
            (taps.first + if is_there { at } else { 0 }) as f32
        };
        let indices: Vec<f32> = taps.iter().map(index).collect();
        self.tensors().tensor(&indices, &[indices.len()])
    }

    /// Multiplies the axis by a matrix of all weights.
    fn multiplied(&self, axis: usize, taps: &[Taps], own: usize) -> Result<Tensor> {
        let mut weights = try_zeros(own * taps.len())?;
        for (row, taps) in taps.iter().enumerate() {
            for (at, &weight) in taps.weights.iter().enumerate() {
                weights[row * own + taps.first + at] = weight as f32;
            }
        }
        let weights = self.tensors().tensor(&weights, &[taps.len(), own])?;
        let last = self.swap_axes(axis as isize, -1)?;
        let result = last.matmul(&weights.transpose()?)?;
        result.swap_axes(axis as isize, -1)
    }
}

impl Taps {
    fn weight(&self, at: usize) -> f64 {
        self.weights.get(at).copied().unwrap_or(0.0)
    }

    /// Returns the taps of weights at indices that are moved into an axis of `own` elements.
    fn clamped(first: isize, weights: &[f64], own: usize) -> Self {
        let index = |at: usize| (first + at as isize).clamp(0, own as isize - 1) as usize;
        let mut taps = Self {
            first: index(0),
            weights: Vec::new(),
        };
        for (at, &weight) in weights.iter().enumerate() {
            let place = index(at) - taps.first;
            match taps.weights.get_mut(place) {
                Some(sum) => *sum += weight,
                None => taps.weights.push(weight),
            }
        }
        taps
    }
}

/// Returns the weights of element `at` of `length`, of an axis of `own` elements.
fn taps(interpolation: Interpolation, at: usize, own: usize, length: usize) -> Taps {
    let scale = own as f64 / length as f64;
    let centre = (at as f64 + 0.5) * scale;
    match interpolation {
        Interpolation::Nearest => Taps {
            // Both are at most 2²⁴.
            first: (at as u64 * own as u64 / length as u64) as usize,
            weights: vec![1.0],
        },
        Interpolation::Bilinear => {
            let place = (centre - 0.5).max(0.0);
            let share = place.fract();
            Taps::clamped(place as isize, &[1.0 - share, share], own)
        }
        Interpolation::Bicubic => {
            let place = centre - 0.5;
            let first = place.floor() - 1.0;
            let weights = [0.0, 1.0, 2.0, 3.0].map(|k| cubic(place - first - k, -0.75));
            Taps::clamped(first as isize, &weights, own)
        }
        Interpolation::BilinearAntialiased => {
            widened(centre, scale, own, 1.0, |x| (1.0 - x.abs()).max(0.0))
        }
        Interpolation::BicubicAntialiased => widened(centre, scale, own, 2.0, |x| cubic(x, -0.5)),
    }
}

/// Returns the weights of a filter that ends at `radius`, widened by the factor of a reduction. Their sum is 1.
fn widened(centre: f64, scale: f64, own: usize, radius: f64, filter: impl Fn(f64) -> f64) -> Taps {
    let wide = scale.max(1.0);
    let first = (centre - radius * wide + 0.5).max(0.0) as usize;
    let end = ((centre + radius * wide + 0.5) as usize).min(own);
    let weight = |at: usize| filter((at as f64 + 0.5 - centre) / wide);
    let weights: Vec<f64> = (first..end).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    Taps {
        first,
        weights: weights.iter().map(|weight| weight / sum).collect(),
    }
}

/// Returns the cubic convolution kernel (Keys, 1981) with coefficient `a` at a distance.
fn cubic(distance: f64, a: f64) -> f64 {
    let x = distance.abs();
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

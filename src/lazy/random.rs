//! Tensors of random numbers.

use std::sync::Arc;

use crate::alloc::try_zeros;
use crate::error::Result;
use crate::lazy::node::Source;
use crate::lazy::shape::{check_shape, size_of};
use crate::lazy::tensor::Tensor;
use crate::lazy::tensors::Tensors;
use crate::random::Philox;

impl Tensors {
    /// Creates a tensor of random numbers from 0 to below 1, all equally likely: those of [`Philox::uniform`] from
    /// index 0 on, the same for a seed on every back-end.
    ///
    /// ```
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let tensors = Tensors::new(&GpuDevice::new()?);
    /// let angles = tensors.random_uniform(&[2, 3], 7)?.mul(std::f32::consts::TAU)?;
    /// assert!(angles.read()?.iter().all(|angle| (0.0..6.2832).contains(angle)));
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LimitExceeded` for more than 6 axes, `ShapeOverflow`, `OutOfMemory`.
    #[doc(alias = "rand")]
    pub fn random_uniform(&self, shape: &[usize], seed: u64) -> Result<Tensor> {
        self.drawn(shape, |values| Philox::new(seed).uniform(0, values))
    }

    /// Creates a tensor of random numbers of the normal distribution with mean 0 and variance 1: those of
    /// [`Philox::normal`] from index 0 on, the same for a seed on every back-end.
    ///
    /// ```
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let tensors = Tensors::new(&GpuDevice::new()?);
    /// // A layer's initial weights, with a standard deviation of 0.1.
    /// let weights = tensors.random_normal(&[64, 32], 1)?.mul(0.1)?;
    /// assert!(weights.mean(..)?.item()?.abs() < 0.01);
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`random_uniform`](Self::random_uniform).
    #[doc(alias = "randn")]
    #[doc(alias = "gaussian")]
    pub fn random_normal(&self, shape: &[usize], seed: u64) -> Result<Tensor> {
        self.drawn(shape, |values| Philox::new(seed).normal(0, values))
    }

    fn drawn(&self, shape: &[usize], draw: impl FnOnce(&mut [f32])) -> Result<Tensor> {
        check_shape(shape)?;
        let mut values = try_zeros(size_of(shape))?;
        draw(&mut values);
        Ok(self.leaf(shape, Source::Values(Arc::new(values))))
    }
}

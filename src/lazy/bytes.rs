//! Tensors of bytes, such as images.

use std::sync::Arc;

use crate::alloc::try_reserved;
use crate::error::Result;
use crate::lazy::node::{Kind, Node, Source};
use crate::lazy::shape::size_of;
use crate::lazy::tensor::Tensor;
use crate::lazy::tensors::{Tensors, check_size};

/// The number of bytes in the word of a value.
const BYTES: usize = 4;

impl Tensors {
    /// Creates a tensor of bytes as numbers from 0 to 1, `byte / 255`, which the device computes. It computes them again
    /// for each result, unless [`Tensor::run_async`] keeps them.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let tensors = Tensors::new(&GpuDevice::new()?);
    /// // An image of one row: two pixels of red, green, blue and alpha.
    /// let image = tensors.from_bytes(&[0, 51, 102, 255, 255, 204, 0, 255], &[1, 2, 4])?;
    /// let planes = image.permute(&[2, 0, 1])?;
    /// assert_eq!(planes.read()?, [0.0, 1.0, 0.2, 0.8, 0.4, 0.0, 1.0, 1.0]);
    /// let darker = image.mul(0.5)?;
    /// assert_eq!(darker.to_bytes()?, [0, 26, 51, 128, 128, 102, 0, 128]);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`tensor`](Self::tensor).
    #[doc(alias = "image")]
    pub fn from_bytes(&self, bytes: &[u8], shape: &[usize]) -> Result<Tensor> {
        check_size("from_bytes", bytes.len(), shape)?;
        let mut words = try_reserved(bytes.len().div_ceil(BYTES))?;
        words.extend(bytes.chunks(BYTES).map(|given| {
            let mut word = [0; BYTES];
            word[..given.len()].copy_from_slice(given);
            f32::from_bits(u32::from_le_bytes(word))
        }));
        let len = words.len();
        let words = Node::leaf(&[len], Source::Values(Arc::new(words)));
        let numbers = self.with(Node::operation(
            Kind::UnpackBytes { stride: 1 },
            &[&words],
            &[BYTES * len],
        ));
        let numbers = numbers.slice(0, ..bytes.len() as isize)?;
        Ok(self.with(Node::operation(Kind::Reshape, &[&numbers.node], shape)))
    }
}

impl Tensor {
    /// Computes the elements as bytes in row-major order: the nearest ones to `255 · x`. NaN becomes 0. Only bytes are
    /// read from the device.
    #[doc(alias = "image")]
    pub async fn to_bytes_async(&self) -> Result<Vec<u8>> {
        let words = self.size().div_ceil(BYTES);
        let words = self.with(Node::operation(
            Kind::PackBytes { stride: 1 },
            &[&self.node],
            &[words],
        ));
        let words = words.read_async().await?;
        let bytes = words.iter().flat_map(|word| word.to_bits().to_le_bytes());
        Ok(bytes.take(size_of(self.shape())).collect())
    }
}

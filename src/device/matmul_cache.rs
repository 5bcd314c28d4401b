//! [`GpuMatmulCache`]: named weights, prepared once for many matmuls.

use std::sync::Arc;

use crate::device::GpuDevice;
use crate::device::executor::Placed;
use crate::error::{Error, Result};
use crate::ops::shape::check_matrix;
#[cfg(not(target_arch = "wasm32"))]
use crate::runtime::block_on;
use crate::tensor::quantized::{QuantizedWeights, WeightFormat};
use crate::tensor::{BoundView, TensorView};

/// Named weight matrices for matmuls with changing inputs.
///
/// On SIMD the weights are packed once in the order in which the innermost loop reads them. On a
/// GPU they stay in its memory. Quantized formats ([`WeightFormat`]) take less memory; the weights
/// are dequantized during the matmul, block by block on SIMD and in each invocation of the kernel
/// on a GPU. From 16 rows on, a GPU dequantizes the whole matrix first, into a buffer of `k · n`
/// elements that other matmuls reuse. If the device multiplies in f16
/// ([`DeviceBuilder::half_precision`](crate::DeviceBuilder::half_precision)), weights of
/// [`WeightFormat::F16`] are stored a second time in the layout of cooperative matrices, for
/// matmuls of many rows. The accuracy is that of [`GpuDevice::matmul_async`] with the dequantized
/// weights.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, GpuMatmulCache};
///
/// let mut cache = GpuMatmulCache::new(GpuDevice::new()?);
/// cache.insert("layer 1", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3)?; // 2 × 3, row-major
/// let mut out = [0.0; 3];
/// cache.matmul_cached("layer 1", &[1.0, 10.0], &mut out, 1)?;
/// assert_eq!(out, [41.0, 52.0, 63.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[doc(alias = "quantized weights")]
#[doc(alias = "weight cache")]
pub struct GpuMatmulCache {
    device: GpuDevice,
    /// The weights in the order of their names, shared so that a matmul can continue while its weights are replaced.
    weights: Vec<(String, Arc<Placed>)>,
}

impl GpuMatmulCache {
    /// Creates an empty cache.
    pub fn new(device: GpuDevice) -> Self {
        Self {
            device,
            weights: Vec::new(),
        }
    }

    /// Stores the weights of a row-major `k × n` matrix under a name, and replaces any that have
    /// this name.
    ///
    /// # Errors
    /// `LengthMismatch`, `ShapeOverflow`, `OutOfMemory`, and device errors.
    pub async fn insert_async(
        &mut self,
        name: &str,
        weights: &[f32],
        k: usize,
        n: usize,
    ) -> Result<()> {
        check_matrix("weights", [k, n], weights.len(), " (k × n)")?;
        let view = TensorView::new_2d(k, n)?;
        self.insert_view_async(name, &view.bind(weights)?, WeightFormat::F32)
            .await
    }

    /// Stores the weights of a `k × n` view in a format. The view may have any strides, such as
    /// those of a transposed matrix.
    ///
    /// # Errors
    /// The errors of [`GpuMatmulCache::insert_async`]; `InvalidArgument` for a view of more than two dimensions, and for
    /// elements that the format cannot hold.
    pub async fn insert_view_async(
        &mut self,
        name: &str,
        weights: &BoundView<'_>,
        format: WeightFormat,
    ) -> Result<()> {
        let weights = Placed::of_view(&self.device, weights, format).await?;
        self.keep(name, weights);
        Ok(())
    }

    /// Stores weights that are already quantized.
    ///
    /// # Errors
    /// `LimitExceeded` if one GPU buffer cannot hold them, and device errors.
    pub async fn insert_quantized_async(
        &mut self,
        name: &str,
        weights: QuantizedWeights,
    ) -> Result<()> {
        let weights = Placed::of_quantized(&self.device, weights).await?;
        self.keep(name, weights);
        Ok(())
    }

    /// Computes `out = input · weights`, an `m × k` matrix times the `k × n` weights of that name,
    /// all row-major.
    ///
    /// # Errors
    /// `InvalidArgument` if the name has no weights, `LengthMismatch`, `ShapeOverflow`,
    /// `OutOfMemory`, and device errors. On an error `out` is left unchanged.
    #[doc(alias = "gemm")]
    pub async fn matmul_cached_async(
        &self,
        name: &str,
        input: &[f32],
        out: &mut [f32],
        m: usize,
    ) -> Result<()> {
        let weights = self.find(name)?;
        let [k, n] = weights.shape;
        check_matrix("input", [m, k], input.len(), " (m × k)")?;
        check_matrix("out", [m, n], out.len(), " (m × n)")?;
        self.device.check()?;
        weights.multiply(&self.device, input, out, m).await
    }

    /// Removes the weights of a name. Returns whether there were any.
    pub fn remove(&mut self, name: &str) -> bool {
        let position = self.position(name);
        position
            .map(|position| self.weights.remove(position))
            .is_ok()
    }

    /// Iterates over the names with the rows, columns and format of their weights, in alphabetical
    /// order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, [usize; 2], WeightFormat)> {
        let weights = self.weights.iter();
        weights.map(|(name, of)| (name.as_str(), of.shape, of.format))
    }

    /// Returns the number of weight matrices.
    pub fn weight_count(&self) -> usize {
        self.weights.len()
    }

    /// Returns the memory that all weights take, in bytes.
    pub fn weight_bytes(&self) -> usize {
        self.weights.iter().map(|(_, of)| of.bytes()).sum()
    }

    /// Returns the device that matmuls run on.
    pub fn device(&self) -> &GpuDevice {
        &self.device
    }

    pub(crate) fn keep(&mut self, name: &str, weights: Placed) {
        let weights = Arc::new(weights);
        match self.position(name) {
            Ok(position) => self.weights[position].1 = weights,
            Err(position) => self.weights.insert(position, (name.to_owned(), weights)),
        }
    }

    /// Returns the index of the weights of a name; the index at which they belong as an error.
    fn position(&self, name: &str) -> std::result::Result<usize, usize> {
        self.weights
            .binary_search_by(|(own, _)| own.as_str().cmp(name))
    }

    pub(crate) fn find(&self, name: &str) -> Result<Arc<Placed>> {
        let requirement = "the name of weights in the cache";
        let position = self.position(name);
        let position = position.map_err(|_| Error::invalid("name", name, requirement))?;
        Ok(Arc::clone(&self.weights[position].1))
    }
}

/// Blocking versions.
#[cfg(not(target_arch = "wasm32"))]
impl GpuMatmulCache {
    /// Blocking version of [`GpuMatmulCache::insert_async`].
    pub fn insert(&mut self, name: &str, weights: &[f32], k: usize, n: usize) -> Result<()> {
        block_on(self.insert_async(name, weights, k, n))
    }

    /// Blocking version of [`GpuMatmulCache::insert_view_async`].
    pub fn insert_view(
        &mut self,
        name: &str,
        weights: &BoundView<'_>,
        format: WeightFormat,
    ) -> Result<()> {
        block_on(self.insert_view_async(name, weights, format))
    }

    /// Blocking version of [`GpuMatmulCache::insert_quantized_async`].
    pub fn insert_quantized(&mut self, name: &str, weights: QuantizedWeights) -> Result<()> {
        block_on(self.insert_quantized_async(name, weights))
    }

    /// Blocking version of [`GpuMatmulCache::matmul_cached_async`].
    pub fn matmul_cached(
        &self,
        name: &str,
        input: &[f32],
        out: &mut [f32],
        m: usize,
    ) -> Result<()> {
        block_on(self.matmul_cached_async(name, input, out, m))
    }
}

impl std::fmt::Debug for GpuMatmulCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

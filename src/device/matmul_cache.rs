//! [`GpuMatmulCache`]: weights by name, brought once to where products are computed.

mod placed;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use placed::Placed;

use crate::device::GpuDevice;
use crate::error::{Error, Result};
use crate::ops::shape::{check_len, product};
#[cfg(not(target_arch = "wasm32"))]
use crate::runtime::block_on;
use crate::tensor::quantized::{QuantizedWeights, WeightFormat};
use crate::tensor::{BoundView, TensorView};

/// Named weights for products with ever new inputs.
///
/// On SIMD they are packed once in the order in which the innermost loop reads them; on a GPU
/// they stay in its memory. In fewer bits ([`WeightFormat`]) they take less of either, and are
/// unpacked on the way into the product: block by block into the cache, or by each invocation of
/// the GPU's kernel. From 16 rows on a GPU unpacks all of a matrix first, into memory of `k · n`
/// numbers that other products use again. Weights of [`WeightFormat::F16`] on a device that multiplies in binary16
/// ([`DeviceBuilder::half_precision`](crate::DeviceBuilder::half_precision)) lie there once more, as
/// cooperative matrices read them, for products of many rows. Products are as accurate as [`GpuDevice::matmul_async`] with the weights
/// that the format holds.
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
pub struct GpuMatmulCache {
    device: GpuDevice,
    /// Shared, so that a product may go on while its weights are replaced.
    weights: BTreeMap<String, Arc<Placed>>,
}

impl GpuMatmulCache {
    /// A cache without weights.
    pub fn new(device: GpuDevice) -> Self {
        Self {
            device,
            weights: BTreeMap::new(),
        }
    }

    /// Takes the weights of a row-major `k × n` matrix under a name, in place of any that had it.
    ///
    /// # Errors
    /// `LengthMismatch`, `ShapeOverflow`, `OutOfMemory`, and what the device says.
    pub async fn insert_async(
        &mut self,
        name: &str,
        weights: &[f32],
        k: usize,
        n: usize,
    ) -> Result<()> {
        check_len("weights", product("weights", k, n)?, weights.len())?;
        let view = TensorView::new_2d(k, n)?;
        self.insert_view_async(name, &view.bind(weights)?, WeightFormat::F32)
            .await
    }

    /// Takes the weights of a `k × n` matrix that lies anyhow, such as one that is stored
    /// transposed, and keeps them in a format.
    ///
    /// # Errors
    /// As [`GpuMatmulCache::insert_async`] and [`QuantizedWeights::new`].
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

    /// Takes weights that are quantised already.
    ///
    /// # Errors
    /// `LimitExceeded` where one GPU buffer cannot hold them, and what else the device says.
    pub async fn insert_quantized_async(
        &mut self,
        name: &str,
        weights: QuantizedWeights,
    ) -> Result<()> {
        let weights = Placed::of_quantized(&self.device, weights).await?;
        self.keep(name, weights);
        Ok(())
    }

    /// `out = input · weights`, `m × k` times the `k × n` of that name, all row-major.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that has no weights, `LengthMismatch`, `ShapeOverflow`,
    /// `OutOfMemory`, and what the device says. Nothing is written then.
    pub async fn matmul_cached_async(
        &self,
        name: &str,
        input: &[f32],
        out: &mut [f32],
        m: usize,
    ) -> Result<()> {
        let weights = self.find(name)?;
        let [k, n] = weights.shape;
        check_len("input", product("input", m, k)?, input.len())?;
        check_len("out", product("out", m, n)?, out.len())?;
        self.device.check()?;
        weights.multiply(&self.device, input, out, m).await
    }

    /// Forgets the weights of a name; tells whether there were any.
    pub fn remove(&mut self, name: &str) -> bool {
        self.weights.remove(name).is_some()
    }

    /// Names with the rows, columns and format of their weights, in alphabetical order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, [usize; 2], WeightFormat)> {
        let weights = self.weights.iter();
        weights.map(|(name, of)| (name.as_str(), of.shape, of.format))
    }

    /// The number of weights, by names.
    pub fn weight_count(&self) -> usize {
        self.weights.len()
    }

    /// The memory that all weights take, in bytes.
    pub fn weight_bytes(&self) -> usize {
        self.weights.values().map(|weights| weights.bytes).sum()
    }

    /// The device that products run on.
    pub fn device(&self) -> &GpuDevice {
        &self.device
    }

    pub(crate) fn keep(&mut self, name: &str, weights: Placed) {
        self.weights.insert(name.to_owned(), Arc::new(weights));
    }

    pub(crate) fn find(&self, name: &str) -> Result<Arc<Placed>> {
        let weights = self.weights.get(name).cloned();
        let requirement = "a name that weights were inserted by and not removed";
        weights.ok_or_else(|| Error::invalid("name", name, requirement))
    }
}

/// The calls that wait.
#[cfg(not(target_arch = "wasm32"))]
impl GpuMatmulCache {
    /// Waits for [`GpuMatmulCache::insert_async`].
    pub fn insert(&mut self, name: &str, weights: &[f32], k: usize, n: usize) -> Result<()> {
        block_on(self.insert_async(name, weights, k, n))
    }

    /// Waits for [`GpuMatmulCache::insert_view_async`].
    pub fn insert_view(
        &mut self,
        name: &str,
        weights: &BoundView<'_>,
        format: WeightFormat,
    ) -> Result<()> {
        block_on(self.insert_view_async(name, weights, format))
    }

    /// Waits for [`GpuMatmulCache::insert_quantized_async`].
    pub fn insert_quantized(&mut self, name: &str, weights: QuantizedWeights) -> Result<()> {
        block_on(self.insert_quantized_async(name, weights))
    }

    /// Waits for [`GpuMatmulCache::matmul_cached_async`].
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

//! [`GpuMatmulCache`]: weights by name, brought once to where products are computed.

mod blocks;
// The file stands alone, so that PTX needs nothing else of the crate.
#[allow(clippy::duplicate_mod, dead_code, unreachable_pub)]
#[path = "ptx/half.rs"]
mod half;
mod weights;

use std::collections::BTreeMap;

pub(crate) use weights::{BLOCK, GROUP, WordLayout};
pub use weights::{QuantizedWeights, WeightFormat};

use crate::buffer::DeviceBuffer;
use crate::device::GpuDevice;
use crate::error::{Error, Result};
use crate::gpu::GpuBuffer;
use crate::graph::GpuCommandBatch;
use crate::ops::Matmul;
#[cfg(not(target_arch = "wasm32"))]
use crate::runtime::block_on;
use crate::shape::{check_len, product};
use crate::simd::{self, Packed};
use crate::views::{BoundView, Plane, TensorView};

/// Named weights for products with ever new inputs.
///
/// On SIMD they are packed once in the order in which the innermost loop reads them; on a GPU
/// they stay in its memory. In fewer bits ([`WeightFormat`]) they take less of either, and are
/// unpacked on the way into the product: block by block into the cache, or by each invocation of
/// the GPU's kernel. Products are as accurate as [`GpuDevice::matmul_async`] with the weights
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
    weights: BTreeMap<String, Weights>,
}

struct Weights {
    k: usize,
    n: usize,
    format: WeightFormat,
    bytes: usize,
    place: Place,
}

/// Where weights are, and in what form.
enum Place {
    Packed(Packed),
    Words(QuantizedWeights),
    Buffer(DeviceBuffer),
    GpuWords(GpuBuffer),
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
        if format != WeightFormat::F32 {
            let weights = QuantizedWeights::of_view(weights, format)?;
            return self.insert_quantized_async(name, weights).await;
        }
        let shape = matrix_shape(weights)?;
        let (place, bytes) = self.place_f32(weights, shape).await?;
        self.keep(name, format, shape, bytes, place);
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
        let (shape, format, bytes) = (weights.shape(), weights.format(), weights.bytes());
        let place = match self.device.gpu() {
            Some(gpu) => Place::GpuWords(gpu.upload_words(&weights.words).await?),
            None => Place::Words(weights),
        };
        self.keep(name, format, shape, bytes, place);
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
        let weights = self.weights.get(name).ok_or_else(|| unknown(name))?;
        let &Weights { k, n, format, .. } = weights;
        check_len("input", product("input", m, k)?, input.len())?;
        check_len("out", product("out", m, n)?, out.len())?;
        self.device.check()?;
        match (&weights.place, self.device.gpu()) {
            (Place::Packed(packed), _) => packed.multiply(self.device.cpu(), input, out, m),
            (Place::Words(words), _) => {
                simd::multiply_words(self.device.cpu(), words, input, out, m)
            }
            (Place::Buffer(buffer), _) => {
                multiply_resident(buffer, input, out, Matmul::new(m, k, n)).await
            }
            (Place::GpuWords(words), Some(gpu)) => {
                gpu.multiply_words(format, words, input, out, [m, k, n])
                    .await
            }
            (Place::GpuWords(_), None) => unreachable!("only a GPU is given words to keep"),
        }
    }

    /// Forgets the weights of a name; tells whether there were any.
    pub fn remove(&mut self, name: &str) -> bool {
        self.weights.remove(name).is_some()
    }

    /// Names with the rows, columns and format of their weights, in alphabetical order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, [usize; 2], WeightFormat)> {
        let weights = self.weights.iter();
        weights.map(|(name, of)| (name.as_str(), [of.k, of.n], of.format))
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

    fn keep(
        &mut self,
        name: &str,
        format: WeightFormat,
        [k, n]: [usize; 2],
        bytes: usize,
        place: Place,
    ) {
        let weights = Weights {
            k,
            n,
            format,
            bytes,
            place,
        };
        self.weights.insert(name.to_owned(), weights);
    }

    async fn place_f32(
        &self,
        weights: &BoundView<'_>,
        [k, n]: [usize; 2],
    ) -> Result<(Place, usize)> {
        if self.device.gpu().is_some() {
            let buffer = self.device.upload_async(&weights.contiguous()?).await?;
            let bytes = buffer.len() * size_of::<f32>();
            return Ok((Place::Buffer(buffer), bytes));
        }
        let isa = self.device.cpu().isa;
        let packed = match weights.plane() {
            Some(plane) => Packed::new(isa, weights.data(), plane)?,
            None => Packed::new(isa, &weights.contiguous()?, Plane::row_major(k, n))?,
        };
        let bytes = packed.bytes();
        Ok((Place::Packed(packed), bytes))
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

/// A product with weights in a GPU's memory: an ordinary batch, whose upload and kernels it
/// shares.
async fn multiply_resident(
    weights: &DeviceBuffer,
    input: &[f32],
    out: &mut [f32],
    options: Matmul,
) -> Result<()> {
    let mut batch = GpuCommandBatch::new(weights.device().clone());
    let a = batch.upload(input);
    let b = batch.input(weights);
    let c = batch.matmul_with(a, b, options);
    batch.execute().await?;
    out.copy_from_slice(&batch.read(c).await?);
    Ok(())
}

/// Rows and columns of a matrix.
fn matrix_shape(weights: &BoundView<'_>) -> Result<[usize; 2]> {
    let [k, n, ..] = weights.view().shape();
    if weights.view().ndim() <= 2 {
        return Ok([k, n]);
    }
    Err(Error::InvalidArgument {
        what: "weights",
        value: format!("of shape {:?}", weights.view().shape()),
        requirement: "a matrix",
    })
}

fn unknown(name: &str) -> Error {
    Error::InvalidArgument {
        what: "name",
        value: name.to_owned(),
        requirement: "that of weights in the cache",
    }
}

//! Matrices of quantised weights for matmuls outside of a language model.

#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
use crate::cuda::SharedCuda;
use crate::device::GpuDevice;
use crate::device::executor::Executor;
use crate::device::executor::SharedGpu;
use crate::error::{Error, Result};
use crate::graph::steps::{Product, StepBackend, StepPass};
use crate::llm::WeightType;
use crate::ops::shape::{check_len, product};
#[cfg(not(target_arch = "wasm32"))]
use crate::runtime::block_on;
use crate::simd::{BlockMatrix, Cpu, multiply_blocks};

/// A matrix of weights in ggml's blocks, such as a tensor of a GGUF file, ready for matmuls on a device.
///
/// The weights stay quantised, in the memory of the CPU or of the GPU, and are dequantized during the matmul. Inputs,
/// products and accumulators are `f32`, and the accuracy is that of [`GpuDevice::matmul_async`] with the dequantized
/// weights. A device with [`half_precision`](crate::DeviceBuilder::half_precision) may multiply in 16 bits.
///
/// On SIMD, matmuls of up to three rows with `Q8_0`, `Q4_0`, `Q4_1`, `Q5_0`, `Q5_1`, `Q4_K`, `Q5_K` and `Q6_K` round the
/// inputs of each block of 32 to 16 bits, by at most 2⁻¹⁵ of the largest of them, and add integers. Whole
/// numbers below 32,768 stay as they are.
///
/// On a GPU, the length of a row must be a multiple of 8, as that of quantised rows is.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::GpuDevice;
/// use relampago::llm::{QuantizedMatrix, WeightType};
///
/// // A row of 32 weights: a scale of 0.5 in f16, and integers.
/// let mut block = vec![0x00, 0x38];
/// block.extend(0..32);
/// let weights = QuantizedMatrix::new(&GpuDevice::new()?, WeightType::Q8_0, block, 1, 32)?;
/// let mut y = [0.0];
/// weights.matmul(&[1.0; 32], &mut y, 1)?;
/// assert_eq!(y, [0.5 * 496.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[doc(alias = "gemv")]
#[doc(alias = "ggml_mul_mat")]
pub struct QuantizedMatrix {
    device: GpuDevice,
    kind: WeightType,
    rows: usize,
    cols: usize,
    place: Place,
}

/// Where the weights are.
enum Place {
    Cpu(Cpu, Vec<u8>),
    Gpu(OnGpu<SharedGpu>),
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    Cuda(OnGpu<SharedCuda>),
}

/// Weights on a GPU, by whichever interface.
struct OnGpu<B: StepBackend> {
    backend: B,
    weights: B::Weights,
}

impl QuantizedMatrix {
    /// Places the weights of `rows` rows of `cols` weights on a device: `blocks` has one row after the other.
    ///
    /// # Errors
    /// `InvalidArgument` if rows are not of whole blocks, `LengthMismatch`, `ShapeOverflow`, `OutOfMemory`, on a GPU
    /// `LimitExceeded`, and device errors.
    pub async fn new_async(
        device: &GpuDevice,
        kind: WeightType,
        blocks: Vec<u8>,
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        let row_bytes = kind.row_bytes(cols).ok_or_else(|| {
            let requirement = format!("a multiple of {}, the length of a block", kind.block_len());
            Error::invalid("cols", cols.to_string(), requirement)
        })?;
        product("weights", rows, cols)?;
        check_len("blocks", product("blocks", rows, row_bytes)?, blocks.len())?;
        let place = Place::new(device, kind, blocks, cols).await?;
        Ok(Self {
            device: device.clone(),
            kind,
            rows,
            cols,
            place,
        })
    }

    /// Computes `y = x · Wᵀ`: the products of each of the `m` rows of `x` with all rows of weights. A row of `x` has
    /// the length of a row of weights. All are row-major.
    ///
    /// # Errors
    /// `LengthMismatch`, `ShapeOverflow`, `OutOfMemory`, and device errors.
    pub async fn matmul_async(&self, x: &[f32], y: &mut [f32], m: usize) -> Result<()> {
        check_len("x", product("x", m, self.cols)?, x.len())?;
        check_len("y", product("y", m, self.rows)?, y.len())?;
        self.device.check()?;
        if y.is_empty() || self.cols == 0 {
            y.fill(0.0);
            return Ok(());
        }
        match &self.place {
            Place::Cpu(cpu, blocks) => {
                match BlockMatrix::new(self.kind, blocks, self.rows, self.cols) {
                    Some(weights) => multiply_blocks(*cpu, weights, x, y),
                    None => Ok(()),
                }
            }
            Place::Gpu(matrix) => matrix.multiply(x, y, m).await,
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            Place::Cuda(matrix) => matrix.multiply(x, y, m).await,
        }
    }

    /// Returns the type of the weights.
    pub fn weight_type(&self) -> WeightType {
        self.kind
    }

    /// Returns the number of rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }
}

impl<B: StepBackend> OnGpu<B> {
    async fn new(backend: &B, kind: WeightType, blocks: &[u8], cols: usize) -> Result<Self> {
        Ok(Self {
            backend: backend.clone(),
            weights: backend.weights(kind, &[blocks], cols).await?,
        })
    }

    /// Multiplies `m` rows of `x`.
    async fn multiply(&self, x: &[f32], y: &mut [f32], m: usize) -> Result<()> {
        let reading = {
            let mut pass = self.backend.pass()?;
            let (x, product) = (pass.upload(x)?, pass.allocate(y.len())?);
            let to = (&product, 0, y.len() / m);
            pass.multiply(&x, &self.weights, to, Product::of(m), None)?;
            pass.submit(Some((&product, y.len())))?
        };
        y.copy_from_slice(&reading.await?);
        Ok(())
    }
}

impl Place {
    async fn new(
        device: &GpuDevice,
        kind: WeightType,
        blocks: Vec<u8>,
        cols: usize,
    ) -> Result<Self> {
        match device.executor() {
            Executor::Gpu(gpu) => OnGpu::new(gpu, kind, &blocks, cols).await.map(Self::Gpu),
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            Executor::Cuda(cuda) => OnGpu::new(cuda, kind, &blocks, cols).await.map(Self::Cuda),
            _ => Ok(Self::Cpu(device.cpu(), blocks)),
        }
    }
}

/// Blocking versions.
#[cfg(not(target_arch = "wasm32"))]
impl QuantizedMatrix {
    /// Blocking version of [`QuantizedMatrix::new_async`].
    pub fn new(
        device: &GpuDevice,
        kind: WeightType,
        blocks: Vec<u8>,
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        block_on(Self::new_async(device, kind, blocks, rows, cols))
    }

    /// Blocking version of [`QuantizedMatrix::matmul_async`].
    pub fn matmul(&self, x: &[f32], y: &mut [f32], m: usize) -> Result<()> {
        block_on(self.matmul_async(x, y, m))
    }
}

impl std::fmt::Debug for QuantizedMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind, rows, cols, ..
        } = self;
        write!(f, "QuantizedMatrix({kind:?}, {rows} × {cols})")
    }
}

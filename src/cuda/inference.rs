//! Attention and matmuls with quantised weights, for language models.

use super::buffer::{CudaBuffer, Element};
use super::device::CudaDevice;
use super::error::Result;
use super::launch::Argument;
use super::ops::{invalid, multiple};
use relampago_ptx::kernels::QuantFormat;
use relampago_ptx::{AttentionKernel, PtxType, QuantizeKernel, Target};

/// The sizes of attention. `q` and the result have shape `batch × heads × seq_q × dim`, `k` and `v`
/// have shape `batch × kv_heads × seq_k × dim`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttentionShape {
    /// The number of sequences, at most 65,535 (the limit of a grid axis).
    pub batch: usize,
    /// The number of query heads, a multiple of `kv_heads` and at most 65,535.
    pub heads: usize,
    /// The number of key and value heads.
    pub kv_heads: usize,
    /// The number of queries in a sequence.
    pub seq_q: usize,
    /// The number of keys in a sequence; with a causal mask at least `seq_q`.
    pub seq_k: usize,
    /// The dimension of a head.
    pub dim: usize,
    /// Whether query `i` sees only the keys up to `i + seq_k − seq_q`.
    pub causal: bool,
}

/// The number of queries from which tiles of 64 queries are faster than one warp for each query.
const FEW_QUERIES: usize = 16;

/// The maximum number of blocks along the second and third axes of a grid.
const MOST_BLOCKS: usize = 65_535;

impl AttentionShape {
    /// Creates the sizes for equal numbers of keys and queries, with keys and values for each head and without a causal
    /// mask.
    pub const fn new(batch: usize, heads: usize, seq: usize, dim: usize) -> Self {
        Self {
            batch,
            heads,
            kv_heads: heads,
            seq_q: seq,
            seq_k: seq,
            dim,
            causal: false,
        }
    }

    /// Returns the sizes with this number of key and value heads.
    #[must_use]
    pub const fn with_kv_heads(self, kv_heads: usize) -> Self {
        Self { kv_heads, ..self }
    }

    /// Returns the sizes with this number of keys in a sequence.
    #[must_use]
    pub const fn with_keys(self, seq_k: usize) -> Self {
        Self { seq_k, ..self }
    }

    /// Returns the sizes with a causal mask.
    #[must_use]
    pub const fn causal(self) -> Self {
        Self {
            causal: true,
            ..self
        }
    }

    fn check(&self) -> Result<()> {
        for (what, size) in [("batch", self.batch), ("heads", self.heads)] {
            if !(1..=MOST_BLOCKS).contains(&size) {
                return Err(invalid(what, size.to_string(), "1 to 65535"));
            }
        }
        if self.kv_heads == 0 || !self.heads.is_multiple_of(self.kv_heads) {
            let requirement = format!("a divisor of `heads`, {}", self.heads);
            return Err(invalid("kv_heads", self.kv_heads.to_string(), requirement));
        }
        let most = if self.causal { self.seq_k } else { self.seq_q };
        if self.seq_q == 0 || self.seq_k == 0 || self.seq_q > most {
            let value = format!("{} queries, {} keys", self.seq_q, self.seq_k);
            let requirement = "at least 1 of each, and of queries no more than keys if causal";
            return Err(invalid("seq_q", value, requirement));
        }
        Ok(())
    }
}

impl CudaDevice {
    /// Computes `softmax(q · kᵀ / √dim) · v` for every head in f32. `dim` must be a multiple of 32
    /// up to 256; 64 and 128 with many queries are fastest.
    ///
    /// # Errors
    /// [`super::Error::Length`] if a buffer does not match its shape, [`super::Error::Ptx`] for
    /// sizes that no kernel supports.
    pub fn attention(
        &self,
        qkv: [&CudaBuffer<f32>; 3],
        o: &mut CudaBuffer<f32>,
        shape: AttentionShape,
    ) -> Result<()> {
        let dim = shape.dim.try_into().unwrap_or(u32::MAX);
        let tiled = matches!(dim, 64 | 128) && shape.seq_q >= FEW_QUERIES;
        let kernel = if tiled {
            AttentionKernel::flash_tiled(dim)
        } else {
            AttentionKernel::simple(dim)
        };
        self.attend(kernel, qkv, o, shape)
    }

    /// Computes attention of bf16 or f16 ([`PtxType::BF16`], [`PtxType::F16`]) stored as `u16`, on
    /// the tensor cores of Ampere and later GPUs. `dim` must be 64 or 128.
    ///
    /// # Errors
    /// The errors of [`CudaDevice::attention`], and [`super::Error::Ptx`] for another type or an older
    /// GPU.
    pub fn attention_half(
        &self,
        ty: PtxType,
        qkv: [&CudaBuffer<u16>; 3],
        o: &mut CudaBuffer<u16>,
        shape: AttentionShape,
    ) -> Result<()> {
        if !matches!(ty, PtxType::F16 | PtxType::BF16) {
            return Err(invalid("ty", ty.to_string(), "f16 or bf16"));
        }
        let dim = shape.dim.try_into().unwrap_or(u32::MAX);
        let kernel = match self.target() {
            Target::Sm90a => AttentionKernel::flash(ty, dim),
            _ => AttentionKernel::flash_mma(ty, dim),
        };
        self.attend(kernel, qkv, o, shape)
    }

    fn attend<T: Element>(
        &self,
        kernel: AttentionKernel,
        [q, k, v]: [&CudaBuffer<T>; 3],
        o: &CudaBuffer<T>,
        shape: AttentionShape,
    ) -> Result<()> {
        shape.check()?;
        let AttentionShape {
            batch,
            heads,
            kv_heads,
            seq_q,
            seq_k,
            dim,
            causal,
        } = shape;
        let rows = |heads: usize, seq: usize| batch.saturating_mul(heads).saturating_mul(seq);
        self.check("q", q, rows(heads, seq_q), dim)?;
        self.check("k", k, rows(kv_heads, seq_k), dim)?;
        self.check("v", v, rows(kv_heads, seq_k), dim)?;
        self.check("o", o, rows(heads, seq_q), dim)?;
        let kernel = if causal { kernel.causal() } else { kernel };
        let buffers = [q, k, v, o].map(|buffer| Argument::Pointer(buffer.address()));
        let sizes = [batch, heads, kv_heads, seq_q, seq_k];
        let sizes = sizes.map(|size| Argument::U32(size as u32));
        let scale = [Argument::F32(1.0 / (dim as f32).sqrt())];
        let uses = [q.input(), k.input(), v.input(), o.output()];
        let arguments = [&buffers[..], &sizes, &scale].concat();
        // SAFETY: the lengths match the shapes; buffers are aligned to 256 bytes, and the callers
        // borrow `o` exclusively.
        unsafe { self.submit(&kernel, &uses, &arguments) }
    }

    /// Computes `y = W · x`, where `w` has `y.len()` rows of `x.len()` weights in ggml's blocks. On
    /// Ampere and later GPUs each value of `x` is rounded to 2⁻¹⁵ of the largest of 32 consecutive
    /// values, with the limits that [`QuantizeKernel::gemv_mma`] states.
    ///
    /// # Errors
    /// [`super::Error::Length`] if the number of blocks in `w` is wrong, [`super::Error::Ptx`] if a
    /// row is not a whole number of blocks.
    pub fn quantized_matvec(
        &self,
        format: QuantFormat,
        w: &CudaBuffer<u8>,
        x: &CudaBuffer<f32>,
        y: &mut CudaBuffer<f32>,
    ) -> Result<()> {
        let (rows, cols) = (y.len(), x.len());
        let (values, bytes) = format.block();
        multiple("x.len()", cols, values as usize, "the format's block")?;
        self.check("w", w, rows, cols / values as usize * bytes as usize)?;
        self.check("x", x, 1, cols)?;
        self.check("y", y, rows, 1)?;
        let few = cols <= QuantizeKernel::GEMV_MMA_COLS as usize;
        let kernel = if few && self.target() >= Target::Sm80 {
            QuantizeKernel::gemv_mma(format)
        } else {
            QuantizeKernel::gemv(format)
        };
        let buffers = [w.address(), x.address(), y.address()].map(Argument::Pointer);
        let sizes = [rows, cols].map(|size| Argument::U32(size as u32));
        let arguments = [&buffers[..], &sizes].concat();
        // SAFETY: the lengths match the shapes; buffers are aligned to 256 bytes, and `y` is
        // borrowed exclusively.
        unsafe { self.submit(&kernel, &[w.input(), x.input(), y.output()], &arguments) }
    }
}

//! Matmuls on host slices and on buffers. The kernel is chosen by size and GPU.

use super::bands::bands;
use super::buffer::{CudaBuffer, Element, Scratch};
use super::device::CudaDevice;
use super::driver::check;
use super::error::{Error, Result};
use super::launch::Argument;
use cudarc::driver::sys;
use relampago_ptx::kernels::{QuantFormat, SplitSumKernel, Tile};
use relampago_ptx::{GemmKernel, PtxType, QuantizeKernel, Target};
use std::borrow::Cow;
use std::sync::OnceLock;

/// The largest size for which a kernel's index arithmetic does not overflow.
pub(super) const LARGEST: usize = 1 << 30;

/// Computes `C = A · B` of row-major `f32` slices, `m × k` times `k × n`, on the first GPU.
///
/// # Errors
/// [`Error::NoDriver`] or [`Error::NoDevice`] without a GPU, [`Error::Length`] if a slice does not
/// match its shape, [`Error::Limit`] if a side is over 2³⁰, [`Error::OutOfMemory`].
pub fn matmul(a: &[f32], b: &[f32], c: &mut [f32], m: usize, k: usize, n: usize) -> Result<()> {
    let device = first()?;
    shape("a", a.len(), m, k)?;
    shape("b", b.len(), k, n)?;
    shape("c", c.len(), m, n)?;
    let (a, b) = (device.upload(a)?, device.upload(b)?);
    let mut result = CudaBuffer::uninitialised(&device, c.len())?;
    device.matmul(&a, &b, &mut result, m, k, n)?;
    result.read(c)
}

/// Returns the first GPU, which is opened once.
fn first() -> Result<CudaDevice> {
    static FIRST: OnceLock<Result<CudaDevice>> = OnceLock::new();
    FIRST.get_or_init(|| CudaDevice::open(0)).clone()
}

fn shape(what: &'static str, actual: usize, rows: usize, cols: usize) -> Result<()> {
    for (what, value) in [("rows", rows), ("columns", cols)] {
        if value > LARGEST {
            let limit = LARGEST;
            return Err(Error::Limit { what, value, limit });
        }
    }
    let expected = rows.saturating_mul(cols);
    let error = Error::Length {
        what,
        expected,
        actual,
    };
    (actual == expected).then_some(()).ok_or(error)
}

impl CudaDevice {
    /// Checks that a buffer belongs to this GPU and has the length of a matrix.
    pub(super) fn check<T: Element>(
        &self,
        what: &'static str,
        buffer: &CudaBuffer<T>,
        rows: usize,
        cols: usize,
    ) -> Result<()> {
        if !self.is(buffer.device()) {
            return Err(Error::Foreign { what });
        }
        shape(what, buffer.len(), rows, cols)
    }

    /// Computes `C = A · B` of row-major `f32` matrices, `m × k` times `k × n`.
    ///
    /// # Errors
    /// [`Error::Length`] if a buffer does not match its shape.
    pub fn matmul(
        &self,
        a: &CudaBuffer<f32>,
        b: &CudaBuffer<f32>,
        c: &mut CudaBuffer<f32>,
        m: usize,
        k: usize,
        n: usize,
    ) -> Result<()> {
        self.gemm(self.tiled(m, k, n), [a, b, c], [m, k, n])
    }

    /// Returns the f32 kernel for a matmul of this shape.
    pub(super) fn tiled(&self, m: usize, k: usize, n: usize) -> GemmKernel {
        // The launch checks the size of the grid.
        let blocks = |tile: Tile| {
            let [down, across] = [(m, tile.rows), (n, tile.cols)];
            let [down, across] = [down, across].map(|(size, of)| size.div_ceil(of as usize));
            down.saturating_mul(across)
        };
        let large = blocks(Tile::LARGE) >= self.multiprocessors() as usize;
        let tile = if large { Tile::LARGE } else { Tile::SMALL };
        let aligned = k.is_multiple_of(4) && n.is_multiple_of(4);
        let tile = if aligned { tile.aligned() } else { tile };
        GemmKernel::tiled_by(tile)
    }

    /// Computes `C = A · B` of `f32` on tensor cores, which read at least 11 significant bits of
    /// each value (tf32). The relative error of each product is at most 2⁻¹⁰ + 2⁻¹¹. `n` and `k`
    /// must be multiples of 4.
    ///
    /// # Errors
    /// [`Error::Length`] if a buffer does not match its shape, [`Error::Ptx`] if `n` or `k` is not
    /// a multiple of 4 or the GPU is older than Ampere.
    pub fn matmul_tf32(
        &self,
        a: &CudaBuffer<f32>,
        b: &CudaBuffer<f32>,
        c: &mut CudaBuffer<f32>,
        [m, k, n]: [usize; 3],
    ) -> Result<()> {
        for (what, size) in [("k", k), ("n", n)] {
            multiple(what, size, 4, "for loads of 16 bytes")?;
        }
        let kernel = match self.target() {
            Target::Sm90a => GemmKernel::wgmma_tf32(),
            _ => GemmKernel::mma_tf32(),
        };
        self.gemm(kernel, [a, b, c], [m, k, n])
    }

    /// Computes `C = A · B` of bf16 or f16 ([`PtxType::BF16`], [`PtxType::F16`]) stored as `u16`,
    /// on tensor cores. `n` and `k` must be multiples of 8.
    ///
    /// # Errors
    /// [`Error::Length`] if a buffer does not match its shape, [`Error::Ptx`] for another type, for
    /// sizes that are not multiples of 8, or for a GPU older than Ampere.
    pub fn matmul_half(
        &self,
        ty: PtxType,
        a: &CudaBuffer<u16>,
        b: &CudaBuffer<u16>,
        c: &mut CudaBuffer<u16>,
        [m, k, n]: [usize; 3],
    ) -> Result<()> {
        if !matches!(ty, PtxType::F16 | PtxType::BF16) {
            return Err(invalid("ty", ty.to_string(), "f16 or bf16"));
        }
        for (what, size) in [("k", k), ("n", n)] {
            multiple(what, size, 8, "for loads of 16 bytes")?;
        }
        if self.target() != Target::Sm90a {
            return self.gemm(GemmKernel::mma(ty), [a, b, c], [m, k, n]);
        }
        // With few rows, tiles twice as wide read `A` half as often.
        let cols = if m <= 64 { 256 } else { 128 };
        let (tiles, count) = (
            |cols| m.div_ceil(128).saturating_mul(n.div_ceil(cols)),
            self.multiprocessors(),
        );
        let splits = (count as usize / tiles(cols).max(1)).min(k.div_ceil(256));
        if splits > 1 {
            return self.split_gemm((ty, cols as u32), [a, b, c], [m, k, n], splits);
        }
        // Use tiles half as wide if wide ones would leave multiprocessors idle.
        let cols = if tiles(256) < count as usize {
            128
        } else {
            256
        };
        self.gemm(GemmKernel::wgmma_by(ty, cols), [a, b, c], [m, k, n])
    }

    /// Computes a matmul with `k` split into parts: one partial result for each part, and then
    /// their sum.
    fn split_gemm(
        &self,
        (ty, cols): (PtxType, u32),
        [a, b, c]: [&CudaBuffer<u16>; 3],
        [m, k, n]: [usize; 3],
        splits: usize,
    ) -> Result<()> {
        self.check("a", a, m, k)?;
        self.check("b", b, k, n)?;
        self.check("c", c, m, n)?;
        let product = self.load(&GemmKernel::wgmma_split(ty, cols))?;
        let sum = self.load(&SplitSumKernel::new(ty))?;
        self.ordered(&[a.input(), b.input(), c.output()], |turn| {
            let sums = Scratch::new(turn, splits * c.len() * size_of::<f32>())?;
            let addresses = [a.address(), b.address(), c.address(), sums.address];
            let [m, k, n, splits] = [m, k, n, splits].map(|size| Argument::U32(size as u32));
            let [a, b, c, sums_at] = addresses.map(Argument::Pointer);
            let factors = [1.0, 0.0].map(Argument::F32);
            // SAFETY: the lengths match the shapes, and `sums` has a matrix for each part; buffers
            // are aligned to 256 bytes, and the public function borrows `c` exclusively.
            unsafe {
                turn.launch(&product, &[a, b, sums_at, m, n, k, splits])?;
                turn.launch(&sum, &[sums_at, c, m, n, splits, factors[0], factors[1]])
            }
        })
    }

    fn gemm<T: Element>(
        &self,
        kernel: GemmKernel,
        [a, b, c]: [&CudaBuffer<T>; 3],
        [m, k, n]: [usize; 3],
    ) -> Result<()> {
        self.check("a", a, m, k)?;
        self.check("b", b, k, n)?;
        self.check("c", c, m, n)?;
        let kernel = self.load(&kernel)?;
        let factors = [1.0, 0.0].map(Argument::F32);
        self.ordered(&[a.input(), b.input(), c.output()], |turn| {
            for (first, rows) in bands(m) {
                let pointers = [a.from(first * k), b.from(0), c.from(first * n)];
                let sizes = [rows, n, k].map(|size| Argument::U32(size as u32));
                let arguments = [&pointers[..], &sizes, &factors].concat();
                // SAFETY: the lengths match the shapes; buffers are aligned to 256 bytes, bands
                // begin at multiples of 64 rows, and the public function borrows `c` exclusively.
                unsafe { turn.launch(&kernel, &arguments)? };
            }
            Ok(())
        })
    }

    /// Copies a buffer to another buffer of this GPU.
    ///
    /// # Errors
    /// [`Error::Length`] if the lengths differ, [`Error::Foreign`] for a buffer of another GPU.
    pub fn copy<T: Element>(&self, from: &CudaBuffer<T>, to: &mut CudaBuffer<T>) -> Result<()> {
        for (what, buffer) in [("from", from), ("to", &*to)] {
            if !self.is(buffer.device()) {
                return Err(Error::Foreign { what });
            }
        }
        to.expect("from", from.len())?;
        self.ordered(&[from.input(), to.output()], |turn| {
            // SAFETY: source and destination have that many bytes, and are not freed before the
            // copy ends.
            check("cuMemcpyDtoDAsync", unsafe {
                sys::cuMemcpyDtoDAsync_v2(to.address(), from.address(), to.bytes(), turn.stream)
            })
        })
    }

    /// Computes `Y = X · Wᵀ` on tensor cores. `X` is `m × k` of bf16 or f16 ([`PtxType::BF16`],
    /// [`PtxType::F16`]) stored as `u16`, `W` is `n × k` in ggml's blocks, and `Y` is `m × n`.
    /// Weights are rounded to the type of `X`.
    ///
    /// # Errors
    /// [`Error::Length`] if a buffer does not match its shape, [`Error::Ptx`] for another type, for
    /// rows that are not a whole number of blocks, or for a GPU older than Ampere.
    pub fn quantized_matmul(
        &self,
        (format, ty): (QuantFormat, PtxType),
        w: &CudaBuffer<u8>,
        x: &CudaBuffer<u16>,
        y: &mut CudaBuffer<u16>,
        [m, n, k]: [usize; 3],
    ) -> Result<()> {
        let (values, bytes) = format.block();
        multiple("k", k, values as usize, "the format's block")?;
        let row = (k / values as usize).saturating_mul(bytes as usize);
        self.check("w", w, n, row)?;
        self.check("x", x, m, k)?;
        self.check("y", y, m, n)?;
        let kernel = self.load(&QuantizeKernel::gemm(format, ty).for_size(m as u32, n as u32))?;
        self.ordered(&[w.input(), x.input(), y.output()], |turn| {
            for (first, rows) in bands(m) {
                let pointers = [w.from(0), x.from(first * k), y.from(first * n)];
                let sizes = [rows, n, k].map(|size| Argument::U32(size as u32));
                // SAFETY: the lengths match the shapes; buffers are aligned to 256 bytes, bands
                // begin at multiples of 64 rows, and `y` is borrowed exclusively.
                unsafe { turn.launch(&kernel, &[pointers, sizes].concat())? };
            }
            Ok(())
        })
    }
}

/// Checks that a size is a multiple of `of`; `reason` goes into the error.
pub(super) fn multiple(what: &'static str, size: usize, of: usize, reason: &str) -> Result<()> {
    if size.is_multiple_of(of) {
        return Ok(());
    }
    let requirement = format!("a multiple of {of}, {reason}");
    Err(invalid(what, size.to_string(), requirement))
}

pub(super) fn invalid(
    what: &'static str,
    value: String,
    requirement: impl Into<Cow<'static, str>>,
) -> Error {
    Error::Ptx(relampago_ptx::Error::Invalid {
        kernel: None,
        what,
        value,
        requirement: requirement.into(),
    })
}

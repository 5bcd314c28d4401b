//! Matmuls with blocked summation, whose error does not grow with `k`.
//!
//! A kernel accumulates sequentially over `k`, and for large `k` the accumulated rounding errors
//! exceed the accuracy stated in the op table. Here `k` is split into blocks that are multiplied
//! one by one and summed in groups (as in Higham, *Accuracy and Stability of Numerical Algorithms*,
//! 4.2).

use cudarc::driver::sys;

use super::bands::bands;
use super::buffer::{CudaBuffer, Scratch};
use super::device::CudaDevice;
use super::driver::check;
use super::error::Result;
use super::launch::Argument;
use super::queue::Submission;
use relampago_ptx::kernels::{Binary, ElementwiseKernel};

/// The extent of `k` that one kernel launch accumulates.
const PIECE: usize = 128;
/// The extent of `k` whose blocks are accumulated sequentially.
const GROUP: usize = 16 * PIECE;

/// Yields the start and the length of each block of `k`.
fn pieces(k: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..k).step_by(PIECE).map(move |at| (at, PIECE.min(k - at)))
}

/// Copies an `m × k` matrix to `packed`: the columns of each piece become a matrix of `m` rows, one piece
/// after the other.
fn pack(
    turn: &Submission<'_>,
    a: &CudaBuffer<f32>,
    packed: &Scratch,
    [m, k]: [usize; 2],
) -> Result<()> {
    let bytes = |elements: usize| elements * size_of::<f32>();
    for (at, depth) in pieces(k) {
        let copy = sys::CUDA_MEMCPY2D_st {
            srcXInBytes: bytes(at),
            srcY: 0,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: std::ptr::null(),
            srcDevice: a.address(),
            srcArray: std::ptr::null_mut(),
            srcPitch: bytes(k),
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: std::ptr::null_mut(),
            dstDevice: packed.address + bytes(at * m) as u64,
            dstArray: std::ptr::null_mut(),
            dstPitch: bytes(depth),
            WidthInBytes: bytes(depth),
            Height: m,
        };
        // SAFETY: each buffer holds `m` rows of `WidthInBytes` bytes at its pitch, and outlives the copy on the
        // stream.
        let code = unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, turn.stream) };
        check("cuMemcpy2DAsync", code)?;
    }
    Ok(())
}

impl CudaDevice {
    /// Computes [`CudaDevice::matmul`] with sums of few terms.
    pub(super) fn matmul_by_blocks(
        &self,
        a: &CudaBuffer<f32>,
        b: &CudaBuffer<f32>,
        c: &mut CudaBuffer<f32>,
        [m, k, n]: [usize; 3],
    ) -> Result<()> {
        if k <= PIECE {
            return self.matmul(a, b, c, m, k, n);
        }
        self.check("a", a, m, k)?;
        self.check("b", b, k, n)?;
        self.check("c", c, m, n)?;
        let product = |depth| self.load(&self.tiled(m, depth, n));
        let (whole, rest) = (product(PIECE)?, product(k % PIECE)?);
        let add = self.load(&ElementwiseKernel::binary(Binary::Add))?;
        self.ordered(
            &[a.input(), b.input(), c.output()],
            |turn: &mut Submission<'_>| {
                let sums = Scratch::new(turn, c.bytes())?;
                let packed = Scratch::new(turn, a.bytes())?;
                pack(turn, a, &packed, [m, k])?;
                for (at, depth) in pieces(k) {
                    // The first group writes directly into the result.
                    let (to, first) = (
                        if at < GROUP {
                            c.address()
                        } else {
                            sums.address
                        },
                        at % GROUP == 0,
                    );
                    let kernel = if depth == PIECE { &whole } else { &rest };
                    let factors = [1.0, if first { 0.0 } else { 1.0 }].map(Argument::F32);
                    for (row, rows) in bands(m) {
                        let to = Argument::Pointer(to + 4 * (row * n) as u64);
                        let from = packed.address + 4 * (at * m + row * depth) as u64;
                        let pointers = [Argument::Pointer(from), b.from(at * n), to];
                        let sizes = [rows, n, depth].map(|size| Argument::U32(size as u32));
                        let arguments = [&pointers[..], &sizes, &factors].concat();
                        // SAFETY: both operands contain the block. It starts at a multiple of 512
                        // bytes, since `at` is a multiple of 128, and a band's rows start at a
                        // multiple of 256; `to` has the result's size.
                        unsafe { turn.launch(kernel, &arguments)? };
                    }
                    let ends = (at + depth) % GROUP == 0 || at + depth == k;
                    if at >= GROUP && ends {
                        let pointers =
                            [sums.address, c.address(), c.address()].map(Argument::Pointer);
                        let arguments = [&pointers[..], &[Argument::U32(c.len() as u32)]].concat();
                        // SAFETY: all buffers have the length of the result, which may alias an
                        // input.
                        unsafe { turn.launch(&add, &arguments)? };
                    }
                }
                Ok(())
            },
        )
    }
}

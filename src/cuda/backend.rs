//! The operations of a [`crate::GpuDevice`] that was built with [`crate::Backend::Cuda`].

use std::sync::Arc;

use super::buffer::CudaBuffer;
use super::device::CudaDevice;
use super::event::Event;
use super::ops::LARGEST;
use super::plan::CudaValues;
use crate::alloc::try_zeros;
use crate::ops::{HalfPrecision, Matmul, Op};
use crate::simd::{self, Cpu};
use relampago_ptx::kernels::{Activation, Binary, Kernel, PlanesMatmulKernel, Unary};

/// The first NVIDIA GPU, and the CPU for operations that have no kernel there.
pub(crate) struct CudaBackend {
    pub(super) device: CudaDevice,
    cpu: Cpu,
    /// Whether prompts of language models may be multiplied in 16 bits.
    asks_for_halves: bool,
    #[cfg(feature = "llm-core")]
    pub(super) passes: super::steps::PassTurns,
}

/// A back-end that its users share.
pub(crate) type SharedCuda = Arc<CudaBackend>;

/// An operation that has a CUDA kernel.
pub(super) enum Work {
    Unary(Unary),
    Binary(Binary),
    /// Softmax of each row, or its logarithm.
    Softmax {
        rows: usize,
        cols: usize,
        logarithm: bool,
    },
    /// Layer norm of each row, or RMS norm where there is no bias, with this epsilon.
    Norm(f32),
    Matmul([usize; 3]),
    Sum,
    Mean,
    Dot,
    Max,
    Min,
}

impl Work {
    /// Returns the kernels' work for an operation, or `None` if no kernel has the accuracy and the
    /// NaN handling that the op table states.
    fn of(op: &Op, len: usize) -> Option<Self> {
        let softmax = |rows, cols, logarithm| Work::Softmax {
            rows,
            cols,
            logarithm,
        };
        Some(match *op {
            Op::Relu => Work::Unary(Unary::Activation(Activation::Relu)),
            Op::Exp => Work::Unary(Unary::Exp),
            Op::Sigmoid => Work::Unary(Unary::Sigmoid),
            Op::Abs => Work::Unary(Unary::Abs),
            Op::Neg => Work::Unary(Unary::Neg),
            Op::Sqrt => Work::Unary(Unary::Sqrt),
            Op::VecAdd => Work::Binary(Binary::Add),
            Op::Sub => Work::Binary(Binary::Sub),
            Op::Mul => Work::Binary(Binary::Mul),
            Op::Div => Work::Binary(Binary::Div),
            Op::Minimum => Work::Binary(Binary::Minimum),
            Op::Maximum => Work::Binary(Binary::Maximum),
            Op::Softmax => softmax(1, len, false),
            Op::LogSoftmax => softmax(1, len, true),
            Op::SoftmaxRows { rows, cols } => softmax(rows, cols, false),
            Op::LogSoftmaxRows { rows, cols } => softmax(rows, cols, true),
            Op::LayerNorm { epsilon, .. } | Op::RmsNorm { epsilon, .. } => Work::Norm(epsilon),
            Op::Matmul { m, k, n } => Work::Matmul([m, k, n]),
            Op::MatmulWith { options }
                if options == Matmul::new(options.m, options.k, options.n) =>
            {
                Work::Matmul([options.m, options.k, options.n])
            }
            Op::Sum => Work::Sum,
            Op::Mean => Work::Mean,
            Op::Dot => Work::Dot,
            Op::Max => Work::Max,
            Op::Min => Work::Min,
            _ => return None,
        })
    }
}

impl CudaBackend {
    /// Opens the first NVIDIA GPU. Operations without a kernel there run on `cpu`. With `half_precision`, prompts of language
    /// models are multiplied in 16 bits where the GPU has the kernel.
    ///
    /// # Errors
    /// `NoGpu` where there is no driver or no GPU.
    pub(crate) fn open(cpu: Cpu, half_precision: bool) -> crate::error::Result<Self> {
        let device = CudaDevice::open(0)?;
        Ok(CudaBackend {
            device,
            cpu,
            asks_for_halves: half_precision,
            #[cfg(feature = "llm-core")]
            passes: super::steps::PassTurns::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        self.device.name()
    }

    /// Returns whether prompts of language models are multiplied in 16 bits, or the reason why not.
    pub(crate) fn half_precision(&self) -> HalfPrecision {
        if !self.asks_for_halves {
            return HalfPrecision::NotRequested;
        }
        if self.has(&PlanesMatmulKernel::wide()) {
            return HalfPrecision::Used;
        }
        HalfPrecision::NoCooperativeMatrices
    }

    /// Returns whether a kernel supports the GPU.
    pub(super) fn has(&self, kernel: &dyn Kernel) -> bool {
        self.device.target().has(kernel.first_target())
    }

    /// Records an event after all work so far.
    pub(super) fn event(&self) -> super::error::Result<Event> {
        Event::record(self.device.context(), std::ptr::null_mut())
    }

    pub(crate) fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Returns the kernel for an operation on inputs of these lengths, if there is one.
    pub(super) fn kernel_for(op: &Op, lens: &[usize], out: usize) -> Option<Work> {
        let longest = lens.iter().copied().chain([out]).max();
        // Nothing to compute, or more elements than kernels count.
        if out == 0 || longest > Some(LARGEST) {
            return None;
        }
        Work::of(op, lens.first().copied().unwrap_or(0))
    }

    /// Copies values to the GPU.
    pub(crate) fn upload(&self, values: &[f32]) -> crate::error::Result<CudaValues> {
        Ok(Arc::new(self.device.upload(values)?))
    }

    /// Copies values to the host, after all earlier work has finished.
    #[allow(clippy::unused_self)] // The buffer knows its GPU; other back-ends need themselves.
    pub(crate) fn read(&self, values: &CudaBuffer<f32>) -> crate::error::Result<Vec<f32>> {
        let mut out = try_zeros(values.len())?;
        values.read(&mut out)?;
        Ok(out)
    }

    /// Waits for all work, and returns its errors.
    pub(crate) fn synchronize(&self) -> crate::error::Result<()> {
        Ok(self.device.synchronize()?)
    }

    /// Runs an operation whose lengths were checked: on the GPU where there is a kernel, else on the CPU.
    pub(crate) fn run(
        &self,
        op: &Op,
        inputs: &[&[f32]],
        out: &mut [f32],
    ) -> crate::error::Result<()> {
        let lens: Vec<usize> = inputs.iter().map(|input| input.len()).collect();
        let Some(work) = Self::kernel_for(op, &lens, out.len()) else {
            return simd::execute(self.cpu, op, inputs, out);
        };
        let mut uploaded = Vec::with_capacity(inputs.len());
        for input in inputs {
            uploaded.push(self.device.upload(input)?);
        }
        let uploaded: Vec<&CudaBuffer<f32>> = uploaded.iter().collect();
        let y = self.compute(&work, &uploaded, out.len())?;
        // What failed while it ran is known before anything is written.
        self.device.synchronize()?;
        Ok(y.read(out)?)
    }

    /// Starts a kernel on elements in the GPU's memory; `len` is the length of its result.
    pub(super) fn compute(
        &self,
        work: &Work,
        inputs: &[&CudaBuffer<f32>],
        len: usize,
    ) -> crate::error::Result<CudaBuffer<f32>> {
        let on = &self.device;
        let mut y = on.zeros::<f32>(len)?;
        match (work, inputs) {
            (Work::Unary(function), [x]) => on.unary(*function, x, &mut y)?,
            (Work::Binary(function), [a, b]) => on.binary(*function, a, b, &mut y)?,
            (
                &Work::Softmax {
                    rows,
                    cols,
                    logarithm,
                },
                [x],
            ) => {
                if logarithm {
                    on.log_softmax_rows(x, &mut y, rows, cols)?;
                } else {
                    on.softmax_rows(x, &mut y, rows, cols)?;
                }
            }
            (&Work::Norm(epsilon), [x, gain, bias]) => {
                on.layer_norm(x, gain, bias, &mut y, epsilon)?;
            }
            (&Work::Norm(epsilon), [x, gain]) => on.rms_norm(x, gain, &mut y, epsilon)?,
            (&Work::Matmul(shape), [a, b]) => on.matmul_by_blocks(a, b, &mut y, shape)?,
            (Work::Sum, [x]) => on.sum(x, &mut y)?,
            (Work::Mean, [x]) => {
                let mut sum = on.zeros::<f32>(1)?;
                on.sum(x, &mut sum)?;
                let count = on.upload(&[x.len() as f32])?;
                on.binary(Binary::Div, &sum, &count, &mut y)?;
            }
            (Work::Dot, [a, b]) => on.dot(a, b, &mut y)?,
            (Work::Max, [x]) => on.max(x, &mut y)?,
            (Work::Min, [x]) => on.min(x, &mut y)?,
            _ => {
                let message = format!("a CUDA kernel was given {} inputs", inputs.len());
                return Err(crate::error::Error::Gpu { message });
            }
        }
        Ok(y)
    }
}

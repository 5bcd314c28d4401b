//! Single operations of a [`crate::GpuDevice`] that was built with [`crate::Backend::Cuda`].

use super::blocked_sum;
use super::device::CudaDevice;
use super::error::{Error, Result};
use super::ops::LARGEST;
use crate::ops::{Matmul, Op};
use crate::ptx::kernels::{Activation, Binary, Unary};

/// The first NVIDIA GPU.
pub(crate) struct CudaBackend {
    device: CudaDevice,
}

/// An operation that has a CUDA kernel.
enum Work {
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
            Op::Relu {} => Work::Unary(Unary::Activation(Activation::Relu)),
            Op::Exp {} => Work::Unary(Unary::Exp),
            Op::Sigmoid {} => Work::Unary(Unary::Sigmoid),
            Op::Abs {} => Work::Unary(Unary::Abs),
            Op::Neg {} => Work::Unary(Unary::Neg),
            Op::Sqrt {} => Work::Unary(Unary::Sqrt),
            Op::VecAdd {} => Work::Binary(Binary::Add),
            Op::Sub {} => Work::Binary(Binary::Sub),
            Op::Mul {} => Work::Binary(Binary::Mul),
            Op::Div {} => Work::Binary(Binary::Div),
            Op::Minimum {} => Work::Binary(Binary::Minimum),
            Op::Maximum {} => Work::Binary(Binary::Maximum),
            Op::Softmax {} => softmax(1, len, false),
            Op::LogSoftmax {} => softmax(1, len, true),
            Op::SoftmaxRows { rows, cols } => softmax(rows, cols, false),
            Op::LogSoftmaxRows { rows, cols } => softmax(rows, cols, true),
            Op::LayerNorm { epsilon, .. } | Op::RmsNorm { epsilon, .. } => Work::Norm(epsilon),
            Op::Matmul { m, k, n } => Work::Matmul([m, k, n]),
            Op::MatmulWith { options }
                if options == Matmul::new(options.m, options.k, options.n) =>
            {
                Work::Matmul([options.m, options.k, options.n])
            }
            Op::Sum {} => Work::Sum,
            Op::Mean {} => Work::Mean,
            Op::Dot {} => Work::Dot,
            Op::Max {} => Work::Max,
            Op::Min {} => Work::Min,
            _ => return None,
        })
    }
}

impl CudaBackend {
    pub(crate) fn open() -> crate::error::Result<Self> {
        let device = CudaDevice::open(0)?;
        Ok(CudaBackend { device })
    }

    pub(crate) fn name(&self) -> &str {
        self.device.name()
    }

    /// Runs an operation whose lengths were checked. Returns whether there is a kernel for it.
    pub(crate) fn run(
        &self,
        op: &Op,
        inputs: &[&[f32]],
        out: &mut [f32],
    ) -> crate::error::Result<bool> {
        let len = inputs.first().map_or(0, |input| input.len());
        let largest = inputs.iter().map(|input| input.len()).chain([out.len()]);
        // Empty inputs need no launch; larger sizes overflow the kernels' index arithmetic.
        if out.is_empty() || largest.max() > Some(LARGEST) {
            return Ok(false);
        }
        let Some(work) = Work::of(op, len) else {
            return Ok(false);
        };
        self.work(&work, inputs, out)?;
        if let Work::Mean = work {
            out[0] /= len as f32;
        }
        Ok(true)
    }

    fn work(&self, work: &Work, inputs: &[&[f32]], out: &mut [f32]) -> Result<()> {
        let on = &self.device;
        let mut uploaded = Vec::with_capacity(3);
        for input in inputs {
            uploaded.push(match *work {
                Work::Matmul([_, k, _]) if uploaded.is_empty() && k > 0 => {
                    on.upload(&blocked_sum::pack(input, k)?)?
                }
                _ => on.upload(input)?,
            });
        }
        let mut y = on.zeros::<f32>(out.len())?;
        match (work, &uploaded[..]) {
            (Work::Unary(function), [x]) => on.unary(*function, x, &mut y)?,
            (Work::Binary(function), [a, b]) => on.binary(*function, a, b, &mut y)?,
            (
                Work::Softmax {
                    rows,
                    cols,
                    logarithm,
                },
                [x],
            ) => {
                if *logarithm {
                    on.log_softmax_rows(x, &mut y, *rows, *cols)?;
                } else {
                    on.softmax_rows(x, &mut y, *rows, *cols)?;
                }
            }
            (&Work::Norm(epsilon), [x, gain, bias]) => {
                on.layer_norm(x, gain, bias, &mut y, epsilon)?;
            }
            (&Work::Norm(epsilon), [x, gain]) => on.rms_norm(x, gain, &mut y, epsilon)?,
            (&Work::Matmul(shape), [a, b]) => on.matmul_packed(a, b, &mut y, shape)?,
            (Work::Sum | Work::Mean, [x]) => on.sum(x, &mut y)?,
            (Work::Dot, [a, b]) => on.dot(a, b, &mut y)?,
            (Work::Max, [x]) => on.max(x, &mut y)?,
            (Work::Min, [x]) => on.min(x, &mut y)?,
            // The op table fixes the number of inputs of each operation.
            _ => {}
        }
        // Report errors of the launch before writing any output.
        on.synchronize()?;
        y.read(out)
    }
}

impl From<Error> for crate::error::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NoDriver { .. } | Error::NoDevice { .. } => crate::error::Error::NoGpu {
                reason: error.to_string(),
            },
            Error::OutOfMemory { bytes } => crate::error::Error::OutOfMemory { bytes },
            Error::Limit { what, value, limit } => crate::error::Error::LimitExceeded {
                what,
                value: value as u64,
                limit: limit as u64,
            },
            other => crate::error::Error::Gpu {
                message: other.to_string(),
            },
        }
    }
}

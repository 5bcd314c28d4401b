//! The policy for sending single operations to the GPU.

use crate::ops::{Matmul, Op, OpClass};

/// The least work of each class of operations for which the automatic choice uses the GPU.
///
/// The work of a matmul, a convolution or an attention is its number of multiply–adds; that of
/// `gather_rows` is the number of elements that it reads, and that of every other operation the
/// number of input elements. [`Policy::NEVER`] keeps a class on SIMD. The
/// thresholds hold for calls from and to host memory: a copy to and from a GPU is slower than a
/// CPU's pass over the same elements, so only work that grows faster than its data gains by the
/// GPU. Data that is already on the GPU ([`crate::DeviceBuffer`]) stays there whatever the policy
/// is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The threshold of [`OpClass::Elementwise`], in elements.
    pub elementwise: u64,
    /// The threshold of [`OpClass::Transcendental`], in elements.
    pub transcendental: u64,
    /// The threshold of [`OpClass::Reduction`], in elements.
    pub reduction: u64,
    /// The threshold of [`OpClass::Softmax`] (softmaxes and norms), in elements.
    pub softmax: u64,
    /// The threshold of [`OpClass::Matmul`], in multiply–adds.
    pub matmul: u64,
    /// The threshold of [`OpClass::Convolution`], in multiply–adds.
    pub convolution: u64,
    /// The threshold of [`OpClass::Movement`], in elements.
    pub movement: u64,
}

impl Policy {
    /// A threshold that no work reaches: keeps a class on SIMD.
    pub const NEVER: u64 = u64::MAX;

    /// A policy that runs everything on the GPU that its buffers can hold, however small.
    pub const ALWAYS_GPU: Self = Self {
        elementwise: 0,
        transcendental: 0,
        reduction: 0,
        softmax: 0,
        matmul: 0,
        convolution: 0,
        movement: 0,
    };

    /// Returns the threshold of a class.
    pub fn threshold(&self, class: OpClass) -> u64 {
        match class {
            OpClass::Elementwise => self.elementwise,
            OpClass::Transcendental => self.transcendental,
            OpClass::Reduction => self.reduction,
            OpClass::Softmax => self.softmax,
            OpClass::Matmul => self.matmul,
            OpClass::Convolution => self.convolution,
            OpClass::Movement => self.movement,
        }
    }

    /// Returns the policy with this threshold of a class.
    ///
    /// ```
    /// use relampago::{OpClass, Policy};
    ///
    /// let eager = Policy::default().with_threshold(OpClass::Matmul, 1 << 16);
    /// assert_eq!(eager.matmul, 65_536);
    /// ```
    #[must_use]
    pub fn with_threshold(mut self, class: OpClass, threshold: u64) -> Self {
        let of_class = match class {
            OpClass::Elementwise => &mut self.elementwise,
            OpClass::Transcendental => &mut self.transcendental,
            OpClass::Reduction => &mut self.reduction,
            OpClass::Softmax => &mut self.softmax,
            OpClass::Matmul => &mut self.matmul,
            OpClass::Convolution => &mut self.convolution,
            OpClass::Movement => &mut self.movement,
        };
        *of_class = threshold;
        self
    }

    /// Returns whether a GPU should run this operation on inputs of these lengths.
    pub fn prefers_gpu(&self, op: &Op, inputs: &[usize]) -> bool {
        reaches(self.threshold(op.class()), op, inputs)
    }

    /// Returns the policy with these thresholds, in the order of [`OpClass::ALL`].
    pub(crate) fn from_thresholds(thresholds: [u64; 7]) -> Self {
        let classes = OpClass::ALL.into_iter().zip(thresholds);
        classes.fold(Self::default(), |policy, (class, threshold)| {
            policy.with_threshold(class, threshold)
        })
    }

    /// Returns the thresholds, in the order of [`OpClass::ALL`].
    pub(crate) fn thresholds(&self) -> [u64; 7] {
        OpClass::ALL.map(|class| self.threshold(class))
    }
}

/// Returns whether an operation on inputs of these lengths has at least this work.
pub(crate) fn reaches(threshold: u64, op: &Op, inputs: &[usize]) -> bool {
    threshold != Policy::NEVER && work(op, inputs.iter().copied()) >= threshold
}

/// The origin of the thresholds that a device uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicySource {
    /// The thresholds of [`Policy::default`].
    #[default]
    Default,
    /// [`crate::GpuDevice::calibrate_async`] measured them, now or for an earlier device with the same adapter and CPU.
    Measured,
    /// The caller set them: [`crate::DeviceBuilder::policy`].
    Given,
}

impl PolicySource {
    /// Returns the name in JavaScript.
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Measured => "measured",
            Self::Given => "given",
        }
    }
}

impl Default for Policy {
    /// Returns the policy with 2²² multiply–adds for matmuls and convolutions, and [`Policy::NEVER`] for all
    /// other classes. Measured by `cargo xtask bench` on a discrete GPU (NVIDIA H200 on Vulkan), then one core with
    /// AVX-512: a matmul of 192³ took 84 and 125 µs, one of 128³ 70 and 36 µs; a convolution of 512² by 7 × 7 took
    /// 214 and 500 µs, by 3 × 3 211 and 150 µs. No other operation on a million elements was faster on the GPU.
    /// [`crate::GpuDevice::calibrate_async`] measures the thresholds of another machine.
    fn default() -> Self {
        Self {
            elementwise: Self::NEVER,
            transcendental: Self::NEVER,
            reduction: Self::NEVER,
            softmax: Self::NEVER,
            matmul: 1 << 22,
            convolution: 1 << 22,
            movement: Self::NEVER,
        }
    }
}

/// Returns the work of an operation on inputs of these lengths, in the units of [`Policy`].
pub(crate) fn work(op: &Op, mut inputs: impl Iterator<Item = usize>) -> u64 {
    let product = |dims: &[usize]| {
        let widened = dims.iter().map(|&dim| dim as u64);
        widened.fold(1, u64::saturating_mul)
    };
    match *op {
        Op::Matmul { m, k, n }
        | Op::MatmulWith {
            options: Matmul { m, k, n, .. },
        } => product(&[m, k, n]),
        Op::MatmulCached(ref call) => product(&call.shape()),
        Op::Convolve2d { options } => {
            let (rows, cols) = options.output_shape();
            product(&[rows, cols, options.kernel_rows, options.kernel_cols])
        }
        Op::ConvolveLayer { options } => {
            let (rows, cols) = options.output_shape();
            product(&[options.batch, options.filters, rows, cols, options.depth()])
        }
        // A product for the score, and one for the value.
        Op::Attention { options } => {
            let scores = product(&[options.tokens, options.positions, options.heads]);
            scores.saturating_mul(product(&[2, options.head_len]))
        }
        // The rows that are read, not the table.
        Op::GatherRows { cols, .. } => product(&[inputs.nth(1).unwrap_or(0), cols]),
        _ => inputs.map(|len| len as u64).fold(0, u64::saturating_add),
    }
}

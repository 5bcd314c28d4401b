//! Thresholds of the policy by measurement on this GPU and CPU.

use super::GpuDevice;
use super::executor::Executor;
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::ops::policy::{Policy, work};
use crate::ops::{Conv2d, Op, OpClass};
use crate::random::Philox;
use crate::runtime::{NATIVE, seconds};

/// The number of seconds that all measurements take, unless one of them takes longer.
const BUDGET: f64 = 0.8;
/// The number of seconds that a turn lasts at least, because a browser's clock may have steps of 0.1 ms; the largest number
/// of runs in a turn, and the number of turns, of which the shortest counts.
const TURN: f64 = if NATIVE { 5e-4 } else { 3e-3 };
const MAX_RUNS: u32 = 256;
const TURNS: usize = 3;
/// The largest number of elements of an input or a result.
const MAX_LEN: usize = 1 << 22;

/// The thresholds that [`GpuDevice::calibrate_async`] measured.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// The measured thresholds; [`Policy::NEVER`] for a class that was not faster on the GPU.
    pub policy: Policy,
    /// The measurements; none on SIMD and CUDA.
    pub samples: Vec<CalibrationSample>,
}

/// The times of one operation from and to host memory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CalibrationSample {
    /// The operation's class.
    pub class: OpClass,
    /// The operation's work, in the units of [`Policy`].
    pub work: u64,
    /// The time on the GPU, in seconds, with the copies to it and back.
    pub gpu: f64,
    /// The time on SIMD, in seconds.
    pub simd: f64,
}

/// An operation to measure.
struct Sample {
    op: Op,
    lens: Vec<usize>,
    /// The number of elements of the result.
    len: usize,
}

impl GpuDevice {
    /// Measures from which work on this GPU is faster than this CPU with its threads, for one operation of each class of
    /// [`Policy`], from and to host memory. It measures the most work of each class, and less where the GPU gains, until 0.8
    /// seconds are over. This device and its clones use the thresholds from now on, unless the caller gave a policy;
    /// [`crate::DeviceInfo::policy_source`] says which are in force.
    ///
    /// With a [`pipeline_cache`](crate::DeviceBuilder::pipeline_cache), later devices use them, too, if they have the same
    /// adapter, driver, vector instructions, number of threads and version of this crate. A damaged file is ignored. On
    /// SIMD and CUDA there is nothing to measure. Measure while the machine does nothing else.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::GpuDevice;
    ///
    /// let device = GpuDevice::new()?;
    /// let calibration = device.calibrate()?;
    /// println!("matmuls from {} multiply–adds on", calibration.policy.matmul);
    /// assert_eq!(device.policy(), calibration.policy);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `OutOfMemory`, and device errors.
    pub async fn calibrate_async(&self) -> Result<Calibration> {
        self.check()?;
        let mut calibration = Calibration {
            policy: self.policy(),
            samples: Vec::new(),
        };
        if self.executor().max_len().is_none() {
            return Ok(calibration);
        }
        let (mut values, mut out) = (try_zeros(MAX_LEN)?, try_zeros(MAX_LEN)?);
        Philox::new(1).uniform(0, &mut values);
        let start = seconds();
        for (class, left) in OpClass::ALL.into_iter().zip((1..=OpClass::ALL.len()).rev()) {
            let now = seconds();
            let until = now + (start + BUDGET - now) / left as f64;
            let memory = (&values[..], &mut out[..]);
            let threshold = self.threshold(class, memory, until, &mut calibration.samples);
            calibration.policy = calibration.policy.with_threshold(class, threshold.await?);
        }
        let thresholds = calibration.policy.thresholds();
        self.executor().remember_thresholds(self.cpu(), thresholds);
        self.inner.routing.adopt(thresholds);
        Ok(calibration)
    }

    /// Blocking version of [`GpuDevice::calibrate_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn calibrate(&self) -> Result<Calibration> {
        crate::runtime::block_on(self.calibrate_async())
    }

    /// Returns the least measured work for which the GPU is faster: by bisection if it is faster for the most work.
    async fn threshold(
        &self,
        class: OpClass,
        (values, out): (&[f32], &mut [f32]),
        until: f64,
        samples: &mut Vec<CalibrationSample>,
    ) -> Result<u64> {
        // Below the first the GPU is slower; it is faster from the second on.
        let (mut slower, mut faster) = (-1, levels(class));
        let mut threshold = Policy::NEVER;
        loop {
            let most = threshold == Policy::NEVER;
            let level = if most {
                faster - 1
            } else {
                i32::midpoint(slower, faster)
            };
            let measured = self.measured(sample(class, level as u32), (values, &mut *out), until);
            let sample = measured.await?;
            if sample.gpu < sample.simd {
                threshold = sample.work;
                faster = level;
            } else {
                slower = level;
            }
            samples.push(sample);
            // Where the GPU gains nothing by the most work, less is no better.
            if threshold == Policy::NEVER || faster - slower <= 1 || seconds() >= until {
                return Ok(threshold);
            }
        }
    }

    /// Measures an operation on the GPU and on SIMD.
    async fn measured(
        &self,
        Sample { op, lens, len }: Sample,
        (values, out): (&[f32], &mut [f32]),
        until: f64,
    ) -> Result<CalibrationSample> {
        let inputs: Vec<&[f32]> = lens.iter().map(|&len| &values[..len]).collect();
        let (out, cpu) = (&mut out[..len], Executor::Cpu(self.cpu()));
        Ok(CalibrationSample {
            class: op.class(),
            work: work(&op, lens.iter().copied()),
            simd: time(&cpu, &op, &inputs, out, until).await?,
            gpu: time(self.executor(), &op, &inputs, out, until).await?,
        })
    }
}

/// Returns the number of seconds of an operation: after a run that prepares it, the shortest of some turns.
async fn time(
    executor: &Executor,
    op: &Op,
    inputs: &[&[f32]],
    out: &mut [f32],
    until: f64,
) -> Result<f64> {
    executor.run(op, inputs, out).await?;
    let mut shortest = f64::INFINITY;
    for _ in 0..TURNS {
        let start = seconds();
        let (mut runs, mut took) = (0, 0.0);
        while runs == 0 || (took < TURN && runs < MAX_RUNS) {
            executor.run(op, inputs, out).await?;
            runs += 1;
            took = seconds() - start;
        }
        shortest = shortest.min(took / f64::from(runs));
        if seconds() >= until {
            break;
        }
    }
    Ok(shortest)
}

/// Returns the number of sizes in which a class is measured.
fn levels(class: OpClass) -> i32 {
    match class {
        OpClass::Matmul => 9,
        OpClass::Convolution => 11,
        OpClass::Elementwise
        | OpClass::Transcendental
        | OpClass::Reduction
        | OpClass::Softmax
        | OpClass::Movement => 13,
    }
}

/// Returns the operation of a class at a level: twice the elements of the level before, or longer sides by a half or a third.
fn sample(class: OpClass, level: u32) -> Sample {
    let count = 1 << (10 + level);
    let side = (2 + level as usize % 2) << (4 + level / 2);
    let square = side * side;
    let (op, lens, len) = match class {
        OpClass::Elementwise => (Op::VecAdd, vec![count; 2], count),
        OpClass::Transcendental => (Op::Gelu, vec![count], count),
        OpClass::Reduction => (Op::Sum, vec![count], 1),
        OpClass::Softmax => {
            let (rows, cols) = (count / 256, 256);
            (Op::SoftmaxRows { rows, cols }, vec![count], count)
        }
        OpClass::Matmul => {
            let [m, k, n] = [side; 3];
            (Op::Matmul { m, k, n }, vec![square; 2], square)
        }
        OpClass::Convolution => {
            let options = Conv2d::same(side, side, 7, 7);
            (Op::Convolve2d { options }, vec![square, 49], square)
        }
        OpClass::Movement => {
            let (rows, cols) = (count / 32, 32);
            (Op::Transpose { rows, cols }, vec![count], count)
        }
    };
    Sample { op, lens, len }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::shape::output_len;

    #[test]
    fn samples_are_valid_and_grow() {
        for class in OpClass::ALL {
            let mut last = 0;
            for level in 0..levels(class) {
                let Sample { op, lens, len } = sample(class, level as u32);
                assert_eq!(op.class(), class);
                assert_eq!(output_len(&op, &lens), Ok(len), "{op:?}");
                assert!(lens.iter().chain([&len]).all(|&len| len <= MAX_LEN));
                let work = work(&op, lens.into_iter());
                assert!(work > last && (last == 0 || work < 4 * last), "{op:?}");
                last = work;
            }
        }
    }
}

//! Checks of a GPU's results against SIMD.

mod cases;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::GpuDevice;
use super::executor::{Executor, Started};
use super::routing::TurnedOff;
use crate::error::{Error, Result};
use crate::graph::{Fetched, in_memory};
use crate::ops::{HalfPrecision, KernelGroup, OpClass};
use crate::simd;
use cases::Case;

/// The way in which [`GpuDevice::verify_async`] treats wrong results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnFault {
    /// Turns off the kernels that gave them.
    #[default]
    TurnOff,
    /// Returns `WrongResults`, and turns nothing off.
    Fail,
}

/// The report of [`GpuDevice::verify_async`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Verification {
    /// The operations that were checked, with the results before anything was turned off. Empty on SIMD and CUDA.
    pub cases: Vec<VerifiedCase>,
    /// The kernels that this check turned off.
    pub turned_off: Vec<TurnedOff>,
}

/// An operation that was checked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VerifiedCase {
    /// The operation's name.
    pub op: &'static str,
    /// The operation's class.
    pub class: OpClass,
    /// The names of the kernels on the GPU.
    pub kernels: Vec<&'static str>,
    /// The largest difference from the result on SIMD, as a part of the largest value; for sums of products, of the
    /// largest sum of their absolute values. Infinite for a NaN or ∞ where SIMD has none, and if the driver refused a
    /// kernel.
    pub error: f64,
    /// The largest error that the stated accuracies of GPU and SIMD allow.
    pub bound: f64,
}

impl VerifiedCase {
    /// Returns whether the error is within the bound.
    pub fn passed(&self) -> bool {
        self.error <= self.bound
    }
}

impl fmt::Display for VerifiedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}: ", self.op, self.kernels.join(", "))?;
        if self.passed() {
            return f.write_str("the error is within the bound");
        }
        // Whole numbers, since text of floating-point ones would be 2 KB of a page's download.
        match (self.error / self.bound).ceil() {
            f64::INFINITY => f.write_str("not a number, or refused by the driver"),
            times => write!(f, "the error is up to {} times the bound", times as u64),
        }
    }
}

impl GpuDevice {
    /// Runs a small set of operations on the GPU and on SIMD, and compares the results within the stated accuracies. The
    /// inputs show the known silent faults of GPUs and drivers: overflow of f16, wrong subgroup sizes, dropped barriers,
    /// kernels that write nothing.
    ///
    /// By [`OnFault::TurnOff`] the device, its clones and its later batches do without what failed: matmuls in f16 are
    /// replaced by matmuls in `f32`, kernels with subgroups by kernels without them. If an operation still fails, its
    /// whole class runs on SIMD. [`crate::DeviceInfo::turned_off`] has the reasons. Programs that were compiled before
    /// return `WrongResults` if an operation of theirs is of such a class, and so do batches with buffers on the GPU.
    ///
    /// The check takes some 30 short dispatches, and the time in which the driver compiles their kernels. On SIMD and CUDA
    /// it does nothing.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, OnFault};
    ///
    /// let device = GpuDevice::new()?;
    /// let report = device.verify(OnFault::TurnOff)?;
    /// for case in report.cases.iter().filter(|case| !case.passed()) {
    ///     println!("{case}");
    /// }
    /// assert_eq!(report.turned_off, device.info().turned_off);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WrongResults` by [`OnFault::Fail`], `OutOfMemory`, `DeviceLost`.
    pub async fn verify_async(&self, on_fault: OnFault) -> Result<Verification> {
        static SEED: AtomicU32 = AtomicU32::new(0);
        self.check()?;
        if self.executor().max_len().is_none() {
            return Ok(Verification::default());
        }
        let cases = cases::all(SEED.fetch_add(1, Ordering::Relaxed).into());
        let mut cases: Vec<&Case> = cases.iter().collect();
        let first = self.verified(&cases).await?;
        let mut failed = failures(&mut cases, &first);
        if let (OnFault::Fail, Some(case)) = (on_fault, failed.first()) {
            let what = case.to_string();
            return Err(Error::WrongResults { what });
        }
        let mut turned_off = Vec::new();
        for group in KernelGroup::ALL {
            if failed.is_empty() || !self.executor().switch(group, false) {
                continue;
            }
            let again = self.verified(&cases).await?;
            match failed.iter().zip(&again).find(|(_, again)| again.passed()) {
                Some((case, _)) => turned_off.push(TurnedOff {
                    what: group.name(),
                    reason: case.to_string(),
                }),
                // Not at fault.
                None => drop(self.executor().switch(group, true)),
            }
            failed = failures(&mut cases, &again);
        }
        for case in failed {
            if !self.inner.routing.is_off(case.class) {
                self.inner.routing.turn_off(case.class);
                turned_off.push(TurnedOff {
                    what: case.class.name(),
                    reason: case.to_string(),
                });
            }
        }
        self.inner.routing.report(&turned_off);
        Ok(Verification {
            cases: first,
            turned_off,
        })
    }

    /// Blocking version of [`GpuDevice::verify_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn verify(&self, on_fault: OnFault) -> Result<Verification> {
        crate::runtime::block_on(self.verify_async(on_fault))
    }

    /// Runs cases on the GPU, all of them before it waits for the first, and compares the results.
    async fn verified(&self, cases: &[&Case]) -> Result<Vec<VerifiedCase>> {
        let half_precision = self.info().half_precision == HalfPrecision::Used;
        let mut verified = Vec::new();
        for (case, started) in cases.iter().zip(start_all(self.executor(), cases)) {
            let op = &case.op;
            let mut bound = 2.0 * op.ulp() * f64::from(f32::EPSILON);
            if half_precision && op.class() == OpClass::Matmul {
                bound += 2f64.powi(-10);
            }
            let Some((running, kernels)) = started? else {
                continue;
            };
            let result = match running {
                Ok(running) => running.finished().await,
                Err(error) => Err(error),
            };
            let error = match result {
                Ok(results) => self.error_of(case, results)?,
                // The driver refused a kernel.
                Err(Error::Gpu { .. }) => f64::INFINITY,
                Err(error) => return Err(error),
            };
            verified.push(VerifiedCase {
                op: op.name(),
                class: op.class(),
                kernels,
                error,
                bound,
            });
        }
        Ok(verified)
    }

    /// Returns the error of a result beside that of SIMD.
    fn error_of(&self, case: &Case, results: Vec<Fetched>) -> Result<f64> {
        let result: Vec<f32> = results.into_iter().flat_map(in_memory).collect();
        let inputs: Vec<&[f32]> = case.inputs.iter().map(Vec::as_slice).collect();
        let mut wanted = vec![0.0; case.len];
        simd::execute(self.cpu(), &case.op, &inputs, &mut wanted)?;
        let mut sizes = wanted.clone();
        if let OpClass::Matmul | OpClass::Convolution | OpClass::Reduction = case.op.class() {
            let absolute = |values: &Vec<f32>| values.iter().map(|x| x.abs()).collect();
            let inputs: Vec<Vec<f32>> = case.inputs.iter().map(absolute).collect();
            let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
            simd::execute(self.cpu(), &case.op, &inputs, &mut sizes)?;
        }
        let size = sizes.iter().fold(0.0, |size: f32, x| size.max(x.abs()));
        let mut largest = 0.0;
        for (&is, &wanted) in result.iter().zip(&wanted) {
            let error = f64::from((is - wanted).abs()) / f64::from(size);
            if error > largest || error.is_nan() {
                largest = if error.is_nan() { f64::INFINITY } else { error };
            }
        }
        Ok(if result.len() == wanted.len() {
            largest
        } else {
            f64::INFINITY
        })
    }
}

/// Keeps the cases that failed, and returns their reports.
fn failures(cases: &mut Vec<&Case>, verified: &[VerifiedCase]) -> Vec<VerifiedCase> {
    let mut reports = verified.iter();
    cases.retain(|_| reports.next().is_some_and(|report| !report.passed()));
    let failed = verified.iter().filter(|report| !report.passed());
    failed.cloned().collect()
}

fn start(executor: &Executor, case: &Case) -> Result<Option<Started>> {
    let inputs: Vec<&[f32]> = case.inputs.iter().map(Vec::as_slice).collect();
    executor.start(&case.op, &inputs, case.len, case.raced)
}

/// Starts all cases, in several threads: drivers take most of the time, to compile the kernels.
#[cfg(not(target_arch = "wasm32"))]
fn start_all(executor: &Executor, cases: &[&Case]) -> Vec<Result<Option<Started>>> {
    /// The largest number of threads.
    const MAX_THREADS: usize = 8;
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let part = cases.len().div_ceil(threads.min(MAX_THREADS)).max(1);
    let start_some = |cases: &[&Case]| -> Vec<_> {
        let started = cases.iter().map(|case| start(executor, case));
        started.collect()
    };
    std::thread::scope(|scope| {
        let parts = cases.chunks(part).map(|cases| {
            let thread = std::thread::Builder::new();
            let thread = thread.spawn_scoped(scope, move || start_some(cases));
            thread.map_err(|_| cases)
        });
        let parts: Vec<_> = parts.collect();
        let joined = parts.into_iter().flat_map(|part| match part {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // The system has no more threads.
            Err(cases) => start_some(cases),
        });
        joined.collect()
    })
}

/// Starts all cases. Browsers compile kernels in a process of their own.
#[cfg(target_arch = "wasm32")]
fn start_all(executor: &Executor, cases: &[&Case]) -> Vec<Result<Option<Started>>> {
    cases.iter().map(|case| start(executor, case)).collect()
}

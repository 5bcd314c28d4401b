//! Times of a GPU's kernels.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::device::GpuDevice;
use crate::device::executor::Executor;
use crate::error::{Error, Result};
use crate::gpu::KernelTime;

/// The kernels that ran on a GPU between [`GpuDevice::profile`] and [`Profiler::finish`], with
/// their times.
///
/// Its `Display` is a table with one line for each kernel. Copies are not included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The kernels in the order of submission.
    pub kernels: Vec<KernelTime>,
}

/// Times every kernel of a device until [`finish`](Self::finish) is called or the profiler is
/// dropped.
#[must_use = "what it times is told by `finish`"]
#[derive(Debug)]
pub struct Profiler {
    device: GpuDevice,
    number: u64,
}

impl GpuDevice {
    /// Starts timing every kernel that this device runs, alone or in a batch, by GPU timestamps. During that time each
    /// dispatch is a separate pass. A second profiler of the same device replaces the first, which then reports
    /// nothing.
    ///
    /// ```no_run
    /// use relampago::{Backend, GpuDevice};
    ///
    /// let device = GpuDevice::builder().backend(Backend::Gpu).build()?;
    /// let profiler = device.profile()?;
    /// device.softmax(&[1.0, 2.0, 3.0], &mut [0.0; 3])?;
    /// let profile = profiler.finish()?;
    /// println!("{profile}");
    /// std::fs::write("trace.json", profile.chrome_trace()).unwrap();
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoGpu` on SIMD and CUDA, `Gpu` if the adapter has no timestamps.
    pub fn profile(&self) -> Result<Profiler> {
        let Executor::Gpu(gpu) = self.executor() else {
            let reason = "only kernels of WebGPU devices are timed".into();
            return Err(Error::NoGpu { reason });
        };
        let number = gpu.start_profiling()?;
        let device = self.clone();
        Ok(Profiler { device, number })
    }
}

impl Profiler {
    /// Stops timing, waits for the submitted work and returns the times.
    ///
    /// # Errors
    /// `DeviceLost`, and other errors of the GPU.
    pub fn finish(self) -> Result<Profile> {
        let kernels = match self.device.executor() {
            Executor::Gpu(gpu) => gpu.finish_profiling(self.number)?,
            Executor::Cpu(_) | Executor::Cuda(_) => Vec::new(),
        };
        Ok(Profile { kernels })
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        if let Executor::Gpu(gpu) = self.device.executor() {
            gpu.stop_profiling(self.number);
        }
    }
}

impl Profile {
    /// Returns the total time spent in kernels.
    pub fn total(&self) -> Duration {
        self.kernels.iter().map(|kernel| kernel.duration).sum()
    }

    /// Returns the profile in Chrome's trace event format, for `chrome://tracing` and Perfetto.
    pub fn chrome_trace(&self) -> String {
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let events = self.kernels.iter().map(|time| {
            format!(
                r#"{{"name":"{}","ph":"X","ts":{},"dur":{},"pid":0,"tid":0}}"#,
                time.kernel,
                micros(time.start),
                micros(time.duration)
            )
        });
        let events: Vec<String> = events.collect();
        format!("{{\"traceEvents\":[{}]}}", events.join(","))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sums: BTreeMap<&str, (u32, Duration)> = BTreeMap::new();
        for time in &self.kernels {
            let (calls, total) = sums.entry(time.kernel).or_default();
            *calls += 1;
            *total += time.duration;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|&(_, (_, total))| std::cmp::Reverse(total));
        let all = self.total().as_secs_f64();
        writeln!(f, "| kernel | calls | total, µs | mean, µs | share |")?;
        writeln!(f, "|---|---:|---:|---:|---:|")?;
        for (kernel, (calls, total)) in sums {
            let micros = total.as_secs_f64() * 1e6;
            let share = if all > 0.0 {
                100.0 * total.as_secs_f64() / all
            } else {
                0.0
            };
            writeln!(
                f,
                "| {kernel} | {calls} | {micros:.1} | {:.1} | {share:.1}% |",
                micros / f64::from(calls)
            )?;
        }
        Ok(())
    }
}

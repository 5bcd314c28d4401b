//! Waiting for results, and copies of them, on native targets.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use super::Readback;
use crate::error::Result;
use crate::{alloc, runtime};

/// The time for which a waiting thread polls. A wake-up takes up to 40 µs, as long as the rest of a
/// small operation.
const ATTENTIVE: Duration = Duration::from_millis(1);

/// The time for which a watching thread waits for another thread's callback.
const PATIENCE: Duration = Duration::from_secs(1);

impl Readback {
    /// A copy of the values, which must have arrived.
    pub(crate) fn values(&self) -> Result<Vec<f32>> {
        // SAFETY: there are as many places as values.
        unsafe { alloc::try_written(self.len, |places| self.write_to(places)) }
    }

    /// Copies the values, which must have arrived, to `out`, which is as long.
    pub(crate) fn copy_to(&self, out: &mut [f32]) -> Result<()> {
        // SAFETY: nothing but values is written there.
        self.write_to(unsafe { alloc::as_places(out) })
    }

    fn write_to(&self, places: &mut [MaybeUninit<f32>]) -> Result<()> {
        let seen = self.look(|view| crate::gpu::transfer::read(&view, places));
        seen.map(drop)
    }

    /// Does nothing: threads wait.
    #[allow(clippy::unused_async, clippy::unused_self)] // Browsers are asked.
    pub(super) async fn ask(&self) {}

    /// Waits on this thread if it may block, or else on another one.
    pub(super) fn watch(&self, already_watched: bool) {
        if runtime::is_blocking() {
            self.wait_here();
        } else if !already_watched {
            let wait = self.gpu.wait_elsewhere(self.submission.clone());
            let mapping = self.mapping.clone();
            let thread = std::thread::Builder::new().name("relampago-readback".into());
            let watcher = thread.spawn(move || {
                wait();
                // Another thread's poll may have found the mapping done, and be about to call back.
                let start = Instant::now();
                while mapping.lock().result.is_none() && start.elapsed() < PATIENCE {
                    std::thread::sleep(ATTENTIVE / 10);
                }
                // wgpu calls back even where the device is lost, but not where the GPU does not answer.
                if mapping.lock().result.is_none() {
                    mapping.finish(Err(wgpu::BufferAsyncError));
                }
            });
            if watcher.is_err() {
                self.gpu.wait(None);
            }
        }
    }

    /// Waits on the caller's thread, which has nothing else to do. A software adapter has: its
    /// threads need the processor.
    fn wait_here(&self) {
        let start = Instant::now();
        while !self.gpu.adapter.software && start.elapsed() < ATTENTIVE {
            let _ = self.gpu.device.poll(wgpu::PollType::Poll);
            if self.mapping.lock().result.is_some() {
                return;
            }
            std::hint::spin_loop();
        }
        self.gpu.wait(self.submission.clone());
        if self.gpu.health.has_given_up() {
            self.mapping.finish(Err(wgpu::BufferAsyncError));
        }
    }
}

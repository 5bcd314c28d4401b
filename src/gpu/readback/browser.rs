//! Waiting for results, and copies of them, in browsers.

use super::Readback;
use crate::alloc::try_zeros;
use crate::error::Result;

/// A tenth of a millisecond each: longer work need not be known to be done at once.
const QUESTIONS: usize = 50;

impl Readback {
    /// A copy of the values, which must have arrived.
    pub(crate) fn values(&self) -> Result<Vec<f32>> {
        let mut values = try_zeros(self.len)?;
        self.copy_to(&mut values)?;
        Ok(values)
    }

    /// Copies the values, which must have arrived, to `out`, which is as long. As bytes of Rust's they would be copied once
    /// more.
    pub(crate) fn copy_to(&self, out: &mut [f32]) -> Result<()> {
        let seen = self.look(|view| {
            view.as_uint8array()
                .copy_to(bytemuck::cast_slice_mut(&mut out[..self.len]));
        });
        seen.map(drop)
    }

    /// Browsers look whether work is done whenever they are called, and else milliseconds apart.
    /// An empty error scope is the cheapest call that answers.
    pub(super) async fn ask(&self) {
        for _ in 0..QUESTIONS {
            if self.mapping.lock().result.is_some() {
                return;
            }
            let scope = self
                .gpu
                .device
                .push_error_scope(wgpu::ErrorFilter::Internal);
            scope.pop().await;
        }
    }

    /// Does nothing: browsers call back.
    #[allow(clippy::unused_self)] // Natively somebody waits.
    pub(super) fn watch(&self, _: bool) {}
}

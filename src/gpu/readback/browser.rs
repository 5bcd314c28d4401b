//! Waiting for results, and copies of them, in browsers.

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;

use super::Readback;
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::gpu::target::is_firefox;

/// A tenth of a millisecond each: longer work need not be known to be done at once.
const QUESTIONS: usize = 50;

/// Milliseconds between two submissions in Firefox. After some of them a browser makes 4 of 1.
const TICK: i32 = 1;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(f: &Function, milliseconds: i32);
}

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
    /// An empty error scope is the cheapest call that answers. Firefox looks every 100 ms, and at each submission.
    pub(super) async fn ask(&self) {
        if is_firefox() {
            return self.tick().await;
        }
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

    /// Submits nothing, again and again until the values are there.
    async fn tick(&self) {
        while self.mapping.lock().result.is_none() {
            let timer = Promise::new(&mut |resolve, _| set_timeout(&resolve, TICK));
            let _ = JsFuture::from(timer).await; // It never rejects.
            self.gpu.queue.submit([]);
        }
    }

    /// Does nothing: browsers call back.
    #[allow(clippy::unused_self)] // Natively somebody waits.
    pub(super) fn watch(&self, _: bool) {}
}

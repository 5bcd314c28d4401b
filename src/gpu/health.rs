//! Errors of the device as [`Error`]s: error scopes and device loss.

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};

/// Why the device was lost, once it was.
#[derive(Clone, Default)]
pub(super) struct Health {
    lost: Arc<OnceLock<String>>,
}

impl Health {
    /// Watches a device that no one else watches.
    pub(super) fn watch(device: &wgpu::Device) -> Self {
        let health = Self::default();
        let lost = health.lost.clone();
        device.set_device_lost_callback(move |reason, message| {
            // The first reason stands.
            let _ = lost.set(format!("{reason:?}: {message}"));
        });
        health
    }

    /// `DeviceLost` if it was.
    pub(super) fn check(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(reason) => Err(Error::DeviceLost {
                reason: reason.clone(),
            }),
        }
    }
}

/// Open error scopes: everything done with the device on this thread is in their sight.
///
/// Scopes are a stack. Fields are dropped in their order here, the last opened first.
pub(super) struct Scopes {
    internal: wgpu::ErrorScopeGuard,
    validation: wgpu::ErrorScopeGuard,
    out_of_memory: wgpu::ErrorScopeGuard,
}

impl Scopes {
    pub(super) fn open(device: &wgpu::Device) -> Self {
        let out_of_memory = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let validation = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let internal = device.push_error_scope(wgpu::ErrorFilter::Internal);
        Self {
            internal,
            validation,
            out_of_memory,
        }
    }

    /// Closes the scopes. The returned future gives their error; on native targets it never waits.
    pub(super) fn close(self) -> impl Future<Output = Option<wgpu::Error>> + use<> {
        let internal = self.internal.pop();
        let validation = self.validation.pop();
        let out_of_memory = self.out_of_memory.pop();
        async move {
            let (memory, validity, other) = (out_of_memory.await, validation.await, internal.await);
            // Running out of memory makes invalid buffers, hence validation errors.
            memory.or(validity).or(other)
        }
    }
}

/// Converts wgpu's error to the crate's; `bytes` is the size that the failed work had requested.
pub(super) fn classify(error: &wgpu::Error, bytes: u64) -> Error {
    match error {
        wgpu::Error::OutOfMemory { .. } => Error::OutOfMemory { bytes },
        other => Error::Gpu {
            message: other.to_string(),
        },
    }
}

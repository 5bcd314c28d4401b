//! Errors of the device as [`Error`]s: error scopes and device loss.

use std::sync::{Arc, OnceLock};
#[cfg(not(target_arch = "wasm32"))]
use std::time::Duration;

use crate::error::{Error, Result};

/// Why the device was lost, once it was.
#[derive(Clone, Default)]
pub(super) struct Health {
    lost: Arc<OnceLock<Loss>>,
}

enum Loss {
    /// wgpu reported it.
    Reported(String),
    /// The GPU did not answer for this time. Browsers wait by themselves.
    #[cfg(not(target_arch = "wasm32"))]
    Unanswered(Duration),
}

impl Health {
    /// Begins to watch a device that is not watched yet.
    pub(super) fn watch(device: &wgpu::Device) -> Self {
        let health = Self::default();
        let lost = health.lost.clone();
        device.set_device_lost_callback(move |reason, message| {
            // The first reason stands.
            let _ = lost.set(Loss::Reported(format!("{reason:?}: {message}")));
        });
        health
    }

    /// `DeviceLost` if it was.
    pub(super) fn check(&self) -> Result<()> {
        let reason = match self.lost.get() {
            None => return Ok(()),
            Some(Loss::Reported(reason)) => reason.clone(),
            #[cfg(not(target_arch = "wasm32"))]
            Some(Loss::Unanswered(limit)) => format!("the GPU has not answered for {limit:?}"),
        };
        Err(Error::DeviceLost { reason })
    }

    /// Treats the device as lost, since the GPU did not answer within a limit.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn give_up(&self, limit: Duration) {
        let _ = self.lost.set(Loss::Unanswered(limit));
    }

    /// Returns whether waiting for the GPU is in vain.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn has_given_up(&self) -> bool {
        matches!(self.lost.get(), Some(Loss::Unanswered(_)))
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

//! Where operations run: the thresholds in force, and the classes that a failed check keeps off the GPU.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::ops::policy::{Policy, PolicySource, reaches};
use crate::ops::{Op, OpClass};

/// Kernels that a failed check turned off ([`crate::GpuDevice::verify_async`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnedOff {
    /// `f16` or `subgroups` if kernels without these took over on the GPU; otherwise a class of operations, by the name
    /// of its field of [`Policy`], which runs on SIMD.
    pub what: &'static str,
    /// The operation that failed, its kernels, its error and the bound.
    pub reason: String,
}

/// Thresholds that a measurement may replace while other threads read them, and the classes that are off.
pub(super) struct Routing {
    thresholds: [AtomicU64; 7],
    is_measured: AtomicU8,
    is_given: bool,
    /// A bit for each class.
    off: AtomicU8,
    turned_off: Mutex<Vec<TurnedOff>>,
}

impl Routing {
    /// Returns the routing by the caller's policy, or by the default one.
    pub(super) fn new(given: Option<Policy>) -> Self {
        let thresholds = given.unwrap_or_default().thresholds();
        Self {
            thresholds: thresholds.map(AtomicU64::new),
            is_measured: AtomicU8::new(0),
            is_given: given.is_some(),
            off: AtomicU8::new(0),
            turned_off: Mutex::default(),
        }
    }

    pub(super) fn policy(&self) -> Policy {
        Policy::from_thresholds(self.thresholds.each_ref().map(|value| value.load(Relaxed)))
    }

    pub(super) fn source(&self) -> PolicySource {
        if self.is_given {
            PolicySource::Given
        } else if self.is_measured.load(Relaxed) > 0 {
            PolicySource::Measured
        } else {
            PolicySource::Default
        }
    }

    /// Uses measured thresholds, unless the caller gave a policy.
    pub(super) fn adopt(&self, measured: [u64; 7]) {
        if self.is_given {
            return;
        }
        for (threshold, value) in self.thresholds.iter().zip(measured) {
            threshold.store(value, Relaxed);
        }
        self.is_measured.store(1, Relaxed);
    }

    /// Returns whether the thresholds send an operation on inputs of these lengths to the GPU.
    pub(super) fn prefers_gpu(&self, op: &Op, inputs: &[usize]) -> bool {
        let threshold = &self.thresholds[op.class() as usize];
        reaches(threshold.load(Relaxed), op, inputs)
    }

    /// Returns whether operations of a class may not run on the GPU.
    pub(super) fn is_off(&self, class: OpClass) -> bool {
        self.off.load(Relaxed) & (1 << class as u8) != 0
    }

    /// Keeps a class of operations off the GPU.
    pub(super) fn turn_off(&self, class: OpClass) {
        self.off.fetch_or(1 << class as u8, Relaxed);
    }

    pub(super) fn report(&self, turned_off: &[TurnedOff]) {
        let mut all = self
            .turned_off
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(turned_off);
    }

    pub(super) fn turned_off(&self) -> Vec<TurnedOff> {
        let all = self
            .turned_off
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

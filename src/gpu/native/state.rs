//! The part of a device's state that depends on the target.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::idle::{CloseOnDrop, Handles};
use super::timestamps::Stamps;
use super::wait::WAIT_LIMIT;
use crate::gpu::health::Health;
use crate::gpu::lru::Recent;
use crate::gpu::texts::Texts;
use crate::graph::Plan;
use crate::ops::Op;

/// A plan of one operation with its texts.
type PlanOfOne = Arc<(Plan, Texts)>;

/// The part of a device's state that only native targets have.
pub(in crate::gpu) struct TargetState {
    /// Plans of single operations, by operation and lengths of inputs.
    pub(in crate::gpu) plans: Recent<(Op, Vec<usize>), PlanOfOne>,
    pub(super) stamps: Stamps,
    /// The file in which choices are kept between processes.
    pub(super) choices_file: Option<PathBuf>,
    /// The time after which a GPU that has not finished counts as lost.
    pub(super) wait_limit: Duration,
    pub(super) closing: CloseOnDrop,
}

impl TargetState {
    pub(in crate::gpu) fn new(device: &wgpu::Device, queue: &wgpu::Queue, health: &Health) -> Self {
        let handles = Handles {
            device: device.clone(),
            queue: queue.clone(),
            health: health.clone(),
        };
        Self {
            plans: Recent::default(),
            stamps: Stamps::default(),
            choices_file: None,
            wait_limit: WAIT_LIMIT,
            closing: CloseOnDrop::new(handles),
        }
    }
}

//! The part of a device's state that depends on the target.

use std::path::PathBuf;
use std::sync::Arc;

use super::close::CloseOnDrop;
use super::timestamps::Stamps;
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
    _closing: CloseOnDrop,
}

impl TargetState {
    pub(in crate::gpu) fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Self {
        Self {
            plans: Recent::default(),
            stamps: Stamps::default(),
            choices_file: None,
            _closing: CloseOnDrop::new(device, queue),
        }
    }
}

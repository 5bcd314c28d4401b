//! Adapters, devices, and their caches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::health::Health;
use super::params::Params;
use super::pipelines::{PARAMS_SIZE, Pipelines};
use super::pool::Pool;
use super::target::{TargetState, adapter_name};
use super::tune::{Choices, Thresholds};
use crate::error::{Error, Result};
use crate::ops::HalfPrecision;
use crate::runtime::NATIVE;

/// Features requested if the adapter has them. Custom kernels and later kernels may rely on the features that
/// `DeviceInfo` reports.
const WANTED_FEATURES: wgpu::Features = wgpu::Features::SUBGROUP
    .union(wgpu::Features::SHADER_F16)
    .union(wgpu::Features::TIMESTAMP_QUERY)
    .union(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS);

/// A device with its caches.
pub(crate) struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) limits: Limits,
    pub(super) pipelines: Pipelines,
    pub(super) pool: Arc<Pool>,
    pub(super) params: Params,
    pub(super) half_precision: HalfPrecision,
    /// Whether a check found that matmuls in f16 are wrong.
    pub(super) f16_is_off: AtomicBool,
    pub(super) tuned: Choices,
    pub(super) measured: Thresholds,
    pub(super) health: Health,
    pub(super) adapter: Adapter,
    /// The last field, so that all others have let go of the device when it is dropped.
    pub(super) state: TargetState,
}

/// The limits of dispatches. The pool has the limits of buffers.
pub(super) struct Limits {
    /// Most workgroups along one side of a dispatch.
    pub(super) workgroups: usize,
    /// The alignment of offsets into a uniform buffer, in bytes.
    pub(super) uniform_alignment: usize,
    /// The number of bytes of memory that a workgroup's invocations share.
    pub(super) workgroup_memory: usize,
    /// Most invocations of a workgroup.
    pub(super) invocations: usize,
    /// The least and the most invocations of a subgroup; none where kernels may not use these.
    pub(super) subgroups: [usize; 2],
    /// Whether a check found that kernels with subgroups are wrong.
    pub(super) subgroups_are_off: AtomicBool,
    /// Whether kernels may read and write the host's memory.
    pub(super) mappable: bool,
}

impl Limits {
    /// Returns the least and the most invocations of a subgroup; none if kernels may not use these.
    pub(super) fn usable_subgroups(&self) -> [usize; 2] {
        if self.subgroups_are_off.load(Ordering::Relaxed) {
            return [0; 2];
        }
        self.subgroups
    }
}

/// Properties of an adapter.
#[derive(Clone, Debug)]
pub(crate) struct Adapter {
    pub(crate) name: String,
    pub(crate) api: String,
    pub(crate) software: bool,
}

impl Adapter {
    /// Returns the number of invocations in a workgroup, for kernels of variable workgroup size.
    /// Software adapters get as many as `SwiftShader` has lanes, because a barrier switches
    /// contexts once for each group of lanes.
    pub(super) fn group(&self) -> u32 {
        if self.software { 4 } else { 256 }
    }
}

impl Gpu {
    /// A device that no other code uses.
    pub(super) fn own(
        device: wgpu::Device,
        queue: wgpu::Queue,
        further_usages: Option<wgpu::BufferUsages>,
    ) -> Self {
        // Whatever no error scope sees is no result of ours; the default would be a panic.
        device.on_uncaptured_error(Arc::new(|error| log::error!("wgpu: {error}")));
        Self::adopt(device, queue, further_usages)
    }

    /// Returns a limit that is lower than the kernels need, with both numbers. WebGPU guarantees
    /// enough.
    pub(crate) fn lack(limits: &wgpu::Limits) -> Option<String> {
        let needed = [
            (
                "storage buffers a shader",
                limits.max_storage_buffers_per_shader_stage,
                8,
            ),
            (
                "invocations a workgroup",
                limits.max_compute_invocations_per_workgroup,
                256,
            ),
            (
                "workgroups along one side",
                limits.max_compute_workgroups_per_dimension,
                1,
            ),
            (
                "bytes of workgroup memory",
                limits.max_compute_workgroup_storage_size,
                16_352,
            ),
        ];
        let more = more_needed(limits);
        let more = if NATIVE { &more[..] } else { &[] };
        let mut needed = needed.iter().chain(more);
        let lack = needed.find(|(_, has, needs)| has < needs);
        lack.map(|(what, has, needs)| format!("{has} {what} where {needs} are needed"))
    }

    /// Uses a device that the caller opened. Buffers for values have further usages for other code.
    pub(crate) fn adopt(
        device: wgpu::Device,
        queue: wgpu::Queue,
        further_usages: Option<wgpu::BufferUsages>,
    ) -> Self {
        let limits = device.limits();
        let health = Health::watch(&device);
        Self {
            pipelines: Pipelines::new(device.clone()),
            pool: Pool::new(device.clone(), &limits, further_usages),
            params: Params::default(),
            half_precision: HalfPrecision::NotRequested,
            f16_is_off: AtomicBool::new(false),
            tuned: Choices::default(),
            measured: Thresholds::default(),
            adapter: describe(&device),
            limits: Limits {
                workgroups: limits.max_compute_workgroups_per_dimension as usize,
                uniform_alignment: limits.min_uniform_buffer_offset_alignment as usize,
                workgroup_memory: limits.max_compute_workgroup_storage_size as usize,
                invocations: most_invocations(&limits) as usize,
                subgroups: subgroups(&device),
                subgroups_are_off: AtomicBool::new(false),
                mappable: NATIVE
                    && device
                        .features()
                        .contains(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS),
            },
            state: TargetState::new(&device, &queue, &health),
            health,
            device,
            queue,
        }
    }

    pub(crate) fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// Returns whether matmuls run in f16.
    pub(crate) fn half_precision(&self) -> HalfPrecision {
        match self.half_precision {
            HalfPrecision::Used if self.f16_is_off.load(Ordering::Relaxed) => {
                HalfPrecision::WrongResults
            }
            other => other,
        }
    }

    /// Returns `DeviceLost` if the device was lost.
    pub(crate) fn check(&self) -> Result<()> {
        self.health.check()
    }

    /// Returns `LimitExceeded` on llvmpipe for long loops: it silently ends an invocation's loops
    /// after about 65,535 rounds in total.
    pub(super) fn check_on_llvmpipe(
        &self,
        what: &'static str,
        value: usize,
        limit: usize,
    ) -> Result<()> {
        if NATIVE && self.adapter.name.contains("llvmpipe") {
            return crate::ops::shape::check_limit(what, value, limit);
        }
        Ok(())
    }

    /// Returns the largest number of `f32` elements in one buffer.
    pub(crate) fn max_len(&self) -> usize {
        self.pool.max_len()
    }

    /// Lets wgpu deliver pending callbacks after an error; a device loss comes only once the queue
    /// is empty. Browsers do this by themselves.
    pub(super) fn deliver_callbacks(&self) {
        self.wait(None);
    }
}

/// Returns the size of the largest workgroup. Workgroups beyond the guaranteed size extend along the first axis.
/// Browsers have no such workgroups.
fn most_invocations(limits: &wgpu::Limits) -> u32 {
    if !NATIVE {
        return limits.max_compute_invocations_per_workgroup;
    }
    let along = limits.max_compute_workgroup_size_x;
    along.min(limits.max_compute_invocations_per_workgroup)
}

fn subgroups(device: &wgpu::Device) -> [usize; 2] {
    if !NATIVE || !device.features().contains(wgpu::Features::SUBGROUP) {
        return [0; 2];
    }
    super::f16_matmul::subgroup_sizes(&device.adapter_info()).map(|size| size as usize)
}

/// A device with all that an adapter has.
pub(super) fn all_of(adapter: &wgpu::Adapter) -> wgpu::DeviceDescriptor<'static> {
    wgpu::DeviceDescriptor {
        label: Some("relampago"),
        required_features: adapter.features() & WANTED_FEATURES,
        required_limits: adapter.limits(),
        memory_hints: wgpu::MemoryHints::Performance,
        ..Default::default()
    }
}

/// Returns further limits, each with the device's value and the value that kernels need. Every
/// browser's device has enough of them.
fn more_needed(limits: &wgpu::Limits) -> [(&'static str, u32, u32); 8] {
    let bytes = |size: u64| size.try_into().unwrap_or(u32::MAX);
    let uniform = bytes(limits.max_uniform_buffer_binding_size);
    let storage = limits.max_storage_buffer_binding_size;
    let storage = bytes(storage.min(limits.max_buffer_size));
    let dynamic = limits.max_dynamic_uniform_buffers_per_pipeline_layout;
    let [x, y] = [
        limits.max_compute_workgroup_size_x,
        limits.max_compute_workgroup_size_y,
    ];
    [
        ("invocations along a workgroup's first side", x, 256),
        ("invocations along a workgroup's second side", y, 16),
        ("bind groups", limits.max_bind_groups, 1),
        ("bindings a group", limits.max_bindings_per_bind_group, 10),
        (
            "uniform buffers a shader",
            limits.max_uniform_buffers_per_shader_stage,
            2,
        ),
        ("uniform buffers with offsets", dynamic, 1),
        ("bytes of a uniform buffer", uniform, PARAMS_SIZE as u32),
        ("bytes of a storage buffer", storage, PARAMS_SIZE as u32),
    ]
}

pub(super) fn no_gpu(reason: String) -> Error {
    Error::NoGpu { reason }
}

/// Returns whether an adapter is a software rasteriser; not all of them report themselves as a CPU.
pub(super) fn is_software(info: &wgpu::AdapterInfo, name: &str) -> bool {
    let known = ["swiftshader", "llvmpipe", "lavapipe", "basic", "warp"];
    let mut words = name.split([' ', '-', '(']);
    info.device_type == wgpu::DeviceType::Cpu
        || words.any(|word| known.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

fn describe(device: &wgpu::Device) -> Adapter {
    let info = device.adapter_info();
    let name = adapter_name(device, &info);
    Adapter {
        software: is_software(&info, &name),
        api: info.backend.to_string(),
        name,
    }
}

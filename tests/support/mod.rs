//! Cases of every operation and their judgement, for all back-ends and both environments.

// Each test program includes this file and uses some of it.
#![allow(dead_code, unreachable_pub, unused_imports)]

mod axes;
mod case;
pub mod graphs;
mod heads;
mod indices;
mod matrices;
mod ops;
mod random;
mod vectors;

#[cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]
use relampago::{Backend, GpuDevice, runtime, wgpu};

pub use axes::axis_cases;
pub use case::{Case, Summary};
pub use heads::head_cases;
pub use indices::index_cases;
pub use matrices::{matrix_cases, not_finite};
pub use ops::{binary_ops, custom_ops, reductions, sample_ops, unary_ops};
pub use random::Random;
pub use vectors::{SIZES, SPECIAL, special_cases, vector_cases};

/// Returns an adopted device with limits that `change` has lowered.
#[cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]
pub fn adopted(change: impl FnOnce(&mut wgpu::Limits)) -> (GpuDevice, wgpu::Device) {
    adopted_as(Backend::Gpu, change)
}

/// Adopts a device for a given back-end.
#[cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]
pub fn adopted_as(
    backend: Backend,
    change: impl FnOnce(&mut wgpu::Limits),
) -> (GpuDevice, wgpu::Device) {
    runtime::block_on(async {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let options = wgpu::RequestAdapterOptions::default();
        let adapter = instance
            .request_adapter(&options)
            .await
            .expect("a GPU adapter, if in software");
        let mut required_limits = adapter.limits();
        change(&mut required_limits);
        let descriptor = wgpu::DeviceDescriptor {
            required_limits,
            ..Default::default()
        };
        let (device, queue) = adapter.request_device(&descriptor).await.expect("a device");
        let builder = GpuDevice::builder().backend(backend);
        (builder.adopt(device.clone(), queue), device)
    })
}

/// All cases with vectors of at most `longest` values.
pub fn all_cases(longest: usize) -> Vec<Case> {
    let sizes = SIZES.into_iter().filter(|&len| len <= longest);
    let mut cases: Vec<Case> = sizes.flat_map(vector_cases).collect();
    cases.extend(special_cases());
    cases.extend(matrix_cases());
    cases
}

//! Devices whose features and limits a test chooses.

use std::sync::OnceLock;

use relampago::{Backend, GpuDevice, runtime, wgpu};

/// Returns a device without features, with limits that `change` has lowered, and its wgpu device.
pub fn opened(change: impl FnOnce(&mut wgpu::Limits)) -> (GpuDevice, wgpu::Device) {
    let device = opened_as(Backend::Gpu, change);
    let raw = device.as_wgpu().expect("limits that suffice").clone();
    (device, raw)
}

/// Opens a device for a given back-end.
pub fn opened_as(backend: Backend, change: impl FnOnce(&mut wgpu::Limits)) -> GpuDevice {
    let adapter = adapter();
    let mut required_limits = adapter.limits();
    change(&mut required_limits);
    let descriptor = wgpu::DeviceDescriptor {
        required_limits,
        ..Default::default()
    };
    let builder = GpuDevice::builder().backend(backend);
    builder.open_on(&adapter, &descriptor).expect("a device")
}

/// Returns the first adapter of the process's instance, asked for once: NVIDIA's driver answers several threads at a time no
/// more safely than it opens devices.
pub fn adapter() -> wgpu::Adapter {
    static ADAPTER: OnceLock<wgpu::Adapter> = OnceLock::new();
    let first = || {
        let descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        let instance = wgpu::Instance::new(descriptor);
        let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default());
        runtime::block_on(adapter).expect("a GPU adapter, if in software")
    };
    ADAPTER.get_or_init(first).clone()
}

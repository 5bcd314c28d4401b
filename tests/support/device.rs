//! Devices whose features and limits a test chooses.

use relampago::{Backend, GpuDevice, runtime, wgpu};

/// Returns a device without features, with limits that `change` has lowered, and its wgpu device.
pub fn opened(change: impl FnOnce(&mut wgpu::Limits)) -> (GpuDevice, wgpu::Device) {
    let device = opened_as(Backend::Gpu, change);
    let raw = device.as_wgpu().expect("limits that suffice").clone();
    (device, raw)
}

/// Opens a device for a given back-end.
pub fn opened_as(backend: Backend, change: impl FnOnce(&mut wgpu::Limits)) -> GpuDevice {
    let adapter = runtime::block_on(adapter());
    let mut required_limits = adapter.limits();
    change(&mut required_limits);
    let descriptor = wgpu::DeviceDescriptor {
        required_limits,
        ..Default::default()
    };
    let builder = GpuDevice::builder().backend(backend);
    builder.open_on(&adapter, &descriptor).expect("a device")
}

/// Returns the first adapter of the process's instance.
pub async fn adapter() -> wgpu::Adapter {
    static INSTANCE: std::sync::OnceLock<wgpu::Instance> = std::sync::OnceLock::new();
    let instance = INSTANCE.get_or_init(|| {
        wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle())
    });
    let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default());
    adapter.await.expect("a GPU adapter, if in software")
}

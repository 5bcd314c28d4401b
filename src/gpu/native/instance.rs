//! The process's wgpu instance.

use std::sync::OnceLock;

/// Returns the instance, which stays open. Each closed instance unloaded NVIDIA's driver, which could be loaded some thirty
/// times and then offered no adapter.
pub(super) fn instance() -> &'static wgpu::Instance {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    INSTANCE.get_or_init(|| {
        let descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        without_windows(&descriptor).unwrap_or_else(|| wgpu::Instance::new(descriptor))
    })
}

/// Returns an instance that cannot draw to windows; `None` if Vulkan cannot be loaded. wgpu's own enables what windows need
/// wherever the loader offers it. Mesa's layer that orders adapters then asks the display server for its one, and without a
/// display server libwayland writes to stderr, twice for each list of adapters.
#[cfg(target_os = "linux")]
fn without_windows(descriptor: &wgpu::InstanceDescriptor) -> Option<wgpu::Instance> {
    use wgpu::hal::{InstanceDescriptor, api, vulkan};

    let descriptor = InstanceDescriptor {
        name: "relampago",
        flags: descriptor.flags,
        memory_budget_thresholds: descriptor.memory_budget_thresholds,
        backend_options: descriptor.backend_options.clone(),
        telemetry: None,
        display: None,
    };
    let headless: Box<vulkan::CreateInstanceCallback<'_>> = Box::new(|arguments| {
        let is_of_windows = |name: &std::ffi::CStr| name.to_bytes().ends_with(b"surface");
        arguments.extensions.retain(|name| !is_of_windows(name));
    });
    // SAFETY: wgpu-hal uses an extension for windows only where a surface is made, after it has looked for the extension in
    // this list; this crate makes none. Nothing else uses the new instance.
    unsafe {
        let instance = vulkan::Instance::init_with_callback(&descriptor, Some(headless)).ok()?;
        Some(wgpu::Instance::from_hal::<api::Vulkan>(instance))
    }
}

/// Returns no value, because drivers of other systems do not report displays.
#[cfg(not(target_os = "linux"))]
fn without_windows(_: &wgpu::InstanceDescriptor) -> Option<wgpu::Instance> {
    None
}

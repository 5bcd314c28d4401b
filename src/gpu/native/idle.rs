//! Devices that stay open after their last use, for whoever opens the same adapter next.
//!
//! NVIDIA's driver for Vulkan (580.159) can deadlock or crash where one thread destroys a device while other threads
//! submit to other devices, destroy objects of them or end. 6 of 15 processes of 16 threads did that destroyed devices,
//! all on one thread; none of 60 did that left devices open.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::ffi::c_int;
use std::panic::catch_unwind;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::wait::{WAIT_LIMIT, wait};
use crate::gpu::health::Health;

/// An open device.
#[derive(Clone)]
pub(in crate::gpu) struct Handles {
    pub(in crate::gpu) device: wgpu::Device,
    pub(in crate::gpu) queue: wgpu::Queue,
    pub(in crate::gpu) health: Health,
}

/// Devices that are not in use. Their number is at most the largest number that was in use at one time.
static IDLE: Mutex<Vec<Handles>> = Mutex::new(Vec::new());

/// Devices that stay open and are not used again: adopted ones and lost ones.
static RETIRED: Mutex<Vec<wgpu::Device>> = Mutex::new(Vec::new());

/// Closes a device when dropped, or keeps it open if its driver cannot destroy devices safely. Belongs behind all other
/// owners of the device's objects.
pub(in crate::gpu) struct CloseOnDrop {
    handles: Handles,
    /// Whether this crate opened the device, so that later devices may be the same.
    reusable: bool,
}

impl CloseOnDrop {
    /// Takes handles of a device that the caller may use elsewhere.
    pub(in crate::gpu) fn new(handles: Handles) -> Self {
        let reusable = false;
        Self { handles, reusable }
    }

    /// Lets [`open`] return this device after its last use.
    pub(in crate::gpu) fn allow_reuse(&mut self) {
        self.reusable = true;
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let Handles { device, health, .. } = &self.handles;
        let stays = must_stay_open(&device.adapter_info());
        if stays {
            // wgpu frees memory once the GPU is known to have finished with it.
            wait(device, health, None, WAIT_LIMIT);
        }
        // Closing waits for the GPU, too, also when the process exits.
        if health.has_given_up() {
            std::mem::forget(device.clone());
        } else if stays {
            rest(&self.handles, self.reusable);
        }
    }
}

/// Returns whether a driver cannot destroy devices safely.
fn must_stay_open(info: &wgpu::AdapterInfo) -> bool {
    const NVIDIA: u32 = 0x10de;
    info.vendor == NVIDIA && info.backend == wgpu::Backend::Vulkan
}

/// Keeps a device open, on which the GPU has finished.
fn rest(handles: &Handles, reusable: bool) {
    destroy_at_exit();
    if reusable && handles.health.check().is_ok() {
        lock(&IDLE).push(handles.clone());
    } else {
        retire(&handles.device);
    }
}

/// Destroys all devices of the lists when the process exits, before the driver's own functions for that run. Threads of
/// NVIDIA's driver crash in these while a device is open: in 5 of 7 processes with some forty devices.
fn destroy_at_exit() {
    unsafe extern "C" {
        safe fn atexit(function: extern "C" fn()) -> c_int;
    }
    extern "C" fn destroy() {
        // Nobody is left to hear of a panic, and a list may be in use by a thread that still runs.
        let _ = catch_unwind(|| {
            keep_loaded();
            IDLE.try_lock().map(|mut idle| idle.clear()).ok();
            RETIRED.try_lock().map(|mut retired| retired.clear()).ok();
        });
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        atexit(destroy);
    });
}

/// Keeps NVIDIA's libraries loaded. Its driver unloads some with the last device, also while a thread of its own waits in one,
/// which then crashed.
#[cfg(target_os = "linux")]
fn keep_loaded() {
    use libloading::os::unix::{Library, RTLD_LAZY};

    let mapped = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let paths = mapped
        .lines()
        .filter_map(|line| line.find('/').map(|start| &line[start..]));
    let libraries = paths.filter(|path| path.contains("nvidia") && path.contains(".so"));
    for path in libraries.collect::<BTreeSet<_>>() {
        // SAFETY: it is loaded already, so nothing of it runs.
        if let Ok(library) = unsafe { Library::open(Some(path), RTLD_LAZY) } {
            std::mem::forget(library);
        }
    }
}

/// Does nothing: the driver is known to do that on Linux.
#[cfg(not(target_os = "linux"))]
fn keep_loaded() {}

fn retire(device: &wgpu::Device) {
    let mut retired = lock(&RETIRED);
    if !retired.contains(device) {
        retired.push(device.clone());
    }
}

/// Opens a device, or returns an idle one of the same adapter, features and limits. One thread at a time: NVIDIA's driver
/// creates devices no more safely than it destroys them.
pub(in crate::gpu) fn open(
    adapter: &wgpu::Adapter,
    descriptor: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    let mut idle = lock(&IDLE);
    if let Some(Handles { device, queue, .. }) = take(&mut idle, &adapter.get_info(), descriptor) {
        return Ok((device, queue));
    }
    // Natively the answer is there at once.
    pollster::block_on(adapter.request_device(descriptor))
}

/// Lists the adapters of all drivers, one thread at a time and while no other opens a device: in NVIDIA's driver threads that
/// ask for adapters' properties together crashed in 3 of 13 processes of 16 threads.
pub(super) fn list(instance: &wgpu::Instance) -> Vec<wgpu::Adapter> {
    let _alone = lock(&IDLE);
    pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()))
}

/// Takes the idle device that a descriptor describes. Retires devices that were lost since their last use.
fn take(
    idle: &mut Vec<Handles>,
    info: &wgpu::AdapterInfo,
    descriptor: &wgpu::DeviceDescriptor<'_>,
) -> Option<Handles> {
    let lost = idle.extract_if(.., |Handles { health, .. }| health.check().is_err());
    lost.for_each(|Handles { device, .. }| retire(&device));
    let same = |Handles { device, .. }: &Handles| {
        device.features() == descriptor.required_features
            && device.limits() == descriptor.required_limits
            && device.adapter_info() == *info
    };
    idle.iter()
        .position(same)
        .map(|index| idle.swap_remove(index))
}

fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

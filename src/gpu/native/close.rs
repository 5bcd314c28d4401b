//! Closes devices on one thread that lives as long as the process.
//!
//! NVIDIA's driver (580.159) can deadlock if a thread that has used Vulkan ends while another
//! short-lived thread destroys a device: 13 of 14 processes hung in which eight threads opened,
//! used and closed devices. With one long-lived thread that closed all devices, none hung.

use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// The handles that keep a device open. Dropping the last ones closes it.
type Device = (wgpu::Device, wgpu::Queue);

/// A device to close, and the channel that reports its closing.
type Request = (Device, Sender<()>);

/// Closes a device when dropped, if nobody else holds it. Belongs behind all other owners.
pub(in crate::gpu) struct CloseOnDrop(Option<Device>);

impl CloseOnDrop {
    pub(in crate::gpu) fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Self {
        Self(Some((device.clone(), queue.clone())))
    }
}

impl Drop for CloseOnDrop {
    /// Waits until the device is closed: programs that open devices in turn must not have several open.
    fn drop(&mut self) {
        let (Some(device), Some(closer)) = (self.0.take(), closer()) else {
            return;
        };
        let (done, closed) = channel();
        if closer.send((device, done)).is_ok() {
            // An error says that the thread is gone, and the device with it.
            let _ = closed.recv();
        }
    }
}

/// The way to the thread; `None` where none can be started, and devices close where they are dropped.
fn closer() -> Option<&'static Sender<Request>> {
    static CLOSER: OnceLock<Option<Sender<Request>>> = OnceLock::new();
    let closer = CLOSER.get_or_init(|| {
        let (requests, incoming) = channel::<Request>();
        let thread = thread::Builder::new().name("relampago-close".into());
        let started = thread.spawn(move || {
            for (device, done) in incoming {
                drop(device);
                let _ = done.send(());
            }
        });
        started.ok().map(|_| requests)
    });
    closer.as_ref()
}

//! Tests of the reuse of devices. With drivers that do not need reuse, devices are closed, so these tests call the
//! functions for reuse themselves.

use super::*;
use crate::gpu::Options;
use crate::gpu::context::{Gpu, all_of};
use crate::gpu::options::Preference;
use crate::ops::Op;
use crate::runtime::block_on;
use std::sync::Arc;

fn open_any() -> Arc<Gpu> {
    let options = Options {
        preference: Preference::Any,
        ..Options::default()
    };
    let opened = block_on(Gpu::open_some(&options, 1));
    opened
        .expect("the tests need an adapter, llvmpipe for one")
        .swap_remove(0)
}

fn handles(gpu: &Gpu) -> Handles {
    Handles {
        device: gpu.device.clone(),
        queue: gpu.queue.clone(),
        health: gpu.health.clone(),
    }
}

/// Returns a descriptor by which a device was opened.
fn descriptor(device: &wgpu::Device) -> wgpu::DeviceDescriptor<'static> {
    wgpu::DeviceDescriptor {
        required_features: device.features(),
        required_limits: device.limits(),
        ..Default::default()
    }
}

#[test]
fn a_device_is_used_again_by_those_who_open_the_same() {
    let opened = handles(&open_any());
    let info = opened.device.adapter_info();
    let mut idle = vec![opened.clone()];
    let mut other = descriptor(&opened.device);
    other.required_limits.max_bind_groups -= 1;
    assert!(take(&mut idle, &info, &other).is_none());
    other = descriptor(&opened.device);
    other.required_features.remove(wgpu::Features::SUBGROUP);
    assert!(take(&mut idle, &info, &other).is_none());
    let mut another = info.clone();
    another.device_pci_bus_id.push('1');
    let same = descriptor(&opened.device);
    assert!(take(&mut idle, &another, &same).is_none());
    let found = take(&mut idle, &info, &same).expect("the idle one");
    assert!(found.device == opened.device && idle.is_empty());
    let gpu = Arc::new(Gpu::own(found.device, found.queue, None));
    let mut sum = [0.0];
    block_on(gpu.run(&Op::Sum, &[&[2.0; 1_000]], &mut sum)).unwrap();
    assert_eq!(sum, [2_000.0]);
}

/// The features and limits that a device reports are those of its descriptor: otherwise none would be used again.
#[test]
fn a_device_suits_the_descriptor_that_it_was_opened_by() {
    let gpu = open_any();
    let adapters = super::super::open::find_adapters(Preference::Any).unwrap();
    let descriptor = all_of(&adapters[0]);
    let found = take(
        &mut vec![handles(&gpu)],
        &adapters[0].get_info(),
        &descriptor,
    );
    assert!(found.is_some());
}

#[test]
fn a_lost_device_is_not_used_again() {
    let lost = handles(&open_any());
    lost.device.destroy();
    wait(&lost.device, &lost.health, None, WAIT_LIMIT);
    let (info, same) = (lost.device.adapter_info(), descriptor(&lost.device));
    let mut idle = vec![lost.clone()];
    assert!(take(&mut idle, &info, &same).is_none() && idle.is_empty());
    assert!(lock(&RETIRED).contains(&lost.device));
}

#[test]
fn an_idle_device_holds_no_memory() {
    let gpu = open_any();
    let opened = handles(&gpu);
    let held = || {
        let report = opened.device.generate_allocator_report();
        report.expect("Vulkan has one").total_allocated_bytes
    };
    let of_wgpu = held();
    let x = vec![1.0; 1 << 20];
    block_on(gpu.run(&Op::Exp, &[&x], &mut x.clone())).unwrap();
    let buffer = block_on(gpu.upload(&x)).unwrap();
    assert!(held() >= of_wgpu + (4 << 20));
    drop((buffer, gpu));
    wait(&opened.device, &opened.health, None, WAIT_LIMIT);
    assert!(held() <= of_wgpu, "{} bytes, {of_wgpu} at first", held());
}

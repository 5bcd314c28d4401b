//! Buffers that other code of the same wgpu device uses.

use relampago::{Backend, DeviceBuffer, GpuCommandBatch, GpuDevice, runtime, wgpu};
use wgpu::BufferUsages as Usages;

const KERNELS: Usages = Usages::STORAGE
    .union(Usages::UNIFORM)
    .union(Usages::COPY_SRC)
    .union(Usages::COPY_DST);

fn open() -> GpuDevice {
    GpuDevice::builder().backend(Backend::Gpu).build().unwrap()
}

/// Returns a buffer of other code with these values.
fn foreign(device: &GpuDevice, values: &[f32], usage: Usages) -> wgpu::Buffer {
    let raw = device.as_wgpu().unwrap();
    let descriptor = wgpu::BufferDescriptor {
        label: None,
        size: (values.len() as u64 * 4).next_multiple_of(16).max(256),
        usage,
        mapped_at_creation: false,
    };
    let buffer = raw.create_buffer(&descriptor);
    if usage.contains(Usages::COPY_DST) {
        let bytes = bytemuck::cast_slice(values);
        device.queue().unwrap().write_buffer(&buffer, 0, bytes);
    }
    buffer
}

/// Reads a buffer as other code does: by a copy on the device's queue.
fn read(device: &wgpu::Device, queue: &wgpu::Queue, buffer: &wgpu::Buffer) -> Vec<f32> {
    let staging = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: buffer.size(),
        usage: Usages::MAP_READ | Usages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
    queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., Result::unwrap);
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let view = staging.get_mapped_range(..).unwrap();
    bytemuck::cast_slice(&view).to_vec()
}

#[test]
fn a_buffer_that_other_code_holds_keeps_its_values() {
    let device = open();
    let (raw, queue) = (
        device.as_wgpu().unwrap().clone(),
        device.queue().unwrap().clone(),
    );
    let sevens = device.upload(&[7.0; 4_000]).unwrap();
    let held = sevens.as_wgpu().unwrap().clone();
    drop(sevens);
    for _ in 0..3 {
        drop(device.upload(&[-1.0; 4_000]).unwrap());
    }
    assert_eq!(read(&raw, &queue, &held)[..4_000], [7.0; 4_000]);
    drop(device);
    assert_eq!(read(&raw, &queue, &held)[..4_000], [7.0; 4_000]);
}

#[test]
fn a_result_that_other_code_holds_keeps_its_values() {
    let device = open();
    let (raw, queue) = (device.as_wgpu().unwrap(), device.queue().unwrap());
    let result = |value: f32| -> DeviceBuffer {
        let mut batch = GpuCommandBatch::new(device.clone());
        let x = batch.upload(&vec![value; 4_000]);
        let y = batch.scale(x, 2.0);
        runtime::block_on(async {
            batch.execute_async().await?;
            batch.keep(y)
        })
        .unwrap()
    };
    let held = result(3.0).as_wgpu().unwrap().clone();
    let others: Vec<DeviceBuffer> = (0..4).map(|value| result(value as f32)).collect();
    assert_eq!(read(raw, queue, &held)[..4_000], [6.0; 4_000]);
    assert_eq!(others[3].read().unwrap(), [6.0; 4_000]);
}

#[test]
fn a_buffer_of_other_code_is_an_input() {
    let device = open();
    let values: Vec<f32> = (0..1_001).map(|i| i as f32).collect();
    let buffer = foreign(&device, &values, KERNELS);
    let x = device.adopt_buffer(buffer.clone(), values.len()).unwrap();
    assert_eq!((x.len(), x.read().unwrap()), (1_001, values));
    let mut batch = GpuCommandBatch::new(device.clone());
    let input = batch.input(&x);
    let sum = batch.sum(input);
    let sums = |batch: &mut GpuCommandBatch| {
        runtime::block_on(async {
            batch.execute_async().await?;
            batch.read_async(sum).await
        })
    };
    assert_eq!(sums(&mut batch).unwrap(), [500_500.0]);
    drop((batch, x));
    drop(device.upload(&[-1.0; 1_001]).unwrap());
    let held = read(device.as_wgpu().unwrap(), device.queue().unwrap(), &buffer);
    assert_eq!(held[1_000], 1_000.0);
}

#[test]
fn buffers_that_kernels_cannot_read_are_refused() {
    let device = open();
    let refused = |buffer: wgpu::Buffer, len: usize, fault: &str| {
        let error = device.adopt_buffer(buffer, len).unwrap_err();
        assert_eq!(error.code(), "INVALID_ARGUMENT");
        assert!(error.to_string().contains(fault), "{error}");
    };
    let without = foreign(&device, &[0.0; 64], KERNELS - Usages::UNIFORM);
    refused(without, 64, "without BufferUsages(UNIFORM)");
    refused(foreign(&device, &[0.0; 64], KERNELS), 65, "from 260");
    let odd = wgpu::BufferDescriptor {
        label: None,
        size: 260,
        usage: KERNELS,
        mapped_at_creation: false,
    };
    refused(
        device.as_wgpu().unwrap().create_buffer(&odd),
        65,
        "260 bytes",
    );
    let simd = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let buffer = foreign(&device, &[0.0; 64], KERNELS);
    let error = simd.adopt_buffer(buffer, 64).unwrap_err();
    assert!(error.to_string().contains("Backend::Gpu"), "{error}");
    assert!(simd.queue().is_none());
}

#[test]
fn a_buffer_of_another_device_is_an_error() {
    let (device, other) = (open(), open());
    let x = device
        .adopt_buffer(foreign(&other, &[1.0; 64], KERNELS), 64)
        .unwrap();
    assert_eq!(x.read().unwrap_err().code(), "GPU");
    let own = device.upload(&[2.0; 64]).unwrap();
    assert_eq!(own.read().unwrap(), [2.0; 64]);
}

#[test]
fn buffers_have_the_usages_of_a_renderer_on_request() {
    let builder = GpuDevice::builder().backend(Backend::Gpu);
    let device = builder.buffer_usages(Usages::VERTEX | Usages::INDIRECT | Usages::MAP_READ);
    let device = device.build().unwrap();
    let usage = |device: &GpuDevice| device.upload(&[1.0]).unwrap().as_wgpu().unwrap().usage();
    assert_eq!(usage(&device), KERNELS | Usages::VERTEX | Usages::INDIRECT);
    assert_eq!(usage(&open()), KERNELS);
}

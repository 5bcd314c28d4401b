//! The peer that anyone could write: relu by wgpu alone, everything made once.

use relampago::{runtime, wgpu};

pub(crate) struct PlainRelu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    bindings: wgpu::BindGroup,
    x: wgpu::Buffer,
    y: wgpu::Buffer,
    staging: wgpu::Buffer,
    workgroups: u32,
    out: Vec<f32>,
}

const SHADER: &str = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&x) { y[id.x] = max(x[id.x], 0.0); }
}";

impl PlainRelu {
    pub(crate) fn new(len: usize) -> Self {
        let (device, queue) = open();
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(SHADER.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let buffer = |usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: len as u64 * 4,
                usage,
                mapped_at_creation: false,
            })
        };
        let x = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST);
        let y = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[entry(0, &x), entry(1, &y)],
        });
        let workgroups = len.div_ceil(256) as u32;
        let out = vec![0.0; len];
        Self {
            device,
            queue,
            pipeline,
            bindings,
            x,
            y,
            staging,
            workgroups,
            out,
        }
    }

    pub(crate) fn run(&mut self, x: &[f32]) -> &[f32] {
        self.queue.write_buffer(&self.x, 0, bytemuck::cast_slice(x));
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bindings, &[]);
        pass.dispatch_workgroups(self.workgroups, 1, 1);
        drop(pass);
        encoder.copy_buffer_to_buffer(&self.y, 0, &self.staging, 0, None);
        self.queue.submit([encoder.finish()]);
        self.staging
            .slice(..)
            .map_async(wgpu::MapMode::Read, |_| ());
        self.device
            .poll(wgpu::PollType::wait_indefinitely())
            .expect("a live device");
        let view = self
            .staging
            .slice(..)
            .get_mapped_range()
            .expect("a mapped buffer");
        self.out.copy_from_slice(bytemuck::cast_slice(&view));
        drop(view);
        self.staging.unmap();
        &self.out
    }
}

pub(crate) fn entry(binding: u32, buffer: &wgpu::Buffer) -> wgpu::BindGroupEntry<'_> {
    wgpu::BindGroupEntry {
        binding,
        resource: buffer.as_entire_binding(),
    }
}

pub(crate) fn open() -> (wgpu::Device, wgpu::Queue) {
    runtime::block_on(async {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let options = wgpu::RequestAdapterOptions::default();
        let adapter = instance
            .request_adapter(&options)
            .await
            .expect("an adapter");
        let descriptor = wgpu::DeviceDescriptor {
            required_limits: adapter.limits(),
            ..Default::default()
        };
        adapter.request_device(&descriptor).await.expect("a device")
    })
}

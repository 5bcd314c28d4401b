//! The hardware's measured ceilings: copies, and multiply–adds in registers.

use crate::plain::{entry, open};
use relampago::wgpu;
use std::time::Instant;

pub(crate) struct Ceilings {
    /// Bytes read and written by a second of copying, in units of 10⁹.
    pub(crate) copy: f64,
    /// Floating-point operations a second, two for a multiply–add, in units of 10⁹.
    pub(crate) fma: f64,
}

const VECTORS: usize = 16;
const TURNS: usize = 1024;
const WORKGROUPS: usize = 4096;

/// Returns a shader with enough independent sums that no invocation waits for one of its own results.
fn shader() -> String {
    let each = |line: &dyn Fn(usize) -> String| (0..VECTORS).map(line).collect::<String>();
    format!(
        "@group(0) @binding(0) var<storage, read_write> y: array<vec4f>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {{
let a = 0.999 + 1e-9 * f32(id.x);
{}
for (var i = 0u; i < {TURNS}u; i++) {{
{}}}
let sum = {};
if dot(sum, vec4f(a)) < 0.0 {{ y[id.x] = sum; }}
}}",
        each(&|v| format!("var s{v} = vec4f(f32(id.x) + {v}.0);\n")),
        each(&|v| format!("s{v} = fma(s{v}, vec4f(a), vec4f(0.5));\n")),
        (0..VECTORS)
            .map(|v| format!("s{v}"))
            .collect::<Vec<_>>()
            .join(" + "),
    )
}

/// A copy by a kernel, since a driver's own may be slower; two loads are under way at once.
const COPY: &str = "@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4f>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32) {
    let i = 512u * (group.y * groups.x + group.x) + local;
    let first = x[i];
    let second = x[i + 256u];
    y[i] = first;
    y[i + 256u] = second;
}";

pub(crate) fn measure(divide: usize) -> Ceilings {
    let (device, queue) = open();
    let size = (256 << 20) / divide as u64;
    let buffer = || {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        })
    };
    let (from, to) = (buffer(), buffer());
    let rows = (size / (512 * 16 * 1024)) as u32;
    let copying = time(&device, &queue, COPY, &[&from, &to], [1024, rows]);
    let workgroups = (WORKGROUPS / divide).max(1);
    let grid = [workgroups as u32, 1];
    let multiplying = time(&device, &queue, &shader(), &[&to], grid);
    Ceilings {
        copy: 2e-9 * size as f64 / copying,
        fma: 8e-9 * (workgroups * 256 * VECTORS * TURNS) as f64 / multiplying,
    }
}

fn pipeline(device: &wgpu::Device, shader: &str) -> wgpu::ComputePipeline {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(shader.into()),
    });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    })
}

/// Returns the seconds of one dispatch: the difference between many and few, so that submission and
/// waiting cancel out. It is the best of several measurements, since a ceiling is the best that can
/// be reached.
fn time(
    device: &wgpu::Device,
    queue: &wgpu::Queue,
    shader: &str,
    buffers: &[&wgpu::Buffer],
    [width, height]: [u32; 2],
) -> f64 {
    let pipeline = pipeline(device, shader);
    let entries = buffers.iter().enumerate();
    let entries: Vec<_> = entries.map(|(i, buffer)| entry(i as u32, buffer)).collect();
    let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &entries,
    });
    let run = |times: usize| {
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &bindings, &[]);
        for _ in 0..times {
            pass.dispatch_workgroups(width, height, 1);
        }
        drop(pass);
        let start = Instant::now();
        queue.submit([encoder.finish()]);
        device
            .poll(wgpu::PollType::wait_indefinitely())
            .expect("a live device");
        start.elapsed().as_secs_f64()
    };
    run(20);
    let differences = (0..5).map(|_| (run(60) - run(20)) / 40.0);
    differences.fold(f64::INFINITY, f64::min)
}

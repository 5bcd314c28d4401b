//! Pipelines, layouts and bind groups, each made once.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::kernels::{ALL, Kernel};

/// Bytes of a dispatch's parameters.
pub(super) const PARAMS_SIZE: u64 = 64;

/// Bind groups kept; a batch of another shape every time would fill memory otherwise.
const MAX_BIND_GROUPS: usize = 1024;

/// Ids of the uniform buffer, the inputs and the output.
type BindGroupKey = Vec<u64>;

type BindGroups = Vec<(BindGroupKey, Arc<wgpu::BindGroup>)>;

pub(super) struct Pipelines {
    device: wgpu::Device,
    /// By [`Kernel::index`].
    compute: Vec<OnceLock<wgpu::ComputePipeline>>,
    /// By number of inputs, of which there is at least one.
    layouts: [OnceLock<wgpu::BindGroupLayout>; 2],
    /// Sorted by key. Fewer than a thousand need no hash table, whose code is a download.
    bind_groups: Mutex<BindGroups>,
}

impl Pipelines {
    pub(super) fn new(device: wgpu::Device) -> Self {
        Self {
            device,
            compute: ALL.iter().map(|_| OnceLock::new()).collect(),
            layouts: [const { OnceLock::new() }; 2],
            bind_groups: Mutex::default(),
        }
    }

    pub(super) fn pipeline(&self, kernel: &'static Kernel) -> &wgpu::ComputePipeline {
        self.compute[kernel.index].get_or_init(|| self.create_pipeline(kernel))
    }

    /// The bind group of a uniform buffer (with a dynamic offset) and storage buffers, the
    /// inputs first, each with its id.
    pub(super) fn bind_group(&self, buffers: &[(u64, &wgpu::Buffer)]) -> Arc<wgpu::BindGroup> {
        let key: BindGroupKey = buffers.iter().map(|&(id, _)| id).collect();
        let mut cache = self.lock();
        if cache.len() >= MAX_BIND_GROUPS {
            cache.clear();
        }
        match cache.binary_search_by(|(other, _)| other.cmp(&key)) {
            Ok(place) => cache[place].1.clone(),
            Err(place) => {
                let group = Arc::new(self.create_bind_group(buffers));
                cache.insert(place, (key, group.clone()));
                group
            }
        }
    }

    /// Forgets every bind group, after an error that may have left some invalid.
    pub(super) fn discard_bind_groups(&self) {
        let mut cache = self.lock();
        cache.clear();
    }

    fn lock(&self) -> MutexGuard<'_, BindGroups> {
        let locked = self.bind_groups.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    fn create_pipeline(&self, kernel: &'static Kernel) -> wgpu::ComputePipeline {
        let module = self
            .device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(kernel.name),
                source: wgpu::ShaderSource::Wgsl(kernel.source().into()),
            });
        let layout = self
            .device
            .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(self.layout(kernel.inputs))],
                immediate_size: 0,
            });
        self.device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(kernel.name),
                layout: Some(&layout),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // Every kernel writes its workgroup memory before it reads it.
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache: None,
            })
    }

    fn layout(&self, inputs: usize) -> &wgpu::BindGroupLayout {
        self.layouts[inputs - 1].get_or_init(|| self.create_layout(inputs))
    }

    fn create_layout(&self, inputs: usize) -> wgpu::BindGroupLayout {
        let entry = |binding: usize, ty, has_dynamic_offset, size| wgpu::BindGroupLayoutEntry {
            binding: binding as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset,
                min_binding_size: wgpu::BufferSize::new(size),
            },
            count: None,
        };
        let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
        let mut entries = vec![entry(
            0,
            wgpu::BufferBindingType::Uniform,
            true,
            PARAMS_SIZE,
        )];
        entries.extend((1..=inputs).map(|binding| entry(binding, storage(true), false, 16)));
        entries.push(entry(inputs + 1, storage(false), false, 16));
        self.device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: None,
                entries: &entries,
            })
    }

    fn create_bind_group(&self, buffers: &[(u64, &wgpu::Buffer)]) -> wgpu::BindGroup {
        let entries: Vec<_> = buffers
            .iter()
            .enumerate()
            .map(|(binding, (_, buffer))| wgpu::BindGroupEntry {
                binding: binding as u32,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset: 0,
                    size: wgpu::BufferSize::new(if binding == 0 {
                        PARAMS_SIZE
                    } else {
                        buffer.size()
                    }),
                }),
            })
            .collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: self.layout(buffers.len() - 2),
            entries: &entries,
        })
    }
}

//! Pipelines, layouts and bind groups, each made once.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::fused::FusedCode;
use super::kernels::{KERNELS, Kernel};
#[cfg(not(target_arch = "wasm32"))]
use super::target::PipelineFile;

/// The number of bytes of a dispatch's parameters.
pub(super) const PARAMS_SIZE: u64 = 256;

/// The least size of a storage buffer in bytes, a vector. It is given to wgpu, so that it need not
/// validate each dispatch. On Chromium a kernel that stores matrices needs more; zero leaves the
/// size to each kernel.
const LEAST_STORAGE: u64 = if cfg!(target_arch = "wasm32") { 0 } else { 16 };

/// The largest number of cached bind groups. A batch of a new shape every time would fill memory
/// otherwise.
const MAX_BIND_GROUPS: usize = 1024;

/// The largest number of cached pipelines of kernels with fused operations or constants.
const MAX_FUSED: usize = 1024;

/// The layout of a kernel's bindings.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Shape {
    inputs: usize,
    outputs: usize,
    /// The number of further read-only buffers.
    extras: usize,
    /// Whether the last input is a uniform buffer of [`PARAMS_SIZE`] bytes.
    #[cfg(not(target_arch = "wasm32"))]
    uniform: bool,
}

impl Shape {
    pub(super) fn of(kernel: &Kernel, extras: usize) -> Self {
        Self {
            inputs: kernel.inputs,
            outputs: 1,
            extras,
            #[cfg(not(target_arch = "wasm32"))]
            uniform: kernel.uniforms > 0,
        }
    }

    /// Inputs and outputs in storage buffers and no others.
    pub(super) fn plain(inputs: usize, outputs: usize) -> Self {
        Self {
            inputs,
            outputs,
            extras: 0,
            #[cfg(not(target_arch = "wasm32"))]
            uniform: false,
        }
    }

    /// Whether there is a uniform buffer at a binding.
    #[cfg_attr(target_arch = "wasm32", allow(clippy::unused_self))] // None but the first is, there.
    fn is_uniform(self, binding: usize) -> bool {
        #[cfg(not(target_arch = "wasm32"))]
        if self.uniform && binding == self.inputs {
            return true;
        }
        binding == 0
    }

    /// Returns a number that distinguishes bind groups with the same buffers.
    fn number(self) -> u64 {
        #[cfg(not(target_arch = "wasm32"))]
        if self.uniform {
            return !(self.inputs as u64);
        }
        (self.inputs | self.outputs << 16) as u64
    }
}

/// The key of a bind group: its layout's number, and the ids of the uniform buffer, the inputs, the
/// output and further read-only buffers.
type BindGroupKey = Vec<u64>;

type BindGroups = Vec<(BindGroupKey, Arc<wgpu::BindGroup>)>;

/// A kernel whose text is composed at run time, with the conventions of all kernels: uniform parameters, inputs,
/// outputs.
pub(super) struct Composed {
    pub(super) name: &'static str,
    pub(super) source: Cow<'static, str>,
    pub(super) proof: Proof,
}

/// How far a kernel's text proves that it is safe.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Proof {
    /// It has users' text.
    Nothing,
    /// Its loops end, since they count up to sizes far below the largest integer. Without counters of their own, prompts
    /// of language models take 5 to 13% less time.
    Ends,
    /// Also, no index leaves its array, and what it divides by are constants and numbers of tiles, which are not zero.
    StaysWithin,
}

/// Stands for the kernel's index among fused ones where the text is the key.
const COMPOSED: usize = usize::MAX;

pub(super) struct Pipelines {
    device: wgpu::Device,
    /// Pipelines by [`Kernel::index`].
    compute: Vec<OnceLock<wgpu::ComputePipeline>>,
    /// Pipelines of kernels with fused operations or constants, by kernel and text, and of
    /// [`Composed`] kernels.
    fused: Mutex<Vec<(usize, String, wgpu::ComputePipeline)>>,
    layouts: Mutex<Vec<(Shape, wgpu::BindGroupLayout)>>,
    /// Sorted by key. Fewer than a thousand need no hash table, whose code is a download.
    bind_groups: Mutex<BindGroups>,
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) file: Option<PipelineFile>,
    /// Changes a kernel's text, given its name: injects faults.
    #[cfg(test)]
    pub(super) fault: Option<fn(&str, String) -> String>,
}

impl Pipelines {
    pub(super) fn new(device: wgpu::Device) -> Self {
        Self {
            device,
            compute: (0..KERNELS).map(|_| OnceLock::new()).collect(),
            fused: Mutex::default(),
            layouts: Mutex::default(),
            bind_groups: Mutex::default(),
            #[cfg(not(target_arch = "wasm32"))]
            file: None,
            #[cfg(test)]
            fault: None,
        }
    }

    /// Saves the pipelines to disk, if there is a cache file.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn save(&self) {
        if let Some(file) = &self.file {
            file.save();
        }
    }

    pub(super) fn pipeline(
        &self,
        kernel: &'static Kernel,
        fused_code: &FusedCode,
        group: u32,
    ) -> wgpu::ComputePipeline {
        let key = fused_code.key();
        let shape = Shape::of(kernel, fused_code.bound.len());
        let create = || {
            let proof = fused_code.proof(kernel);
            let module = self.create_module(kernel.name, fused_code.source(kernel), proof);
            let group = [("GROUP", group.into())];
            let constants = &group[..usize::from(kernel.any_group)];
            #[cfg(not(target_arch = "wasm32"))]
            let constants = &[constants, &fused_code.constants()].concat()[..];
            self.create_pipeline(kernel.name, &module, constants, shape)
        };
        if key.is_empty() {
            return self.compute[kernel.index].get_or_init(create).clone();
        }
        self.fused(kernel.index, &key, create)
    }

    pub(super) fn composed(&self, kernel: &Composed, shape: Shape) -> wgpu::ComputePipeline {
        let source = &kernel.source;
        let create = || {
            let module = self.create_module(kernel.name, source.to_string(), kernel.proof);
            self.create_pipeline(kernel.name, &module, &[], shape)
        };
        self.fused(COMPOSED, source, create)
    }

    fn fused(
        &self,
        kernel: usize,
        key: &str,
        create: impl FnOnce() -> wgpu::ComputePipeline,
    ) -> wgpu::ComputePipeline {
        let mut fused = lock(&self.fused);
        let same = |(index, text, _): &&(usize, String, _)| *index == kernel && text == key;
        if let Some((_, _, pipeline)) = fused.iter().find(same) {
            return pipeline.clone();
        }
        let pipeline = create();
        if fused.len() >= MAX_FUSED {
            fused.clear();
        }
        fused.push((kernel, key.to_owned(), pipeline.clone()));
        pipeline
    }

    /// Returns the bind group of a uniform buffer (with a dynamic offset) and storage buffers: the
    /// inputs, the output and further read-only buffers, each with its id.
    pub(super) fn bind_group(
        &self,
        shape: Shape,
        buffers: &[(u64, &wgpu::Buffer)],
    ) -> Arc<wgpu::BindGroup> {
        let ids = buffers.iter().map(|&(id, _)| id);
        let key: BindGroupKey = [shape.number()].into_iter().chain(ids).collect();
        let mut cache = lock(&self.bind_groups);
        if cache.len() >= MAX_BIND_GROUPS {
            cache.clear();
        }
        match cache.binary_search_by(|(other, _)| other.cmp(&key)) {
            Ok(place) => cache[place].1.clone(),
            Err(place) => {
                let group = Arc::new(self.create_bind_group(shape, buffers));
                cache.insert(place, (key, group.clone()));
                group
            }
        }
    }

    /// Forgets every bind group, and every pipeline whose text was composed at run time, after an error that may have
    /// left some invalid.
    pub(super) fn discard(&self) {
        lock(&self.bind_groups).clear();
        lock(&self.fused).clear();
    }

    fn create_module(&self, name: &str, source: String, proof: Proof) -> wgpu::ShaderModule {
        #[cfg(test)]
        let source = match self.fault {
            Some(fault) => fault(name, source),
            None => source,
        };
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(name),
            source: wgpu::ShaderSource::Wgsl(source.into()),
        };
        // Browsers check everything.
        if cfg!(target_arch = "wasm32") {
            return self.device.create_shader_module(descriptor);
        }
        // SAFETY: the kernel's file proves what is not checked.
        unsafe {
            let mut checks = wgpu::ShaderRuntimeChecks::checked();
            checks.force_loop_bounding = proof == Proof::Nothing;
            checks.bounds_checks = proof != Proof::StaysWithin;
            checks.int_div_checks = checks.bounds_checks;
            self.device.create_shader_module_trusted(descriptor, checks)
        }
    }

    fn create_pipeline(
        &self,
        name: &str,
        module: &wgpu::ShaderModule,
        constants: &[(&str, f64)],
        shape: Shape,
    ) -> wgpu::ComputePipeline {
        let layout = self
            .device
            .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&self.layout(shape))],
                immediate_size: 0,
            });
        self.device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(name),
                layout: Some(&layout),
                module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // Every kernel writes its workgroup memory before it reads it.
                    zero_initialize_workgroup_memory: false,
                    constants,
                },
                #[cfg(not(target_arch = "wasm32"))]
                cache: self.file.as_ref().map(|file| &file.cache),
                #[cfg(target_arch = "wasm32")]
                cache: None,
            })
    }

    fn layout(&self, shape: Shape) -> wgpu::BindGroupLayout {
        let mut layouts = lock(&self.layouts);
        if let Some((_, layout)) = layouts.iter().find(|(other, _)| *other == shape) {
            return layout.clone();
        }
        let layout = self.create_layout(shape);
        layouts.push((shape, layout.clone()));
        layout
    }

    fn create_layout(&self, shape: Shape) -> wgpu::BindGroupLayout {
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
        let entries: Vec<_> = (0..=shape.inputs + shape.outputs + shape.extras)
            .map(|binding| {
                if shape.is_uniform(binding) {
                    let uniform = wgpu::BufferBindingType::Uniform;
                    return entry(binding, uniform, binding == 0, PARAMS_SIZE);
                }
                let outputs = shape.inputs + 1..=shape.inputs + shape.outputs;
                let read_only = !outputs.contains(&binding);
                let storage = wgpu::BufferBindingType::Storage { read_only };
                entry(binding, storage, false, LEAST_STORAGE)
            })
            .collect();
        self.device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: None,
                entries: &entries,
            })
    }

    fn create_bind_group(&self, shape: Shape, buffers: &[(u64, &wgpu::Buffer)]) -> wgpu::BindGroup {
        let entries: Vec<_> = buffers
            .iter()
            .enumerate()
            .map(|(binding, (_, buffer))| wgpu::BindGroupEntry {
                binding: binding as u32,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset: 0,
                    size: wgpu::BufferSize::new(if shape.is_uniform(binding) {
                        PARAMS_SIZE
                    } else {
                        buffer.size()
                    }),
                }),
            })
            .collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.layout(shape),
            entries: &entries,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

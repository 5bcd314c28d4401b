//! The adapters that native drivers offer.

use std::sync::Arc;

use super::cache::PipelineFile;
use super::idle;
use super::instance::instance;
use crate::error::Result;
use crate::gpu::context::{Gpu, all_of, is_software, no_gpu};
use crate::gpu::f16_matmul;
use crate::gpu::options::{Options, Preference};
use crate::ops::HalfPrecision;

impl Gpu {
    /// Opens the best adapters that meet the options, at least one and at most `most`; a software one if there is
    /// no other.
    #[allow(clippy::unused_async)] // Browsers answer later.
    pub(crate) async fn open_some(options: &Options, most: usize) -> Result<Vec<Arc<Self>>> {
        let mut opened = Vec::new();
        for adapter in find_adapters(options.preference)?.iter().take(most) {
            opened.push(Self::open_on(adapter, options)?);
        }
        Ok(opened)
    }

    fn open_on(adapter: &wgpu::Adapter, options: &Options) -> Result<Arc<Self>> {
        let mut descriptor = all_of(adapter);
        if options.pipelines.is_some() {
            let feature = wgpu::Features::PIPELINE_CACHE;
            descriptor.required_features |= adapter.features() & feature;
        }
        let mut half_precision = HalfPrecision::NotRequested;
        if options.half_precision {
            half_precision = f16_matmul::request_matrices(adapter, &mut descriptor);
        }
        let mut gpu = Self::open_as(adapter, &descriptor, options.further_usages)?;
        gpu.set_wait_limit(options.wait_limit);
        gpu.half_precision = half_precision;
        if let Some(folder) = options.pipelines.as_deref() {
            gpu.pipelines.file = PipelineFile::open(&gpu.device, folder);
            gpu.keep_choices_in(folder);
        }
        Ok(Arc::new(gpu))
    }

    /// Opens a device, whose buffers for values have further usages for other code.
    pub(crate) fn open_as(
        adapter: &wgpu::Adapter,
        descriptor: &wgpu::DeviceDescriptor<'_>,
        further_usages: Option<wgpu::BufferUsages>,
    ) -> Result<Self> {
        let opened = idle::open(adapter, descriptor);
        let (device, queue) = opened.map_err(|error| no_gpu(error.to_string()))?;
        let mut gpu = Self::own(device, queue, further_usages);
        gpu.state.closing.allow_reuse();
        Ok(gpu)
    }
}

pub(in crate::gpu) fn adapter_name(_: &wgpu::Device, info: &wgpu::AdapterInfo) -> String {
    info.name.clone()
}

/// Returns the acceptable adapters, the best first, at least one. Software adapters are returned
/// only if there is no other, and of one API, since each API lists the same GPUs again.
pub(super) fn find_adapters(preference: Preference) -> Result<Vec<wgpu::Adapter>> {
    let rank = |adapter: &wgpu::Adapter| {
        let info = adapter.get_info();
        match info.device_type {
            _ if is_software(&info, &info.name) => 4,
            wgpu::DeviceType::DiscreteGpu => 0,
            wgpu::DeviceType::IntegratedGpu => 1,
            wgpu::DeviceType::VirtualGpu => 2,
            _ => 3,
        }
    };
    let mut adapters = idle::list(instance());
    adapters.sort_by_key(rank);
    let best = adapters.first();
    let best = best.ok_or_else(|| no_gpu("no driver offers an adapter".into()))?;
    let (info, software) = (best.get_info(), rank(best) == 4);
    if preference == Preference::Hardware && software {
        return Err(no_gpu(format!("{} is a software adapter", info.name)));
    }
    adapters.retain(|adapter| {
        adapter.get_info().backend == info.backend && (rank(adapter) == 4) == software
    });
    Ok(adapters)
}

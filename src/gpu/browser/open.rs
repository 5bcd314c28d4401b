//! The adapter that a browser offers.

use std::sync::Arc;

use crate::error::Result;
use crate::gpu::context::{Gpu, all_of, no_gpu};
use crate::gpu::f16_matmul;
use crate::gpu::options::{Options, Preference};

impl Gpu {
    /// Opens the adapter that the browser offers, if it meets the options.
    pub(crate) async fn open_some(options: &Options, _: usize) -> Result<Vec<Arc<Self>>> {
        check_environment()?;
        let descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        let instance = wgpu::Instance::new(descriptor);
        let adapter = find_adapter(&instance).await?;
        let descriptor = all_of(&adapter);
        #[cfg(all(relampago_package, feature = "js"))]
        let shaders = crate::gpu::kernels::load();
        let (half_precision, opened) =
            f16_matmul::request_device(options.half_precision, &adapter, descriptor).await;
        let (device, queue) = opened.map_err(|error| no_gpu(error.to_string()))?;
        #[cfg(all(relampago_package, feature = "js"))]
        shaders.await?;
        let gpu = Self {
            half_precision,
            ..Self::own(device, queue, options.further_usages)
        };
        if options.preference == Preference::Hardware && gpu.adapter.software {
            return Err(no_gpu(format!(
                "{} is a software adapter",
                gpu.adapter.name
            )));
        }
        Ok(vec![Arc::new(gpu)])
    }
}

/// Returns the adapter's name. Browsers leave the description empty, but report vendor and
/// architecture.
pub(in crate::gpu) fn adapter_name(device: &wgpu::Device, info: &wgpu::AdapterInfo) -> String {
    use js_sys::Reflect;
    use wasm_bindgen::JsValue;

    let get = |object: &JsValue, key: &str| Reflect::get(object, &key.into()).ok();
    let raw = device.as_webgpu().map(JsValue::from);
    let details = raw.and_then(|device| get(&device, "adapterInfo"));
    let text = |key| get(details.as_ref()?, key)?.as_string();
    let parts = [
        text("vendor"),
        text("architecture"),
        Some(info.name.clone()),
    ];
    let mut name = String::new();
    for part in parts.into_iter().flatten() {
        if !name.is_empty() && !part.is_empty() {
            name.push(' ');
        }
        name.push_str(&part);
    }
    if name.is_empty() {
        name.push_str("unnamed adapter");
    }
    name
}

/// Refuses environments without a window or a worker, such as Node, where wgpu panics.
fn check_environment() -> Result<()> {
    use js_sys::Reflect;
    let global = js_sys::global();
    let get = |key: &str| Reflect::get(&global, &key.into()).unwrap_or_default();
    let browser = !get("Window").is_undefined() || !get("WorkerGlobalScope").is_undefined();
    if browser && !navigator_gpu().is_undefined() {
        return Ok(());
    }
    Err(no_gpu("there is no WebGPU here".into()))
}

/// The browser's way to its adapters; undefined where there is none.
pub(in crate::gpu) fn navigator_gpu() -> wasm_bindgen::JsValue {
    navigator("gpu")
}

/// Whether this is Firefox, or another browser with its engine.
pub(in crate::gpu) fn is_firefox() -> bool {
    let agent = navigator("userAgent").as_string();
    agent.is_some_and(|agent| agent.contains("Firefox/"))
}

/// Returns a property of `navigator`; undefined without one.
fn navigator(key: &str) -> wasm_bindgen::JsValue {
    let get = |object: &_, key: &str| js_sys::Reflect::get(object, &key.into()).unwrap_or_default();
    get(&get(&js_sys::global(), "navigator"), key)
}

async fn find_adapter(instance: &wgpu::Instance) -> Result<wgpu::Adapter> {
    let options = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..Default::default()
    };
    let found = instance.request_adapter(&options).await;
    found.map_err(|_| no_gpu("the browser offers no WebGPU adapter".into()))
}

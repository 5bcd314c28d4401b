//! Chromium's subgroup matrices. wgpu does not request features that it does not know, so this
//! module does.

use js_sys::{Array, Function, JsString, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::offered;
use crate::gpu::target::navigator_gpu;
use crate::ops::HalfPrecision;

/// The name of the feature while it is not part of the standard.
const MATRICES: &str = "chromium-experimental-subgroup-matrix";

#[wasm_bindgen]
extern "C" {
    /// `GPUAdapter`, with the members that wgpu leaves out.
    type Adapter;
    #[wasm_bindgen(method, getter)]
    fn features(this: &Adapter) -> js_sys::Set;
    #[wasm_bindgen(method, getter)]
    fn info(this: &Adapter) -> Info;

    type Info;
    #[wasm_bindgen(method, getter, js_name = subgroupMatrixConfigs)]
    fn configs(this: &Info) -> Option<Array<Config>>;

    /// Matrices of one kind, by their sides.
    type Config;
    #[wasm_bindgen(method, getter, js_name = componentType)]
    fn component(this: &Config) -> String;
    #[wasm_bindgen(method, getter, js_name = resultComponentType)]
    fn result_component(this: &Config) -> String;
    #[wasm_bindgen(method, getter, js_name = M)]
    fn m(this: &Config) -> u32;
    #[wasm_bindgen(method, getter, js_name = N)]
    fn n(this: &Config) -> u32;
    #[wasm_bindgen(method, getter, js_name = K)]
    fn k(this: &Config) -> u32;

    type Descriptor;
    #[wasm_bindgen(method, getter, js_name = requiredFeatures)]
    fn required_features(this: &Descriptor) -> Array<JsString>;
}

/// Returns a device and whether it has matrices: it has them if they were requested and the adapter offers them.
pub(in crate::gpu) async fn request_device(
    asked: bool,
    adapter: &wgpu::Adapter,
    descriptor: wgpu::DeviceDescriptor<'_>,
) -> (
    HalfPrecision,
    Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError>,
) {
    let request = || adapter.request_device(&descriptor);
    if !asked {
        return (HalfPrecision::NotRequested, request().await);
    }
    // `null` where the browser has lost it since.
    let raw = raw_adapter().await.ok().filter(|raw| !raw.is_null());
    let f16 = adapter.features().contains(wgpu::Features::SHADER_F16);
    let matrices = raw.filter(|raw| f16 && has_matrices(raw));
    let half_precision = offered(adapter, matrices.is_some());
    let Some(raw) = matrices.filter(|_| half_precision == HalfPrecision::Used) else {
        return (half_precision, request().await);
    };
    match with_matrices(raw, request).await {
        Ok(opened) => (half_precision, Ok(opened)),
        // Experimental as they are, a device without them may be had.
        Err(_) => (HalfPrecision::NoCooperativeMatrices, request().await),
    }
}

/// The adapter that wgpu was given, once more: an adapter gives one device, and wgpu shows none.
async fn raw_adapter() -> Result<Adapter, JsValue> {
    let gpu = navigator_gpu();
    let options = Object::new();
    Reflect::set(
        &options,
        &"powerPreference".into(),
        &"high-performance".into(),
    )?;
    let request: Function = Reflect::get(&gpu, &"requestAdapter".into())?.dyn_into()?;
    let adapter = Promise::resolve(&request.call1(&gpu, &options)?);
    JsFuture::from(adapter).await.map(JsCast::unchecked_into)
}

/// Whether the adapter has the matrices that the kernel is written for.
fn has_matrices(adapter: &Adapter) -> bool {
    let suits = |config: Config| {
        let components = [config.component(), config.result_component()];
        components == ["f16", "f32"] && [config.m(), config.n(), config.k()] == [16; 3]
    };
    let offered = || adapter.info().configs();
    adapter.features().has(&MATRICES.into())
        && offered().is_some_and(|configs| configs.iter().any(suits))
}

/// Calls a function in which wgpu requests a device from its adapter, and redirects the request to
/// this adapter, with the matrices. wgpu makes the request before the function returns, so no other
/// request can interfere.
fn with_matrices<T>(adapter: Adapter, request: impl FnOnce() -> T) -> T {
    let class = Object::get_prototype_of(&adapter);
    let method = JsValue::from("requestDevice");
    let own: Function = Reflect::get(&class, &method)
        .unwrap_or_default()
        .unchecked_into();
    let ask = own.clone();
    let instead = Closure::once_into_js(move |descriptor: Descriptor| {
        descriptor.required_features().push(&MATRICES.into());
        ask.call1(&adapter, &descriptor)
    });
    let replace = |function: &JsValue| Reflect::set(&class, &method, function);
    let _ = replace(&instead);
    let device = request();
    let _ = replace(&own);
    device
}

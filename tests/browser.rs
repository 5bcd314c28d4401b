//! Every operation in the browser, on WebGPU and on SIMD, against the oracles.

#![cfg(target_arch = "wasm32")]

mod support;

use relampago::{Backend, GpuCommandBatch, GpuDevice, runtime};
use support::graphs::Graph;
use support::{Case, Summary, all_cases};
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

const LONGEST: usize = 1_000_003;

async fn device(backend: Backend) -> GpuDevice {
    let device = GpuDevice::builder()
        .backend(backend)
        .build_async()
        .await
        .expect("WebGPU, if in software");
    console_log!("{}", device.info());
    device
}

/// A device on a GPU, if in software; `None` in engines without WebGPU, of which Chromium is none.
async fn gpu_device() -> Option<GpuDevice> {
    let built = GpuDevice::builder()
        .backend(Backend::Gpu)
        .build_async()
        .await;
    match built {
        Err(error) if error.code() == "NO_GPU" && !is_chromium() => None,
        built => Some(built.expect("WebGPU, if in software")),
    }
}

fn is_chromium() -> bool {
    let agent = js_sys::eval("navigator.userAgent").expect("every browser tells it");
    agent
        .as_string()
        .is_some_and(|agent| agent.contains("Chrome"))
}

async fn run_in_batch(device: &GpuDevice, case: &Case) -> Vec<f32> {
    let mut batch = GpuCommandBatch::new(device.clone());
    let inputs: Vec<_> = case
        .inputs
        .iter()
        .map(|values| batch.upload(values))
        .collect();
    let output = batch.record(case.op.clone(), &inputs);
    batch.execute_async().await.expect("a valid case");
    batch.read_async(output).await.expect("an executed batch")
}

/// Computes every case alone and, but for the longest vectors, in a batch as well.
async fn conforms(backend: Backend) {
    let device = device(backend).await;
    let on_gpu = backend == Backend::Gpu;
    let [mut alone, mut in_batch] = [Summary::default(), Summary::default()];
    for case in all_cases(LONGEST) {
        let oracle = case.oracle();
        let result = device.run_async(&case.op, &case.inputs()).await;
        alone.note(&case, oracle.judge(&result.expect("a valid case"), on_gpu));
        if case.inputs.iter().all(|input| input.len() < LONGEST) {
            let result = run_in_batch(&device, &case).await;
            in_batch.note(&case, oracle.judge(&result, on_gpu));
        }
    }
    for (title, summary) in [("alone", alone), ("in batches", in_batch)] {
        summary.report(&format!("{title}, {}", device.info()), |line| {
            console_log!("{line}");
        });
    }
}

#[wasm_bindgen_test]
async fn simd_conforms() {
    conforms(Backend::Simd).await;
}

#[wasm_bindgen_test]
async fn auto_falls_back_to_simd_without_a_gpu() {
    if gpu_device().await.is_none() {
        let device = GpuDevice::new_async().await.expect("always a device");
        assert_eq!(device.backend(), Backend::Simd);
        assert!(
            device.info().reason.contains("no WebGPU"),
            "{}",
            device.info()
        );
    }
}

#[wasm_bindgen_test]
async fn auto_does_not_choose_a_software_adapter() {
    let device = GpuDevice::new_async().await.expect("always a device");
    assert!(!device.info().software, "{}", device.info());
    assert_eq!(
        device.backend() == Backend::Gpu,
        GpuDevice::is_available_async().await
    );
}

#[wasm_bindgen_test]
async fn lost_device_returns_error_and_can_be_rebuilt() {
    let Some(device) = gpu_device().await else {
        return;
    };
    device.as_wgpu().expect("a GPU").destroy();
    let mut y = [7.0];
    let error = device
        .relu_async(&[1.0], &mut y)
        .await
        .expect_err("the device is gone");
    assert_eq!(error.code(), "DEVICE_LOST", "{error}");
    assert_eq!(y, [7.0]);
    let rebuilt = device
        .rebuild_async()
        .await
        .expect("there is still an adapter");
    rebuilt
        .relu_async(&[-1.0], &mut y)
        .await
        .expect("a new device");
    assert_eq!(y, [0.0]);
}

#[wasm_bindgen_test]
async fn spawned_futures_run() {
    use std::{cell::Cell, rc::Rc};
    assert!(!runtime::sync_available());
    let done = Rc::new(Cell::new(false));
    let seen = done.clone();
    runtime::spawn_local(async move { seen.set(true) });
    // The event loop runs what was spawned before what goes on with a promise that is kept already.
    let kept = js_sys::Promise::resolve(&wasm_bindgen::JsValue::TRUE);
    wasm_bindgen_futures::JsFuture::from(kept)
        .await
        .expect("it is kept");
    assert!(done.get());
}

async fn graphs_agree(backend: Backend, graphs: u64) {
    let device = device(backend).await;
    let mut kernels = [0, 0];
    for seed in 0..graphs {
        let took = Graph::random(seed).compare(&device).await;
        let took = took.unwrap_or_else(|error| panic!("graph {seed}: {error}"));
        kernels = [kernels[0] + took[0], kernels[1] + took[1]];
    }
    let [before, after] = kernels;
    console_log!("{graphs} graphs: {before} kernels as recorded, {after} optimised");
}

#[wasm_bindgen_test]
async fn optimised_graphs_match_on_simd() {
    graphs_agree(Backend::Simd, 2_000).await;
}

/// A GPU gets the same text from either module, so that it is enough if one of them shows it.
#[cfg(not(relampago_relaxed))]
mod webgpu {
    use super::{Backend, conforms, graphs_agree, wasm_bindgen_test};

    #[wasm_bindgen_test]
    async fn webgpu_conforms() {
        conforms(Backend::Gpu).await;
    }

    #[wasm_bindgen_test]
    async fn optimised_graphs_match_on_webgpu() {
        graphs_agree(Backend::Gpu, 100).await;
    }
}

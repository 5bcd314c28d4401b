//! Every kernel of the download, read by the browser as a driver would: the software adapter that is there runs only
//! some of them.

use wasm_bindgen_test::wasm_bindgen_test;

use super::ALL;
use crate::gpu::fused::FusedCode;
use crate::gpu::target::navigator_gpu;
use crate::gpu::{Gpu, Options, Preference};

/// The browser's errors about a text.
async fn refused(gpu: &Gpu, source: String) -> Vec<wgpu::CompilationMessage> {
    let source = wgpu::ShaderSource::Wgsl(source.into());
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: None,
        source,
    };
    let module = gpu.device.create_shader_module(descriptor);
    let mut messages = module.get_compilation_info().await.messages;
    messages.retain(|said| said.message_type == wgpu::CompilationMessageType::Error);
    messages
}

#[wasm_bindgen_test]
async fn kernels_are_valid_in_browsers() {
    // As in Firefox on Linux; a test in `tests/browser.rs` fails where Chromium has none.
    if navigator_gpu().is_undefined() {
        return;
    }
    let preference = Preference::Any;
    let options = Options {
        preference,
        ..Options::default()
    };
    let mut opened = Gpu::open_some(&options, 1)
        .await
        .expect("an adapter in software");
    let gpu = opened.swap_remove(0);
    let mut left_out = Vec::new();
    for kernel in ALL {
        let source = FusedCode::new(kernel).source(kernel);
        // Those are for devices with more than WGSL's core.
        if source.contains("enable ") {
            left_out.push(kernel.name);
            continue;
        }
        let errors = refused(&gpu, source).await;
        assert!(errors.is_empty(), "{}: {errors:?}", kernel.name);
    }
    assert_eq!(left_out, ["matmul_halves"]);
    assert!(
        !refused(&gpu, "fn main() { nothing(); }".to_owned())
            .await
            .is_empty()
    );
}

//! The clock for measurements.

/// Seconds since a moment that is the same for all calls.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn seconds() -> f64 {
    use std::sync::LazyLock;
    use std::time::Instant;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_secs_f64()
}

/// Seconds since a fixed moment, by JavaScript's clock: the standard library has none there.
#[cfg(target_arch = "wasm32")]
pub(crate) fn seconds() -> f64 {
    use wasm_bindgen::prelude::*;

    #[wasm_bindgen]
    extern "C" {
        #[wasm_bindgen(js_namespace = performance)]
        fn now() -> f64;
    }
    now() * 1e-3
}

//! Random numbers for tensors.

use js_sys::Float32Array;
use wasm_bindgen::prelude::*;

use super::device::JsDevice;
use crate::random::Philox;

/// The number of elements that are computed before they are copied to an array, a multiple of a block's four.
const PIECE: u32 = 1024;

#[wasm_bindgen(js_class = GpuDevice)]
impl JsDevice {
    /// Fills an array with elements of a seed's sequence: of the normal distribution, or else of the
    /// uniform one.
    #[wasm_bindgen(js_name = fillRandom, skip_typescript)]
    pub fn fill_random(into: &Float32Array, seed: f64, normal: bool) {
        let random = Philox::new(seed as u64);
        let mut memory = [0.0; PIECE as usize];
        for at in (0..into.length()).step_by(PIECE as usize) {
            let end = into.length().min(at.saturating_add(PIECE));
            let piece = &mut memory[..(end - at) as usize];
            if normal {
                random.normal(at.into(), piece);
            } else {
                random.uniform(at.into(), piece);
            }
            into.subarray(at, end).copy_from(piece);
        }
    }
}

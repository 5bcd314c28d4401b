//! Composes a shader from two files, the second of which imports what the first declares.
#![no_main]
#![allow(dead_code, unused_imports)]

#[path = "../../src/gpu/kernels/compose/mod.rs"]
mod compose;
#[path = "../../src/gpu/kernels/table.rs"]
mod table;
#[path = "../../src/ops/custom/words.rs"]
mod words;

use libfuzzer_sys::fuzz_target;
use relampago_coefficients::SHADER_CONSTANTS;

fuzz_target!(|text: &str| {
    let (library, kernel) = text.split_once("====\n").unwrap_or(("", text));
    let files = [("lib/a.wgsl", library), ("kernels/k.wgsl", kernel)];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    if let Ok(library) = compose::Library::new(&files, SHADER_CONSTANTS) {
        let _ = compose::own_text(&library, "kernels/k");
    }
});

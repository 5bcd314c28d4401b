//! The shaders that `build.rs` composed, and their text.

#[cfg(all(test, target_arch = "wasm32"))]
mod browser_tests;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

#[cfg(all(target_arch = "wasm32", relampago_package, feature = "js"))]
pub(super) use on_demand::load;

/// A piece of the shaders' text: the bytes from the first position up to the second.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Text(usize, usize);

/// An entry point, with the pieces of its text.
pub(super) struct Kernel {
    /// The key by which pipelines are cached.
    pub(super) index: usize,
    pub(super) name: &'static str,
    /// The number of bindings that are read. The binding that is written follows them.
    pub(super) inputs: usize,
    /// The number of uniform bindings among the inputs: 1 if the last one is uniform, 0 otherwise.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) uniforms: usize,
    /// Whether operations fused before and after it work on vectors of four values.
    pub(super) vectors: bool,
    /// Whether it stays within bounds by itself.
    pub(super) unchecked: bool,
    /// Whether its workgroups may have any power of two of invocations, as its constant says.
    pub(super) any_group: bool,
    /// Its text up to the end of its parameters, and from there.
    pub(super) start: Text,
    pub(super) end: Text,
    /// Functions that elementwise operations may replace, by name.
    pub(super) hooks: &'static [(&'static str, Text)],
    /// Its directives, and the declarations of other files that it needs.
    pub(super) items: &'static [Text],
}

/// An elementwise operation in WGSL.
pub(super) struct Function {
    /// The operation's name.
    pub(super) name: &'static str,
    /// `#` stands for the position of its first parameter, if it has any.
    pub(super) text: Text,
    /// The declarations of the library that it needs.
    pub(super) items: &'static [Text],
}

/// The functions that users' functions may call, with the types that they are of.
pub(super) const LIBRARY: &str = concat!(
    "alias real = f32; alias word = u32; alias truth = bool;\n",
    include_str!(concat!(env!("OUT_DIR"), "/nan.wgsl")),
);

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

impl Text {
    pub(super) fn get(self) -> &'static str {
        all().get(self.0..self.1).unwrap_or_default()
    }
}

impl Function {
    pub(super) fn all() -> &'static [Self] {
        FUNCTIONS
    }

    pub(super) fn named(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }
}

#[cfg(not(all(target_arch = "wasm32", relampago_package, feature = "js")))]
fn all() -> &'static str {
    const ALL: &str = include_str!(concat!(env!("OUT_DIR"), "/shaders.wgsl"));
    const { assert!(ALL.len() == LENGTH) };
    ALL
}

#[cfg(all(target_arch = "wasm32", relampago_package, feature = "js"))]
use on_demand::all;

/// In the npm package the text is a script of its own: who has no GPU need not load it. Modules that wasm-pack builds
/// contain the text.
#[cfg(all(target_arch = "wasm32", relampago_package, feature = "js"))]
mod on_demand {
    use std::sync::OnceLock;

    use wasm_bindgen::prelude::*;
    use wasm_bindgen_futures::JsFuture;

    use super::LENGTH;
    use crate::error::{Error, Result};

    #[wasm_bindgen(module = "/js/npm/shaders_loader.js")]
    extern "C" {
        #[wasm_bindgen(js_name = loadShaders)]
        fn load_shaders() -> js_sys::Promise;
    }

    static TEXT: OnceLock<String> = OnceLock::new();

    pub(in crate::gpu) fn all() -> &'static str {
        TEXT.get().map_or("", String::as_str)
    }

    /// Starts to load the text; the future waits for it.
    pub(in crate::gpu) fn load() -> impl Future<Output = Result<()>> {
        let loading = load_shaders();
        async {
            if TEXT.get().is_some() {
                return Ok(());
            }
            let text = JsFuture::from(loading).await.ok();
            let text = text.and_then(|text| text.as_string());
            // Another version's would be cut in the wrong places.
            let text = text.filter(|text| text.len() == LENGTH);
            let reason = || {
                "shaders.js could not be loaded, or is of another version; relampago/static brings it".to_owned()
            };
            let text = text.ok_or_else(|| Error::NoGpu { reason: reason() })?;
            let _ = TEXT.set(text);
            Ok(())
        }
    }
}

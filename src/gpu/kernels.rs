//! The shaders that `build.rs` composed and validated, and their text.

/// A piece of the library in `shaders/lib`.
pub(super) type Item = &'static &'static str;

/// An entry point and where its text comes from.
pub(super) struct Kernel {
    /// By which pipelines are cached.
    pub(super) index: usize,
    pub(super) name: &'static str,
    /// Storage bindings that are read. One that is written follows them.
    pub(super) inputs: usize,
    /// Whether what runs before and after it works on vectors of four values.
    pub(super) vectors: bool,
    /// Its text up to the end of its parameters, and from there.
    pub(super) start: &'static str,
    pub(super) end: &'static str,
    /// Functions that elementwise operations may replace, by name.
    pub(super) hooks: &'static [(&'static str, &'static str)],
    pub(super) items: &'static [Item],
}

/// An elementwise operation in WGSL.
pub(super) struct Function {
    /// The operation's name.
    pub(super) name: &'static str,
    /// `#` stands for the place of the first of its parameters, if it has any.
    pub(super) text: &'static str,
    pub(super) items: &'static [Item],
}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

impl Function {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }
}

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
    text: &'static str,
    items: &'static [Item],
}

/// An elementwise operation in WGSL.
pub(super) struct Function {
    /// The operation's name.
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) items: &'static [Item],
}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

impl Kernel {
    /// The kernel's WGSL, with `others` of the library.
    pub(super) fn source(&self, others: &[Item]) -> String {
        let added = others.iter().filter(|other| !self.items.contains(other));
        let mut source: String = self.items.iter().chain(added).map(|item| **item).collect();
        source.push_str(self.text);
        source
    }
}

impl Function {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }
}

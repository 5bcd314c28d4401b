//! The shaders that `build.rs` composed and validated, and their text.

/// An entry point and where its text comes from.
pub(super) struct Kernel {
    /// Position in [`ALL`], by which pipelines are cached.
    pub(super) index: usize,
    /// The operation's name, or the template's where it has no variants.
    pub(super) name: &'static str,
    /// Storage bindings that are read. One that is written follows them.
    pub(super) inputs: usize,
    /// The entry point, cut where the operation's function stands.
    template: &'static [&'static str],
    op: &'static str,
    items: &'static [&'static &'static str],
}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

impl Kernel {
    /// The kernel's WGSL.
    pub(super) fn source(&self) -> String {
        let mut source: String = self.items.iter().map(|item| **item).collect();
        source.push_str(&self.template.join(self.op));
        source
    }

    /// The kernel of an elementwise operation, which has the operation's name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        ALL.into_iter().find(|kernel| kernel.name == name)
    }
}

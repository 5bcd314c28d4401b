//! Options for opening a GPU.

/// The adapters that are acceptable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Preference {
    /// A real GPU or none.
    #[default]
    Hardware,
    /// A real GPU if there is one, else a software adapter.
    Any,
}

/// Choices made before a GPU is opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) preference: Preference,
    /// Whether to multiply matrices in f16 if the adapter supports it.
    pub(crate) half_precision: bool,
    /// The folder for compiled pipelines.
    pub(crate) pipelines: Option<std::path::PathBuf>,
    /// Further usages of buffers for values, for other code on the device.
    pub(crate) further_usages: Option<wgpu::BufferUsages>,
    /// The time after which a GPU that has not finished counts as lost, instead of the default.
    pub(crate) wait_limit: Option<std::time::Duration>,
}

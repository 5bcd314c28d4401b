//! Choices of kernels that the page keeps.

use crate::gpu::context::Gpu;
use crate::gpu::persist;

impl Gpu {
    /// Serialises the choices.
    pub(crate) fn choices(&self) -> Vec<u8> {
        persist::wrapped(self.tuned.text().as_bytes())
    }

    /// Loads serialised choices, unless they are damaged.
    pub(crate) fn adopt_choices(&self, choices: &[u8]) {
        let text = persist::unwrapped(choices).and_then(|text| std::str::from_utf8(text).ok());
        self.tuned.adopt(text.unwrap_or_default());
    }

    /// Does nothing: the page saves them.
    #[allow(clippy::unused_self)] // Natively there is a file.
    pub(in crate::gpu) fn save_choices(&self) {}
}

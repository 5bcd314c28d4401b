//! Modules: texts of one or several kernels.

use super::emit;
use super::kernel::PtxKernel;
use super::types::{Target, Version};

/// A module: the text of one or several kernels for one target, which any PTX compiler reads.
#[derive(Clone, Debug)]
pub struct PtxModule {
    target: Target,
    kernels: Vec<PtxKernel>,
}

impl PtxModule {
    /// Creates a module without kernels.
    pub fn new(target: Target) -> Self {
        PtxModule {
            target,
            kernels: Vec::new(),
        }
    }

    /// Adds a kernel and returns the module.
    ///
    /// # Errors
    /// The errors of [`PtxModule::add`].
    pub fn with(mut self, kernel: PtxKernel) -> super::Result<Self> {
        self.add(kernel)?;
        Ok(self)
    }

    /// Adds a kernel.
    ///
    /// # Errors
    /// [`super::Error::Target`] if the kernel was built for a later target, and
    /// [`super::Error::Invalid`] if its name, or the name of its dynamic array, is already in the
    /// module.
    pub fn add(&mut self, kernel: PtxKernel) -> super::Result<()> {
        if !self.target.has(kernel.target) {
            return Err(super::Error::Target {
                what: kernel.name,
                needed: kernel.target,
                target: self.target,
            });
        }
        if let Some(name) = self.taken(&kernel) {
            return Err(super::Error::invalid("name", name, "unique in the module"));
        }
        self.kernels.push(kernel);
        Ok(())
    }

    /// Returns a name of the kernel that is already in the module.
    fn taken(&self, kernel: &PtxKernel) -> Option<String> {
        let dynamic = kernel.shared.iter().filter(|array| array.dynamic);
        let arrays = dynamic.map(|array| format!("{}_{}", kernel.name, array.name));
        let mut names = arrays.chain([kernel.name.clone()]);
        names.find(|name| self.kernels.iter().any(|other| other.declares(name)))
    }

    /// Returns the module's target.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Returns the kernels, in the order of the text.
    pub fn kernels(&self) -> &[PtxKernel] {
        &self.kernels
    }

    /// Returns the oldest version of PTX that has all features used. A driver rejects versions
    /// newer than its own.
    pub fn version(&self) -> Version {
        let kernels = self.kernels.iter().map(|kernel| kernel.since);
        kernels.fold(self.target.since(), Version::max)
    }

    /// Returns the PTX text.
    pub fn emit(&self) -> String {
        let insts = self.kernels.iter().map(|kernel| kernel.code.insts().len());
        let (version, target) = (self.version(), self.target.name());
        let mut text = format!(".version {version}\n.target {target}\n.address_size 64\n");
        text.reserve(1024 + 48 * insts.sum::<usize>());
        for kernel in &self.kernels {
            emit::kernel(kernel, &mut text);
        }
        text
    }
}

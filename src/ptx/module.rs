//! A module: kernels that make one text.

use super::emit;
use super::kernel::PtxKernel;
use super::text::Text;
use super::types::{Target, Version};

/// A text that any PTX compiler reads: kernels for one target.
#[derive(Clone, Debug)]
pub struct PtxModule {
    target: Target,
    kernels: Vec<PtxKernel>,
}

impl PtxModule {
    /// A module without kernels.
    pub fn new(target: Target) -> Self {
        PtxModule {
            target,
            kernels: Vec::new(),
        }
    }

    /// The same with one more kernel.
    ///
    /// # Errors
    /// As [`PtxModule::add`].
    pub fn with(mut self, kernel: PtxKernel) -> super::Result<Self> {
        self.add(kernel)?;
        Ok(self)
    }

    /// Adds a kernel.
    ///
    /// # Errors
    /// [`super::Error::Target`] if it was written for a later target, and
    /// [`super::Error::Invalid`] if its name, or its dynamic array's in the text, is there already.
    pub fn add(&mut self, kernel: PtxKernel) -> super::Result<()> {
        if !self.target.has(kernel.target) {
            return Err(super::Error::Target {
                what: kernel.name,
                needed: kernel.target,
                target: self.target,
            });
        }
        if let Some(name) = self.taken(&kernel) {
            return Err(super::Error::invalid(
                "name",
                name,
                "a name of its own in the module",
            ));
        }
        self.kernels.push(kernel);
        Ok(())
    }

    /// A name of the kernel that another one has in the text.
    fn taken(&self, kernel: &PtxKernel) -> Option<String> {
        let dynamic = kernel.shared.iter().filter(|array| array.dynamic);
        let arrays = dynamic.map(|array| format!("{}_{}", kernel.name, array.name));
        let mut names = arrays.chain([kernel.name.clone()]);
        names.find(|name| self.kernels.iter().any(|other| other.declares(name)))
    }

    /// What the text is written for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The kernels, in order.
    pub fn kernels(&self) -> &[PtxKernel] {
        &self.kernels
    }

    /// The oldest version of PTX that has everything used: drivers refuse newer ones than theirs.
    pub fn version(&self) -> Version {
        let kernels = self.kernels.iter().map(|kernel| kernel.since);
        kernels.fold(self.target.since(), Version::max)
    }

    /// The text.
    pub fn emit(&self) -> String {
        let insts = self.kernels.iter().map(|kernel| kernel.code.insts().len());
        let mut text = Text::with_capacity(1024 + 48 * insts.sum::<usize>());
        let Version(major, minor) = self.version();
        text.push(".version ");
        text.number(major.into());
        text.push(".");
        text.number(minor.into());
        text.parts(&["\n.target ", self.target.name(), "\n"]);
        text.push(".address_size 64\n");
        for kernel in &self.kernels {
            emit::kernel(kernel, &mut text);
        }
        text.finish()
    }
}

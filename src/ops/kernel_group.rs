//! Groups of GPU kernels that others can replace.

/// Kernels that need a feature of the GPU. Others compute the same operations without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelGroup {
    /// Matmuls in f16.
    F16,
    /// Kernels whose subgroups exchange values.
    Subgroups,
}

impl KernelGroup {
    pub(crate) const ALL: [Self; 2] = [Self::F16, Self::Subgroups];

    /// Returns the name in [`crate::TurnedOff`].
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Subgroups => "subgroups",
        }
    }
}

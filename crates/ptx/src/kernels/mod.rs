//! The kernels: each type describes a kernel and builds it for a target.

mod attention;
mod cluster;
mod common;
mod copies;
mod elementwise;
mod exp;
mod fragments;
mod gemm;
mod hopper;
mod integers;
mod norm;
mod quantize;
mod reduce;
mod rope;
mod rows;
mod softmax;
mod steps;
mod values;

pub use attention::{AttentionKernel, DecodeAttentionKernel, DecodeSumKernel};
pub use elementwise::{Binary, ElementwiseKernel, Unary};
pub use gemm::{Activation, Epilogue, GemmKernel, PlanesMatmulKernel, SplitSumKernel, Tile};
pub use norm::LayerNormKernel;
pub use quantize::{QuantFormat, QuantizeKernel};
pub use reduce::{ReduceKernel, Reduction};
pub use rope::{Pairs, RopeKernel};
pub use rows::RowLayout;
pub use softmax::SoftmaxKernel;
pub use steps::{
    AddRowsKernel, ArgmaxKernel, CachedAttentionKernel, ChangeLogitsKernel, DigitSplit, DrawKernel,
    ForbidKernel, GateKernel, PackedExpertsKernel, PackedFormat, PackedMatmulKernel,
    PackedRowKernel, PlaceHeadsKernel, RankKernel, RouteKernel, SoftCapKernel, SplitKernel,
    SumWeightsKernel, UnpackKernel,
};

use super::error::Result;
use super::kernel::PtxKernel;
use super::module::PtxModule;
use super::types::Target;

/// A kernel that can be built for any target that supports it. Sizes are parameters of the launch,
/// so one text serves all sizes.
pub trait Kernel {
    /// Returns the name of the entry point. It must be unique for every text, since devices cache
    /// compiled kernels by name.
    fn name(&self) -> String;

    /// Returns the oldest target that supports the kernel.
    fn first_target(&self) -> Target {
        Target::Sm70
    }

    /// Generates the kernel for a target that has the features of [`Kernel::first_target`].
    ///
    /// # Errors
    /// [`super::Error::Invalid`] for an invalid description.
    fn generate(&self, target: Target) -> Result<PtxKernel>;

    /// Builds and verifies the kernel for a target.
    ///
    /// # Errors
    /// [`super::Error::Target`] if `target` lacks a feature of the kernel,
    /// [`super::Error::Invalid`] for an invalid description, [`super::Error::Limit`] if it needs more shared
    /// memory than the target has.
    fn build(&self, target: Target) -> Result<PtxKernel> {
        let needed = self.first_target();
        if target.has(needed) {
            return self.generate(target).map_err(|error| error.of(self.name()));
        }
        Err(super::Error::Target {
            what: self.name(),
            needed,
            target,
        })
    }

    /// Builds a module with only this kernel, for [`Kernel::first_target`].
    ///
    /// # Errors
    /// The errors of [`Kernel::build`].
    fn as_module(&self) -> Result<PtxModule> {
        let target = self.first_target();
        PtxModule::new(target).with(self.build(target)?)
    }

    /// Returns the text for [`Kernel::first_target`]. Every later GPU runs it too, unless the
    /// target is `sm_90a`.
    ///
    /// # Errors
    /// The errors of [`Kernel::build`].
    fn emit_ptx(&self) -> Result<String> {
        Ok(self.as_module()?.emit())
    }

    /// Returns the text for one target.
    ///
    /// # Errors
    /// The errors of [`Kernel::build`].
    fn emit_ptx_for_target(&self, target: Target) -> Result<String> {
        Ok(PtxModule::new(target).with(self.build(target)?)?.emit())
    }
}

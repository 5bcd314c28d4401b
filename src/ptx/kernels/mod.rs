//! The kernels: each a description that builds itself for a target.

mod attention;
mod cluster;
mod common;
mod copies;
mod elementwise;
mod exp;
mod fragments;
mod gemm;
mod hopper;
mod norm;
mod quantize;
mod reduce;
mod rope;
mod rows;
mod softmax;
mod values;

pub use attention::{AttentionKernel, DecodeAttentionKernel, DecodeSumKernel};
pub use elementwise::{Binary, ElementwiseKernel, Unary};
pub use gemm::{Activation, Epilogue, GemmKernel, SplitSumKernel, Tile};
pub use norm::LayerNormKernel;
pub use quantize::{QuantFormat, QuantizeKernel};
pub use reduce::{ReduceKernel, Reduction};
pub use rope::{Pairs, RopeKernel};
pub use rows::RowLayout;
pub use softmax::SoftmaxKernel;

use super::error::Result;
use super::kernel::PtxKernel;
use super::module::PtxModule;
use super::types::Target;

/// A kernel that can be written for any target that has what it needs. Sizes are parameters of
/// the launch: one text serves all of them.
pub trait Kernel {
    /// The entry point's name, another one for every text: by it a device knows what it has compiled.
    fn name(&self) -> String;

    /// The first target that has what the kernel needs.
    fn first_target(&self) -> Target {
        Target::Sm70
    }

    /// Writes the kernel for a target that has what [`Kernel::first_target`] has.
    ///
    /// # Errors
    /// [`super::Error::Invalid`] for a description that no kernel has.
    fn generate(&self, target: Target) -> Result<PtxKernel>;

    /// The kernel, verified, with its launch and its parameters as data.
    ///
    /// # Errors
    /// [`super::Error::Target`] if `target` lacks what the kernel needs,
    /// [`super::Error::Invalid`] for a description that no kernel has.
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

    /// A module with this kernel alone, for [`Kernel::first_target`].
    ///
    /// # Errors
    /// As [`Kernel::build`].
    fn as_module(&self) -> Result<PtxModule> {
        let target = self.first_target();
        PtxModule::new(target).with(self.build(target)?)
    }

    /// The text for [`Kernel::first_target`], which every later GPU runs, too, unless the target
    /// is `sm_90a`.
    ///
    /// # Errors
    /// As [`Kernel::build`].
    fn emit_ptx(&self) -> Result<String> {
        Ok(self.as_module()?.emit())
    }

    /// The text for one target.
    ///
    /// # Errors
    /// As [`Kernel::build`].
    fn emit_ptx_for_target(&self, target: Target) -> Result<String> {
        Ok(PtxModule::new(target).with(self.build(target)?)?.emit())
    }
}

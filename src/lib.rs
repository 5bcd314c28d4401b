//! One compute API that is always fast: WebGPU in the browser, Vulkan, Metal and DX12 natively,
//! SIMD where there is no GPU worth using.
//!
//! [`GpuDevice::new_async`] works everywhere and picks the back-end; every operation of the
//! [op table](ops) is a method of the device, of a [`GpuCommandBatch`], and of the JavaScript
//! classes, with the same meaning and the stated accuracy on all of them.
//!
//! # Features
//!
//! - `gpu` (default): WebGPU, Vulkan, Metal and DX12 through wgpu. Without it only SIMD remains.
//! - `threads` (default): large operations on SIMD are shared among the threads of rayon's pool,
//!   natively.
//! - `ptx`: the module of that name, which writes, verifies and interprets PTX for NVIDIA GPUs on any
//!   platform.
//! - `cuda`: the module of that name, which runs it through NVIDIA's driver, opened at run time, and
//!   the back-end [`Backend`] has for it.
//! - `llm`: the module of that name, which runs language models from GGUF files.
//!
//! `js` and `js-ptx` are for the npm package.
//!
//! # WebAssembly
//!
//! On `wasm32-unknown-unknown` kernels are compiled to simd128 without compiler flags; the module needs
//! an engine that has it, as all current ones do. `-C target-feature=+relaxed-simd` adds relaxed SIMD,
//! which not all have.

// wgpu's handles are not `Send` in the browser, where there is one thread; an `Rc` there would
// need a second set of types.
#![cfg_attr(target_arch = "wasm32", allow(clippy::arc_with_non_send_sync))]
// What is large and never takes long is marked as such: the package has it compiled for size.
#![cfg_attr(relampago_package, feature(optimize_attribute))]

mod alloc;
mod batch;
mod coefficients;
mod cpu;
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
pub mod cuda;
mod device;
mod error;
#[cfg(all(not(target_arch = "wasm32"), any(feature = "gpu", feature = "cuda")))]
mod files;
#[cfg_attr(not(feature = "gpu"), path = "gpu/absent.rs")]
mod gpu;
mod graph;
mod instruction_set;
#[cfg(all(target_arch = "wasm32", feature = "js"))]
mod js;
#[cfg(all(target_arch = "wasm32", feature = "js-ptx"))]
mod js_ptx;
#[cfg(all(target_arch = "wasm32", any(feature = "js", feature = "js-ptx")))]
mod js_shared;
#[cfg(feature = "llm")]
pub mod llm;
pub mod ops;
#[cfg(not(relampago_small))]
mod pool;
#[cfg(feature = "ptx")]
pub mod ptx;
#[doc(hidden)]
pub mod reference;
pub mod runtime;
mod simd;
mod tensor;

pub use batch::{Argument, BufferId, GpuCommandBatch, Program};
#[cfg(not(relampago_small))]
pub use device::Tuning;
pub use device::buffer::DeviceBuffer;
#[cfg(not(relampago_small))]
pub use device::matmul_cache::GpuMatmulCache;
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub use device::profile::{Profile, Profiler};
pub use device::tiled_reduce::{
    tiled_max_2d, tiled_min_2d, tiled_reduce_2d, tiled_reduce_partial, tiled_sum_2d,
};
pub use device::{Backend, DeviceBuilder, DeviceInfo, GpuDevice};
pub use error::{Error, Result};
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub use gpu::KernelTime;
pub use graph::{BufferPlace, Explanation, KernelInfo, PlanSummary};
pub use instruction_set::InstructionSet;
#[cfg(not(relampago_small))]
pub use ops::ConvLayer;
#[cfg(not(relampago_small))]
pub use ops::HalfPrecision;
#[cfg(not(relampago_small))]
pub use ops::custom::{CustomCall, CustomOp};
pub use ops::policy::Policy;
pub use ops::reduce_op::{MaxOp, MinOp, Partials, ReduceOp, SumOp, TILE_SIZE};
pub use ops::{Conv2d, Matmul, Op, Padding};
#[cfg(not(relampago_small))]
pub use pool::{
    GpuDevicePool, Lease, PoolProgram, StreamProgress, StreamSink, StreamSource, StreamWatch,
};
#[cfg(not(relampago_small))]
pub use tensor::quantized::{QuantizedWeights, WeightFormat};
pub use tensor::{BoundView, MemoryLayout, PartitionView, TensorView, TileInfo};

#[cfg(feature = "gpu")]
pub use wgpu;

/// The samples of the README and the guides, run with the documentation's.
#[cfg(doctest)]
mod samples {
    macro_rules! document {
        ($name:ident, $path:literal) => {
            #[doc = include_str!($path)]
            struct $name;
        };
    }

    document!(Readme, "../README.md");
    document!(Rust, "../docs/guide/rust.md");
    document!(Views, "../docs/guide/views-and-caches.md");
    document!(Custom, "../docs/guide/custom-operations-and-pools.md");
    #[cfg(feature = "llm")]
    document!(LanguageModels, "../docs/guide/language-models.md");
}

//! One compute API for GPUs and CPUs: WebGPU in the browser, Vulkan, Metal and DX12 on native
//! targets, and SIMD if there is no suitable GPU.
//!
//! [`GpuDevice::new_async`] works everywhere and chooses the back-end. Every operation of the
//! [op table](ops) is a method of the device, of a [`GpuCommandBatch`] and of the JavaScript
//! classes, with the same meaning and the stated accuracy on every back-end. A [`Tensor`] is a lazy value with a
//! shape, whose operations broadcast and run as one program.
//!
//! # Asynchronous and blocking methods
//!
//! A method whose name ends in `_async` returns a future, on every platform. Its blocking twin
//! exists on native targets: it has the same name without `_async`. The only exceptions are
//! [`GpuCommandBatch::execute_sync`] and [`GpuCommandBatch::read_sync`]: the short names are futures in programs
//! written for trueno (deprecated). A method without a twin does not wait for the device.
//!
//! # Features
//!
//! - `gpu` (default): WebGPU, Vulkan, Metal and DX12 through wgpu. Without it SIMD remains, and CUDA with `cuda`.
//! - `threads` (default): the threads of rayon's pool share large operations on SIMD, on native
//!   targets.
//! - `ptx`: the module `ptx`, which generates, verifies and interprets PTX for NVIDIA GPUs, on any
//!   platform.
//! - `cuda`: the module `cuda`, which runs PTX through NVIDIA's driver, loaded at run time, and the
//!   back-end `Backend::Cuda`.
//! - `llm`: the module `llm`, which runs language models from GGUF files.
//! - `stream`: answers of language models as a `futures_core::Stream`, by `Generation::into_stream`.
//! - `serde`: `Serialize` and `Deserialize` for messages, options and results of language models, and for [`Backend`].
//!
//! `js`, `js-llm`, `js-tune`, `js-chat`, `js-numeric`, `js-ptx`, `js-train` and `llm-core` are for the npm package.
//!
//! # WebAssembly
//!
//! On `wasm32-unknown-unknown` kernels use simd128 without compiler flags. All current engines
//! support it. `-C target-feature=+relaxed-simd` adds relaxed SIMD, which some engines lack.

// wgpu's handles are not `Send` in the browser, where there is one thread; an `Rc` there would
// need a second set of types.
// rustdoc decides which types are `Send` and `Sync`, and looks into those of wgpu for it.
#![recursion_limit = "256"]
// docs.rs marks each item with the features that it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(target_arch = "wasm32", allow(clippy::arc_with_non_send_sync))]

mod alloc;
mod batch;
mod cpu;
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
pub mod cuda;
mod device;
mod error;
#[cfg(all(not(target_arch = "wasm32"), any(feature = "gpu", feature = "cuda")))]
mod files;
#[cfg(feature = "gpu")]
mod gpu;
mod graph;
mod instruction_set;
#[cfg(all(target_arch = "wasm32", feature = "js"))]
mod js;
#[cfg(all(target_arch = "wasm32", feature = "js-chat"))]
mod js_chat;
#[cfg(all(
    target_arch = "wasm32",
    any(feature = "js", feature = "js-numeric", feature = "js-train")
))]
mod js_graph;
#[cfg(all(target_arch = "wasm32", feature = "js-llm"))]
mod js_llm;
#[cfg(all(target_arch = "wasm32", feature = "js-numeric"))]
mod js_numeric;
#[cfg(all(target_arch = "wasm32", feature = "js-ptx"))]
mod js_ptx;
#[cfg(all(
    target_arch = "wasm32",
    any(
        feature = "js",
        feature = "js-llm",
        feature = "js-numeric",
        feature = "js-ptx",
        feature = "js-train"
    )
))]
mod js_shared;
#[cfg(all(target_arch = "wasm32", feature = "js-train"))]
mod js_train;
mod lazy;
#[cfg(feature = "llm-core")]
#[cfg_attr(docsrs, doc(cfg(feature = "llm")))]
// There is no blocking generation in WebAssembly, so that only the scripts' classes generate.
#[cfg_attr(all(target_arch = "wasm32", not(feature = "js-llm")), allow(dead_code))]
pub mod llm;
pub mod ops;
mod pool;
pub mod random;
pub mod reference;
pub mod runtime;
mod simd;
mod tensor;

pub use batch::GpuCommandBatch as CommandBatch;
pub use batch::{Argument, BufferId, GpuCommandBatch, Program};
#[cfg(not(target_arch = "wasm32"))]
#[allow(deprecated)]
pub use device::GpuBackend;
pub use device::GpuDevice as Device;
pub use device::buffer::DeviceBuffer;
pub use device::matmul_cache::GpuMatmulCache;
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub use device::profile::{Profile, Profiler};
pub use device::tiled_reduce::{
    tiled_max_2d, tiled_min_2d, tiled_reduce_2d, tiled_reduce_partial, tiled_sum_2d,
};
pub use device::{Backend, DeviceBuilder, DeviceInfo, GpuDevice};
pub use device::{Calibration, CalibrationSample};
pub use device::{OnFault, Tuning, TurnedOff, Verification, VerifiedCase};
pub use error::{Error, Result};
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub use gpu::KernelTime;
#[cfg(all(feature = "gpu", not(all(target_arch = "wasm32", feature = "js"))))]
pub use gpu::shaders;
pub use graph::{BufferPlace, Explanation, KernelInfo, PlanSummary};
pub use instruction_set::InstructionSet;
pub use lazy::{
    Axes, Border, ConvOptions, Interpolation, Operand, Optimizer, OptimizerState, PoolOptions,
    Slice, Tensor, Tensors, clip_by_global_norm,
};
pub use ops::ConvLayer;
pub use ops::HalfPrecision;
pub use ops::custom::{CustomCall, CustomOp};
pub use ops::policy::{Policy, PolicySource};
pub use ops::reduce_op::{ElementMap, MaxOp, MinOp, Partials, ReduceOp, SumOp, TILE_SIZE};
pub use ops::{
    Attention, AxisFold, CachedMatmul, Conv2d, CustomReduction, Matmul, Op, OpClass, Padding,
    Rearrange, ReduceAxis, Rope,
};
pub use pool::{
    GpuDevicePool, Lease, PoolProgram, StreamProgress, StreamSink, StreamSource, StreamWatch,
};
pub use tensor::quantized::{QuantizedWeights, WeightFormat};
pub use tensor::{BoundView, MemoryLayout, PartitionView, TensorView, TileInfo};

#[cfg(feature = "ptx")]
pub use relampago_ptx as ptx;
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
    document!(Migrating, "../docs/guide/migrating.md");
    document!(Views, "../docs/guide/views-and-caches.md");
    document!(BackEnds, "../docs/guide/choosing-a-back-end.md");
    document!(Tensors, "../docs/guide/tensors.md");
    document!(FromNumpy, "../docs/guide/from-numpy.md");
    document!(Training, "../docs/guide/training.md");
    document!(Programs, "../docs/guide/batches-and-programs.md");
    document!(Operations, "../docs/guide/operations.md");
    document!(Custom, "../docs/guide/custom-operations.md");
    document!(Pools, "../docs/guide/pools-and-streams.md");
    document!(Errors, "../docs/guide/errors-and-recovery.md");
    document!(Accuracy, "../docs/guide/accuracy.md");
    #[cfg(feature = "gpu")]
    document!(SharingAGpu, "../docs/guide/sharing-a-gpu.md");
    #[cfg(feature = "ptx")]
    document!(Ptx, "../docs/guide/ptx.md");
    #[cfg(feature = "cuda")]
    document!(Cuda, "../docs/guide/cuda.md");
    #[cfg(feature = "llm-core")]
    document!(LanguageModels, "../docs/guide/language-models.md");
}

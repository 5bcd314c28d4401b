//! The traits that programs rely on, checked by the compiler.

#![cfg(not(target_arch = "wasm32"))]

use std::fmt::{Debug, Display};
use std::hash::Hash;

use relampago as r;

fn shared<T: Send + Sync + Debug>() {}
fn moved<T: Send + Debug>() {}
fn named<T: Display + Debug + Copy + Eq + Hash>() {}
fn key<T: Debug + Clone + Eq + Hash>() {}
fn sendable<F: Future + Send>(_: F) {}

#[test]
fn types_can_be_shared_among_threads() {
    shared::<r::Error>();
    shared::<r::GpuDevice>();
    shared::<r::DeviceBuffer>();
    shared::<r::GpuMatmulCache>();
    shared::<r::GpuCommandBatch>();
    shared::<r::Program>();
    shared::<r::Tensor>();
    shared::<r::Tensors>();
    shared::<r::GpuDevicePool>();
    shared::<r::PoolProgram>();
    shared::<r::Lease>();
    shared::<r::QuantizedWeights>();
    shared::<r::TensorView>();
    shared::<r::Op>();
    #[cfg(feature = "llm-core")]
    {
        use r::llm;
        shared::<llm::LanguageModel>();
        shared::<llm::Lora>();
        shared::<llm::Gguf>();
        shared::<llm::QuantizedMatrix>();
        shared::<llm::GenerateOptions>();
        moved::<llm::Session>();
        moved::<llm::Generation<'static>>();
    }
    #[cfg(feature = "ptx")]
    {
        use r::ptx;
        shared::<ptx::Error>();
        shared::<ptx::PtxKernel>();
        shared::<ptx::PtxModule>();
        shared::<ptx::interp::Program>();
    }
    #[cfg(feature = "cuda")]
    {
        use r::cuda;
        shared::<cuda::Error>();
        shared::<cuda::CudaDevice>();
        shared::<cuda::CudaKernel>();
        shared::<cuda::CudaBuffer<f32>>();
    }
    moved::<r::DeviceInfo>();
}

#[test]
fn names_and_options_are_keys_and_texts() {
    named::<r::Backend>();
    named::<r::InstructionSet>();
    named::<r::HalfPrecision>();
    named::<r::WeightFormat>();
    key::<r::Axes>();
    key::<r::Slice>();
    key::<r::Matmul>();
    key::<r::Conv2d>();
    key::<r::ConvLayer>();
    key::<r::ConvOptions>();
    key::<r::ReduceAxis>();
    key::<r::Rearrange>();
    key::<r::MemoryLayout>();
    key::<r::BufferId>();
    #[cfg(feature = "llm-core")]
    {
        use r::llm;
        named::<llm::WeightType>();
        named::<llm::CacheType>();
        named::<llm::FinishReason>();
        key::<llm::Message>();
        assert_eq!(llm::WeightType::Q4_K.to_string(), "Q4_K");
        assert_eq!(llm::FinishReason::Length.to_string(), "length");
    }
    #[cfg(feature = "ptx")]
    {
        named::<r::ptx::Target>();
        named::<r::ptx::PtxType>();
        named::<r::ptx::Version>();
    }
    assert_eq!(r::WeightFormat::Q8_0.to_string(), "q8_0");
}

#[test]
fn futures_can_move_between_threads() {
    let device = r::GpuDevice::builder().backend(r::Backend::Simd);
    let device = device.build().unwrap();
    let mut y = [0.0; 2];
    sendable(device.relu_async(&[1.0, -1.0], &mut y));
    let x = r::Tensors::new(&device).tensor(&[1.0], &[1]).unwrap();
    sendable(x.read_async());
}

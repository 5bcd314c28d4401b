//! Matrices that go to a GPU while a model's file arrives.

// Without the feature, no device is on such a GPU.
#![cfg_attr(
    not(feature = "gpu"),
    allow(unreachable_code, unused_variables, clippy::clone_on_copy)
)]

use super::super::weights::{Weight, Weights};
use super::super::{Executor, Model, read};
use super::{BackendModel, groups, join};
use crate::device::GpuDevice;
use crate::device::executor::Executor as DeviceExecutor;
use crate::device::executor::SharedGpu;
use crate::error::{Error, Result};
use crate::graph::steps::StepBackend;
use crate::llm::gguf::{Gguf, Pieces};
use crate::llm::{LoadOptions, TensorInfo};
use std::sync::Arc;

/// A model whose weights have not all arrived: its metadata, and the matrices that its GPU has so far.
pub(in crate::llm) struct Upload {
    gpu: SharedGpu,
    options: LoadOptions,
    file: Gguf,
    weights: Weights,
    /// For each matrix, the numbers of the tensors whose rows it gets; empty once it has them.
    groups: Vec<Vec<usize>>,
    matrices: Vec<Option<<SharedGpu as StepBackend>::Weights>>,
    /// Tensors that have arrived. Of those that a GPU has, only the first bytes are left.
    pieces: Pieces,
}

impl Upload {
    /// Begins with the first bytes of a file, which have all metadata.
    ///
    /// # Errors
    /// `InvalidArgument` for options without a device on a GPU through wgpu, or a context out of range; `InvalidModel`
    /// for an architecture that is not supported, or tensors that it lacks.
    pub(in crate::llm) fn new(file: Gguf, options: LoadOptions) -> Result<Self> {
        let executor = options.device.as_ref().map(GpuDevice::executor);
        let Some(DeviceExecutor::Gpu(gpu)) = executor else {
            let backend = options
                .device
                .as_ref()
                .map(|device| device.backend().to_string());
            let given = backend.unwrap_or_else(|| "none".to_owned());
            return Err(Error::invalid(
                "device",
                given,
                "a device on a GPU through wgpu",
            ));
        };
        // The vectors are empty until the model is complete.
        let (_, steps, weights) = read(&file, options.context_length, options.cache_type)?;
        let (_, joined) = join::<SharedGpu>(&steps, &weights);
        let groups = groups(&weights, &joined);
        let matrices = groups.iter().map(|_| None).collect();
        Ok(Self {
            gpu: gpu.clone(),
            options,
            file,
            weights,
            groups,
            matrices,
            pieces: Pieces::default(),
        })
    }

    pub(in crate::llm) fn file(&self) -> &Gguf {
        &self.file
    }

    /// Adds the bytes of a tensor, and copies the matrices that are complete with it. Keeps its first `sample` bytes, and
    /// all bytes of vectors and of the matrices whose rows the host reads.
    ///
    /// # Errors
    /// `LimitExceeded` if the GPU cannot hold a matrix, `OutOfMemory`, `DeviceLost`.
    pub(in crate::llm) async fn add(
        &mut self,
        tensor: &TensorInfo,
        bytes: Vec<u8>,
        sample: usize,
    ) -> Result<()> {
        self.pieces.insert(tensor.range().start, bytes);
        for index in 0..self.groups.len() {
            let group = &self.groups[index];
            let blocks = group.iter().map(|&row| &self.weights.matrices[row].range);
            let blocks = blocks.map(|range| self.pieces.get(range.clone()));
            // All of them, or none where some have yet to arrive.
            let Some(blocks) = blocks.collect::<Option<Vec<_>>>() else {
                continue;
            };
            if blocks.is_empty() {
                continue;
            }
            let Weight { kind, cols, .. } = self.weights.matrices[index];
            self.matrices[index] = Some(self.gpu.weights(kind, &blocks, cols).await?);
            let done = std::mem::take(&mut self.groups[index]);
            for row in done {
                let range = self.weights.matrices[row].range.clone();
                self.release(range.start, sample);
            }
        }
        // Tensors that no matrix needs.
        if tensor.shape().len() > 1 {
            self.release(tensor.range().start, sample);
        }
        Ok(())
    }

    /// Drops most bytes of the tensor at a position, if no matrix needs them.
    fn release(&mut self, position: u64, sample: usize) {
        let tensors = self.file.tensors().iter();
        let mut tensors = tensors.map(TensorInfo::range);
        let Some(tensor) = tensors.find(|range| range.contains(&position)) else {
            return;
        };
        let waiting = self.groups.iter().flatten().copied();
        let all = 0..self.weights.matrices.len();
        let read = all.filter(|&row| row == self.weights.embedding || self.weights.is_on_host(row));
        let mut needed = waiting.chain(read);
        if needed.all(|row| !tensor.contains(&self.weights.matrices[row].range.start)) {
            self.pieces.cut(tensor.start, sample);
        }
    }

    /// Returns the model of a file of `len` bytes, all of whose tensors have arrived.
    ///
    /// # Errors
    /// `OutOfMemory`, `LimitExceeded` or `DeviceLost` if the GPU cannot hold the vectors.
    pub(in crate::llm) async fn finish(mut self, len: u64) -> Result<Model> {
        self.file.add_pieces(self.pieces, len);
        let mut model = Model::new(self.file, &self.options)?;
        let on_gpu = BackendModel::checked(&self.gpu, model.parts(), self.matrices).await?;
        model.executor = Executor::Gpu(Arc::new(on_gpu));
        Ok(model)
    }
}

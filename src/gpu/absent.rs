//! Stub of the GPU back-end for builds without the feature `gpu`.

// The real ones have much to wait for.
#![allow(clippy::unused_async)]

use std::future::Ready;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::graph::{Binding, Fetched, Plan, Repeat};
use crate::ops::Op;
use crate::tensor::quantized::{QuantizedWeights, WeightFormat};

#[allow(dead_code)] // Nobody is there to read them.
#[path = "options.rs"]
mod options;
pub(crate) use options::{Options, Preference};

use crate::ops::HalfPrecision;

#[derive(Clone, Debug)]
pub(crate) struct Adapter {
    pub(crate) name: String,
    pub(crate) api: String,
    pub(crate) software: bool,
}

/// An uninhabited type: code that uses a value of it never runs.
pub(crate) enum Gpu {}

/// An uninhabited type.
pub(crate) enum TileFold {}

/// An uninhabited type.
#[derive(Clone)]
pub(crate) enum GpuBuffer {}

/// Kernels have no texts.
pub(crate) struct Texts;

impl Texts {
    pub(crate) fn new(_: &Plan) -> Self {
        Self
    }
}

#[allow(dead_code)] // Nobody is there to read it.
pub(crate) enum Weights<'w> {
    Values(&'w GpuBuffer),
    Words(WeightFormat, &'w GpuBuffer, Option<&'w GpuBuffer>),
}

impl Gpu {
    pub(crate) async fn open(_: &Options) -> Result<Arc<Self>> {
        Err(Error::NoGpu {
            reason: "this build lacks the feature `gpu`".into(),
        })
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) async fn open_all(options: &Options) -> Result<Vec<Arc<Self>>> {
        Ok(vec![Self::open(options).await?])
    }

    pub(crate) fn adapter(&self) -> &Adapter {
        match *self {}
    }

    pub(crate) fn half_precision(&self) -> HalfPrecision {
        match *self {}
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) async fn warm(&self, _: &Op, _: &[usize], _: usize) -> Result<()> {
        match *self {}
    }

    pub(crate) async fn tune(
        self: &Arc<Self>,
        _: &Op,
        _: &[usize],
        _: usize,
    ) -> Result<Vec<(&'static str, f64)>> {
        match **self {}
    }

    pub(crate) fn check(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn max_len(&self) -> usize {
        match *self {}
    }

    pub(crate) async fn run_into(
        self: &Arc<Self>,
        _: &Op,
        _: &[&[f32]],
        _: &mut [f32],
    ) -> Result<()> {
        match **self {}
    }

    pub(crate) async fn upload(self: &Arc<Self>, _: &[f32]) -> Result<GpuBuffer> {
        match **self {}
    }

    pub(crate) async fn read(self: &Arc<Self>, _: &GpuBuffer) -> Result<Vec<f32>> {
        match **self {}
    }

    pub(crate) async fn fold_tiles(
        self: &Arc<Self>,
        _: &TileFold,
        _: &[f32],
        _: [usize; 2],
    ) -> Result<Vec<f32>> {
        match **self {}
    }

    pub(crate) async fn fold_all_tiles(
        self: &Arc<Self>,
        _: &TileFold,
        _: &[f32],
        _: [usize; 2],
    ) -> Result<f32> {
        match **self {}
    }

    pub(crate) async fn upload_words(self: &Arc<Self>, _: &[u32]) -> Result<GpuBuffer> {
        match **self {}
    }

    pub(crate) async fn weights_in_tiles(
        self: &Arc<Self>,
        _: &QuantizedWeights,
    ) -> Result<Option<GpuBuffer>> {
        match **self {}
    }

    pub(crate) async fn multiply_by(
        self: &Arc<Self>,
        _: Weights<'_>,
        _: &[f32],
        _: &mut [f32],
        _: [usize; 3],
    ) -> Result<()> {
        match **self {}
    }

    pub(crate) async fn read_plan(
        self: &Arc<Self>,
        _: (&Plan, &Texts),
        _: Vec<Binding<'_, GpuBuffer>>,
        _: &mut [&mut [f32]],
    ) -> Result<()> {
        match **self {}
    }

    #[allow(clippy::type_complexity)] // As the real one has it.
    pub(crate) fn run_plan(
        self: &Arc<Self>,
        _: (&Plan, &Texts),
        _: Vec<Binding<'_, GpuBuffer>>,
        _: Repeat<'_>,
        _: bool,
    ) -> Result<(Vec<GpuBuffer>, Ready<Result<Vec<Fetched>>>)> {
        match **self {}
    }
}

impl GpuBuffer {
    pub(crate) fn len(&self) -> usize {
        match *self {}
    }
}

//! Matrices of weights in ggml's blocks, and products by them.

use super::{Elements, add};
use crate::alloc::try_resize;
use crate::error::{Error, Result};
use crate::graph::steps::LowRankProduct;
use crate::simd::{BlockMatrix, Cpu, multiply_rows};
use crate::tensor::ggml::WeightType;
use std::sync::Arc;

/// A matrix in ggml's blocks that several owners share, such as a part of a file.
pub(crate) trait SharedBlocks: Send + Sync {
    /// Returns the blocks, row by row.
    fn bytes(&self) -> &[u8];
}

/// A matrix of weights where it is; clones share it.
#[derive(Clone)]
pub(crate) struct CpuWeights {
    kind: WeightType,
    blocks: Arc<dyn SharedBlocks>,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl SharedBlocks for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl SharedBlocks for Vec<f32> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}

impl CpuWeights {
    pub(crate) fn new(kind: WeightType, blocks: Arc<dyn SharedBlocks>, cols: usize) -> Self {
        let row = kind.row_bytes(cols).unwrap_or_default().max(1);
        Self {
            kind,
            rows: blocks.bytes().len() / row,
            cols,
            blocks,
        }
    }

    /// Copies the rows of matrices, one after the other.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn copy(kind: WeightType, matrices: &[&[u8]], cols: usize) -> Result<Self> {
        let len = matrices.iter().map(|blocks| blocks.len()).sum();
        let mut all: Vec<u8> = Vec::new();
        let reserved = all.try_reserve_exact(len);
        reserved.map_err(|_| Error::OutOfMemory { bytes: len as u64 })?;
        for blocks in matrices {
            all.extend(*blocks);
        }
        Ok(Self::new(kind, Arc::new(all), cols))
    }

    /// Returns the number of rows, and the size in bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.rows, self.blocks.bytes().len())
    }

    /// Returns some of the rows.
    pub(super) fn rows_from(&self, first: usize, rows: usize) -> RowsOf<'_> {
        let row = self.kind.row_bytes(self.cols).unwrap_or_default();
        let blocks = self.blocks.bytes();
        RowsOf {
            kind: self.kind,
            blocks: blocks
                .get(first * row..(first + rows) * row)
                .unwrap_or_default(),
            rows,
            cols: self.cols,
        }
    }

    /// `Y = X · Wᵀ`; with `alone` each row has the bits that it has by itself.
    fn multiply(&self, cpu: Cpu, x: &[f32], y: &mut [f32], alone: bool) -> Result<()> {
        self.rows_from(0, self.rows).multiply(cpu, x, y, alone)
    }
}

/// Rows of a matrix.
pub(super) struct RowsOf<'a> {
    kind: WeightType,
    blocks: &'a [u8],
    rows: usize,
    cols: usize,
}

impl RowsOf<'_> {
    /// `Y = X · Wᵀ`; with `alone` each row has the bits that it has by itself.
    pub(super) fn multiply(&self, cpu: Cpu, x: &[f32], y: &mut [f32], alone: bool) -> Result<()> {
        let matrix = BlockMatrix::new(self.kind, self.blocks, self.rows, self.cols);
        let matrix = matrix.ok_or(Error::LengthMismatch {
            what: "weights",
            expected: self.rows,
            actual: self.blocks.len(),
            reason: " (rows of whole blocks)",
        })?;
        multiply_rows(cpu, matrix, x, y, alone)
    }
}

/// A product by a matrix, and those by the low-rank matrices of adapters.
pub(super) struct AdaptedProduct {
    pub(super) weights: CpuWeights,
    pub(super) scale: f32,
    pub(super) alone: bool,
    pub(super) adapters: Vec<LowRank>,
}

impl AdaptedProduct {
    /// Writes the sum of all products.
    pub(super) fn write(
        &self,
        cpu: Cpu,
        x: &[f32],
        y: &mut [f32],
        [low, high]: [&mut Vec<f32>; 2],
    ) -> Result<()> {
        let alone = self.alone;
        self.weights.multiply(cpu, x, y, alone)?;
        multiply_all(y, self.scale);
        let mut adapters = self.adapters.iter();
        adapters.try_for_each(|adapter| adapter.add(cpu, (x, alone), y, [&mut *low, &mut *high]))
    }
}

/// [`LowRankProduct`] with shares of its matrices.
pub(super) struct LowRank {
    a: CpuWeights,
    b: CpuWeights,
    scale: f32,
}

impl LowRank {
    pub(super) fn new(product: &LowRankProduct<'_, Elements, CpuWeights>) -> Self {
        Self {
            a: product.a.clone(),
            b: product.b.clone(),
            scale: product.scale,
        }
    }

    /// Adds the product of rows by both matrices.
    fn add(
        &self,
        cpu: Cpu,
        (x, alone): (&[f32], bool),
        y: &mut [f32],
        [low, high]: [&mut Vec<f32>; 2],
    ) -> Result<()> {
        try_resize(low, x.len() / self.a.cols * self.a.rows)?;
        self.a.multiply(cpu, x, low, alone)?;
        multiply_all(low, self.scale);
        try_resize(high, y.len())?;
        self.b.multiply(cpu, low, high, alone)?;
        add(y, high);
        Ok(())
    }
}

fn multiply_all(values: &mut [f32], factor: f32) {
    if factor != 1.0 {
        for value in values {
            *value *= factor;
        }
    }
}

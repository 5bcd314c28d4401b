//! The steps of a language model's forward pass on SIMD.
//!
//! The files:
//!
//! - `pass` runs recorded steps, `threads` divides threads among passes that run at the same time (`one_thread` where
//!   there is one).
//! - `weights` has matrices where they are in a file, `heads` places the heads of queries, keys and values, `cache` has
//!   keys and values.

mod cache;
mod heads;
mod pass;
#[cfg_attr(
    all(feature = "threads", not(target_family = "wasm")),
    path = "steps/threads.rs"
)]
#[cfg_attr(
    not(all(feature = "threads", not(target_family = "wasm"))),
    path = "steps/one_thread.rs"
)]
mod threads;
mod weights;

use crate::alloc::{try_resize, try_zeros};
use crate::error::{Error, Result};
use crate::graph::steps::{
    Activation, Attention, BLOCK, Columns, Element, HeadPlaces, LowRankProduct, Norm, Product,
    SharedBlocks, StepBackend, StepKernels, StepPass,
};
use crate::ops::Op;
use crate::simd::{AttentionShape, Cpu, attention, execute};
use crate::tensor::ggml::WeightType;
use cache::{CachedLayer, SharedCache};
use heads::HeadsToPlace;
use pass::{CpuPass, read, write};
use std::future::{Ready, ready};
use std::ops::Range;
use std::sync::{Arc, RwLock};
use weights::{AdaptedProduct, CpuWeights, LowRank};

/// The rows from which a product may take as long as a slice of work.
const LONG: usize = 8;

/// Elements that grow as steps write them. Matrices that lie beside each other on a GPU lie one after the other here.
type Elements = Arc<RwLock<Vec<f32>>>;

#[allow(refining_impl_trait)] // Nothing waits for memory.
impl StepBackend for Cpu {
    type Buffer = Elements;
    type Weights = CpuWeights;
    type Cache = SharedCache;
    type CacheMemory = SharedCache;
    type Pass<'a> = CpuPass;

    const KERNELS: StepKernels = StepKernels {
        norm: "rms_norm",
        add: "add",
        silu: "silu_mul",
        gelu: "gelu_mul",
        place: ["place"; 3],
        attend: ["attention"; 3],
        attend_next: None,
    };

    const IS_GPU: bool = false;

    const LOGIT_ROWS: usize = BLOCK;

    fn block(&self) -> usize {
        BLOCK
    }

    fn pass(&self) -> Result<CpuPass> {
        self.sequence_pass(0)
    }

    fn sequence_pass(&self, sequence: u64) -> Result<CpuPass> {
        Ok(CpuPass::new(*self, sequence))
    }

    fn weights(
        &self,
        kind: WeightType,
        matrices: &[&[u8]],
        cols: usize,
    ) -> Ready<Result<CpuWeights>> {
        ready(CpuWeights::copy(kind, matrices, cols))
    }

    fn shared_weights(
        &self,
        kind: WeightType,
        matrices: &[Arc<dyn SharedBlocks>],
        cols: usize,
    ) -> Ready<Result<CpuWeights>> {
        ready(if let [matrix] = matrices {
            Ok(CpuWeights::new(kind, matrix.clone(), cols))
        } else {
            let matrices: Vec<&[u8]> = matrices.iter().map(|matrix| matrix.bytes()).collect();
            CpuWeights::copy(kind, &matrices, cols)
        })
    }

    /// Returns 0: tiles normalise nothing, and neither do products of one row.
    fn tiled_from(&self) -> usize {
        0
    }

    fn row_kernel(weights: &CpuWeights) -> (&'static str, Vec<(usize, usize)>) {
        ("multiply_blocks", vec![weights.size()])
    }
}

/// Returns some elements.
///
/// # Errors
/// `LengthMismatch` if no step wrote them.
fn elements(values: &[f32], range: Range<usize>) -> Result<&[f32]> {
    let (expected, actual) = (range.end, values.len());
    values.get(range).ok_or(Error::LengthMismatch {
        what: "buffer",
        expected,
        actual,
        reason: "",
    })
}

/// Returns some elements to write, which are made if there are not as many.
fn elements_mut(values: &mut Vec<f32>, range: Range<usize>) -> Result<&mut [f32]> {
    if values.len() < range.end {
        try_resize(values, range.end)?;
    }
    Ok(&mut values[range])
}

fn copied(values: &[f32]) -> Result<Vec<f32>> {
    let mut copy = try_zeros(values.len())?;
    copy.copy_from_slice(values);
    Ok(copy)
}

fn add(x: &mut [f32], more: &[f32]) {
    x.iter_mut().zip(more).for_each(|(x, more)| *x += more);
}

/// Normalises rows as long as the gain.
fn norm(cpu: Cpu, x: &[f32], (gain, epsilon): (&[f32], f32), to: &mut [f32]) -> Result<()> {
    let op = Op::RmsNorm {
        rows: x.len() / gain.len(),
        cols: gain.len(),
        epsilon,
    };
    execute(cpu, &op, &[x, gain], to)
}

#[allow(refining_impl_trait)]
impl StepPass for CpuPass {
    type Buffer = Elements;
    type Weights = CpuWeights;
    type Cache = SharedCache;

    /// Takes no memory: steps do as they write.
    fn allocate(&mut self, _: usize) -> Result<Elements> {
        Ok(Elements::default())
    }

    fn write(&mut self, values: &[f32], to: &Elements) -> Result<()> {
        let (values, to) = (copied(values)?, to.clone());
        self.push(false, move |_, _| {
            let mut to = write(&to)?;
            elements_mut(&mut to, 0..values.len())?.copy_from_slice(&values);
            Ok(())
        });
        Ok(())
    }

    fn upload(&mut self, values: &[f32]) -> Result<Elements> {
        Ok(Arc::new(RwLock::new(copied(values)?)))
    }

    fn submit(
        self,
        result: Option<(&Elements, usize)>,
    ) -> Result<impl Future<Output = Result<Vec<f32>>> + use<>> {
        let result = result.map(|(buffer, len)| (buffer.clone(), len));
        Ok(async move {
            self.run().await?;
            match result {
                Some((buffer, len)) => copied(elements(&read(&buffer)?[..], 0..len)?),
                None => Ok(Vec::new()),
            }
        })
    }

    fn norm(
        &mut self,
        x: &Elements,
        by: Norm<'_, Elements>,
        y: &Elements,
        rows: usize,
    ) -> Result<()> {
        let Norm { cols, epsilon, .. } = by;
        let (first, len) = (by.skipped * cols, rows * cols);
        let (x, gain, y) = (x.clone(), by.gain.clone(), y.clone());
        self.push(false, move |cpu, _| {
            let (x, gain, mut y) = (read(&x)?, read(&gain)?, write(&y)?);
            let (x, y) = (
                elements(&x, first..first + len)?,
                elements_mut(&mut y, 0..len)?,
            );
            norm(cpu, x, (&gain, epsilon), y)
        });
        Ok(())
    }

    fn multiply(
        &mut self,
        x: &Elements,
        weights: &CpuWeights,
        y: Columns<'_, Elements>,
        product: Product,
        norm: Option<Norm<'_, Elements>>,
    ) -> Result<()> {
        self.multiply_adapted(x, weights, y, product, norm, &[])
    }

    /// Adds all products of a row before what is in `y`. Matrices do not become one here, so that the products of adapters
    /// have the same columns.
    fn multiply_adapted(
        &mut self,
        x: &Elements,
        weights: &CpuWeights,
        (y, column, _): Columns<'_, Elements>,
        product: Product,
        _: Option<Norm<'_, Elements>>,
        adapters: &[LowRankProduct<'_, Elements, CpuWeights>],
    ) -> Result<()> {
        let Product { rows, adds, .. } = product;
        let (x, y, cols) = (x.clone(), y.clone(), weights.cols);
        let (first, len) = (column * rows, rows * weights.rows);
        let product = AdaptedProduct {
            weights: weights.clone(),
            scale: product.scale,
            adapters: adapters.iter().map(LowRank::new).collect(),
        };
        self.push(rows >= LONG, move |cpu, [sum, low, high]| {
            let (x, mut y) = (read(&x)?, write(&y)?);
            let x = elements(&x, 0..rows * cols)?;
            let y = elements_mut(&mut y, first..first + len)?;
            if !adds {
                return product.write(cpu, x, y, [low, high]);
            }
            try_resize(sum, len)?;
            product.write(cpu, x, sum, [low, high])?;
            add(y, sum);
            Ok(())
        });
        Ok(())
    }

    fn largest(
        &mut self,
        x: &Elements,
        len: usize,
        (to, index): Element<'_, Elements>,
    ) -> Result<()> {
        let (x, to) = (x.clone(), to.clone());
        self.push(false, move |cpu, _| {
            let (x, mut to) = (read(&x)?, write(&to)?);
            let to = elements_mut(&mut to, index..index + 1)?;
            execute(cpu, &Op::Argmax, &[elements(&x, 0..len)?], to)
        });
        Ok(())
    }

    fn add(
        &mut self,
        (x, len): (&Elements, usize),
        (y, column, _): Columns<'_, Elements>,
        rows: usize,
    ) -> Result<()> {
        let (x, y) = (x.clone(), y.clone());
        self.push(false, move |_, _| {
            let (x, mut y) = (read(&x)?, write(&y)?);
            let (x, first) = (elements(&x, 0..len)?, column * rows);
            let y = elements_mut(&mut y, first..first + rows * len)?;
            y.chunks_exact_mut(len.max(1)).for_each(|row| add(row, x));
            Ok(())
        });
        Ok(())
    }

    fn place(
        &mut self,
        x: &Elements,
        heads: &HeadPlaces<'_, Elements>,
        queries: &Elements,
        cached: &Self::Cache,
    ) -> Result<()> {
        let heads = HeadsToPlace::new(heads);
        let (x, queries, cached) = (x.clone(), queries.clone(), cached.clone());
        self.push(false, move |cpu, [keys, ..]| {
            let (x, mut queries, mut cached) = (read(&x)?, write(&queries)?, write(&cached)?);
            heads.place(cpu, &x, &mut queries, keys, &mut cached)
        });
        Ok(())
    }

    fn attend(
        &mut self,
        (queries, cached): (&Elements, &Self::Cache),
        options: &Attention,
        _: &Elements,
        mixed: &Elements,
    ) -> Result<()> {
        let options = *options;
        let (queries, cached, mixed) = (queries.clone(), cached.clone(), mixed.clone());
        self.push(true, move |cpu, _| {
            let (queries, cached, mut mixed) = (read(&queries)?, read(&cached)?, write(&mixed)?);
            let layer = cached.layer();
            let CachedLayer { keys, values, .. } = layer;
            let shape = AttentionShape {
                tokens: options.tokens,
                first: options.position - layer.first,
                all: None,
                heads: options.heads,
                kv_heads: options.kv_heads,
                head_len: options.head_len,
                capacity: layer.room,
                scale: options.scale,
                window: options.window,
                soft_cap: None,
                cache_type: options.cache_type,
            };
            let len = shape.tokens * shape.heads * shape.head_len;
            let (queries, mixed) = (
                elements(&queries, 0..len)?,
                elements_mut(&mut mixed, 0..len)?,
            );
            attention(cpu, shape, queries, keys, values, mixed)
        });
        Ok(())
    }

    fn gate(
        &mut self,
        x: &Elements,
        y: &Elements,
        [rows, hidden]: [usize; 2],
        activation: Activation,
    ) -> Result<()> {
        let op = match activation {
            Activation::Silu => Op::SiluMul,
            Activation::GeluTanh => Op::GeluMul,
        };
        let (len, x, y) = (rows * hidden, x.clone(), y.clone());
        self.push(false, move |cpu, _| {
            let (x, mut y) = (read(&x)?, write(&y)?);
            let (gate, up) = elements(&x, 0..2 * len)?.split_at(len);
            execute(cpu, &op, &[gate, up], elements_mut(&mut y, 0..len)?)
        });
        Ok(())
    }
}

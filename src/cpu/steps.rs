//! The steps of a language model's forward pass on SIMD.
//!
//! The files:
//!
//! - `pass` runs recorded steps, `threads` divides threads among passes that run at the same time (`callers_thread`
//!   where there is one thread, and in WebAssembly).
//! - `experts` has the steps of mixtures of experts, `weights` has matrices where they are in a file, `heads` places the
//!   heads of queries, keys and values, `cache` has keys and values.

mod cache;
mod experts;
mod heads;
mod pass;
#[cfg_attr(
    all(relampago_threads, not(target_arch = "wasm32")),
    path = "steps/threads.rs"
)]
#[cfg_attr(
    not(all(relampago_threads, not(target_arch = "wasm32"))),
    path = "steps/callers_thread.rs"
)]
mod threads;
mod weights;

use crate::alloc::{try_resize, try_zeros};
use crate::error::Result;
use crate::graph::steps::{
    Activation, Attention, BLOCK, Columns, Element, EncoderKernels, ExpertProduct, HeadPlaces,
    LowRankProduct, Norm, Product, Routing, StepBackend, StepKernels, StepPass, TextRows,
};
use crate::ops::Op;
use crate::simd::{AttentionShape, Cpu, argmax, attention, execute_elementwise, normalise};
use crate::tensor::ggml::WeightType;
use cache::{CachedLayer, SharedCache};
use experts::{ExpertMatmul, route};
use heads::HeadsToPlace;
use pass::{CpuPass, elements};
pub(crate) use pass::{read, write};
use std::future::{Ready, ready};
use std::ops::Range;
use std::sync::{Arc, RwLock};
use weights::{AdaptedProduct, LowRank};
pub(crate) use weights::{CpuWeights, SharedBlocks};

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
        soft_cap: "tanh",
        place: ["place"; 3],
        attend: ["attention"; 3],
        attend_next: None,
        encoder: Some(EncoderKernels {
            layer_norm: "layer_norm",
            attend_within: "attention",
            gelu: "gelu",
        }),
        route: "route",
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

    /// Returns 0: tiles normalise nothing, and neither do products of one row.
    fn tiled_from(&self) -> usize {
        0
    }

    fn expert_kernel(_: &CpuWeights) -> &'static str {
        "multiply_blocks"
    }

    fn row_kernel(weights: &CpuWeights, _: bool) -> (&'static str, Vec<(usize, usize)>) {
        ("multiply_blocks", vec![weights.size()])
    }
}

/// Some elements of a buffer.
type Span<'a> = (&'a Elements, Range<usize>);

fn copied(values: &[f32]) -> Result<Vec<f32>> {
    let mut copy = try_zeros(values.len())?;
    copy.copy_from_slice(values);
    Ok(copy)
}

/// Returns the shape of an attention to a layer.
fn shape_of(options: &Attention, layer: &CachedLayer<'_>) -> AttentionShape {
    AttentionShape {
        tokens: options.tokens,
        first: options.position - layer.first,
        all: None,
        heads: options.heads,
        kv_heads: options.kv_heads,
        head_len: options.head_len,
        capacity: layer.room,
        scale: options.scale,
        window: options.window,
        soft_cap: options.soft_cap,
        cache_type: options.cache_type,
    }
}

fn add(x: &mut [f32], more: &[f32]) {
    x.iter_mut().zip(more).for_each(|(x, more)| *x += more);
}

/// Normalises rows as long as the gain, with a bias by their deviations from their mean: one at a time, since many short
/// rows are normalised side by side, with other roundings.
fn norm_rows(
    cpu: Cpu,
    x: &[f32],
    (gain, bias, epsilon): (&Elements, Option<&Elements>, f32),
    to: &mut [f32],
) -> Result<()> {
    let (gain, bias) = (read(gain)?, bias.map(|bias| read(bias)).transpose()?);
    let bias = bias.as_ref().map(|bias| bias.as_slice());
    let cols = gain.len().max(1);
    let mut rows = x.chunks_exact(cols).zip(to.chunks_exact_mut(cols));
    rows.try_for_each(|(x, to)| normalise(cpu, x, (&gain, bias, epsilon), to))
}

/// Normalises parts as long as the gain.
fn norm(cpu: Cpu, x: &[f32], (gain, epsilon): (&Elements, f32), to: &mut [f32]) -> Result<()> {
    normalise(cpu, x, (&read(gain)?, None, epsilon), to)
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
        let from = self.upload(values)?;
        let all = 0..values.len();
        self.push(false, (&from, all.clone()), (to, all), |_, _, x, y| {
            y.copy_from_slice(x);
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
                Some((buffer, len)) => copied(elements(&read(&buffer)?, 0..len)?),
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
        let (gain, bias, epsilon) = (by.gain.clone(), by.bias.cloned(), by.epsilon);
        let (first, len) = (by.skipped * by.cols, rows * by.cols);
        let (x, y) = ((x, first..first + len), (y, 0..len));
        self.push(false, x, y, move |cpu, _, x, y| {
            norm_rows(cpu, x, (&gain, bias.as_ref(), epsilon), y)
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
        let (first, len) = (column * rows, rows * weights.rows);
        let (x, y) = ((x, 0..rows * weights.cols), (y, first..first + len));
        let product = AdaptedProduct {
            weights: weights.clone(),
            scale: product.scale,
            alone: product.alone,
            adapters: adapters.iter().map(LowRank::new).collect(),
        };
        self.push(rows >= LONG, x, y, move |cpu, [sum, low, high], x, y| {
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
        (x, first): Element<'_, Elements>,
        len: usize,
        (to, index): Element<'_, Elements>,
    ) -> Result<()> {
        let to = (to, index..index + 1);
        self.push(false, (x, first..first + len), to, |cpu, _, x, y| {
            y[0] = argmax(cpu.isa, x) as f32;
            Ok(())
        });
        Ok(())
    }

    fn add(
        &mut self,
        (x, len): (&Elements, usize),
        (y, column, _): Columns<'_, Elements>,
        rows: usize,
    ) -> Result<()> {
        let y = (y, column * rows..column * rows + rows * len);
        self.push(false, (x, 0..len), y, |_, _, x, y| {
            let rows = y.chunks_exact_mut(x.len().max(1));
            rows.for_each(|row| add(row, x));
            Ok(())
        });
        Ok(())
    }

    fn place(
        &mut self,
        x: &Elements,
        heads: &HeadPlaces<'_, Elements>,
        queries: &Elements,
        cached: &SharedCache,
    ) -> Result<()> {
        let heads = HeadsToPlace::new(heads, cached);
        let (x, queries) = ((x, 0..heads.inputs()), (queries, heads.queries()));
        self.push(false, x, queries, move |cpu, [keys, ..], x, queries| {
            heads.place(cpu, x, queries, keys)
        });
        Ok(())
    }

    fn attend(
        &mut self,
        (queries, cached): (&Elements, &SharedCache),
        options: &Attention,
        _: &Elements,
        mixed: &Elements,
    ) -> Result<()> {
        let (options, cached) = (*options, cached.clone());
        let row = options.heads * options.head_len;
        let rows = options.rows.elements(options.tokens, row);
        let (queries, mixed) = ((queries, rows.clone()), (mixed, rows));
        self.push(true, queries, mixed, move |cpu, _, queries, mixed| {
            let cached = read(&cached)?;
            let layer = cached.layer();
            let shape = shape_of(&options, &layer);
            attention(cpu, shape, queries, layer.keys, layer.values, mixed)
        });
        Ok(())
    }

    fn attend_within(
        &mut self,
        (queries, cached): (&Elements, &SharedCache),
        options: &Attention,
        texts: TextRows<'_, Elements>,
        mixed: &Elements,
    ) -> Result<()> {
        let row = options.heads * options.head_len;
        for rows in texts.rows {
            let (options, cached, rows) = (*options, cached.clone(), rows.clone());
            let elements = rows.start * row..rows.end * row;
            let (queries, mixed) = ((queries, elements.clone()), (mixed, elements));
            self.push(true, queries, mixed, move |cpu, _, queries, mixed| {
                let cached = read(&cached)?;
                let layer = cached.layer();
                // A window before the end has the text's rows.
                let shape = AttentionShape {
                    tokens: rows.len(),
                    all: Some(rows.end),
                    window: Some(rows.len()),
                    ..shape_of(&options, &layer)
                };
                attention(cpu, shape, queries, layer.keys, layer.values, mixed)
            });
        }
        Ok(())
    }

    fn gelu(&mut self, x: &Elements, y: &Elements, len: usize) -> Result<()> {
        self.push(false, (x, 0..len), (y, 0..len), |cpu, _, x, y| {
            execute_elementwise(cpu, &Op::Gelu, &[x], y)
        });
        Ok(())
    }

    fn route(
        &mut self,
        logits: &Elements,
        routes: &Elements,
        rows: usize,
        routing: Routing,
    ) -> Result<()> {
        let logits = (logits, 0..rows * routing.experts);
        let routes = (routes, 0..2 * rows * routing.used);
        self.push(
            false,
            logits,
            routes,
            move |_, [left, odds, _], logits, routes| route(logits, routes, routing, [left, odds]),
        );
        Ok(())
    }

    fn multiply_experts(
        &mut self,
        x: &Elements,
        weights: &CpuWeights,
        (y, column, _): Columns<'_, Elements>,
        routes: &Elements,
        product: ExpertProduct,
    ) -> Result<()> {
        let ExpertProduct {
            tokens, used, rows, ..
        } = product;
        let (inputs, results) = if product.mixes { (used, 1) } else { (1, used) };
        let x = (x, 0..tokens * inputs * weights.cols);
        let first = column * tokens;
        let y = (y, first..first + tokens * results * rows);
        let product = ExpertMatmul {
            weights: weights.clone(),
            routes: routes.clone(),
            product,
        };
        self.push(true, x, y, move |cpu, [gathered, products, _], x, y| {
            product.run(cpu, [gathered, products], x, y)
        });
        Ok(())
    }

    fn soft_cap(&mut self, x: &Elements, len: usize, cap: f32) -> Result<()> {
        let nothing = (&Elements::default(), 0..0);
        self.push(
            false,
            nothing,
            (x, 0..len),
            move |cpu, [divided, ..], _, x| {
                try_resize(divided, len)?;
                for (divided, x) in divided.iter_mut().zip(&*x) {
                    *divided = x / cap;
                }
                execute_elementwise(cpu, &Op::Tanh, &[divided], x)?;
                for x in x {
                    *x *= cap;
                }
                Ok(())
            },
        );
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
        let (x, y) = ((x, 0..2 * rows * hidden), (y, 0..rows * hidden));
        self.push(false, x, y, move |cpu, _, x, y| {
            let (gate, up) = x.split_at(y.len());
            execute_elementwise(cpu, &op, &[gate, up], y)
        });
        Ok(())
    }
}

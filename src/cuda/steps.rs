//! The steps of a language model's forward pass, launched one after the other.

mod choice;
mod few;
mod memory;
mod passes;
mod planes;

use std::future::ready;
use std::sync::{Arc, MutexGuard};

use super::backend::{CudaBackend, SharedCuda};
use super::buffer::CudaBuffer;
use super::launch::Argument;
use super::ops::LARGEST;
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::graph::choice::{Changes, Draw};
use crate::graph::steps::{
    Activation, Attention, BufferCache, Columns, Element, ExpertProduct, HeadPlaces, MOST_BLOCK,
    Norm, Product, Routing, StepBackend, StepKernels, StepPass, TILED_FROM, check_head, check_row,
};
use crate::ops::HalfPrecision;
use crate::ops::shape::check_limit;
use crate::tensor::CacheType;
use crate::tensor::ggml::{PackedBlocks, WeightType, Words, pieces};
use few::FewRows;
use memory::PassMemory;
pub(super) use memory::PassTurns;
use passes::PlannedLaunch;
use relampago_ptx::PtxType;
use relampago_ptx::kernels::{
    Activation as GateActivation, AddRowsKernel, ArgmaxKernel, CachedAttentionKernel,
    DecodeSumKernel, ForbidKernel, GateKernel, Kernel, LayerNormKernel, PackedExpertsKernel,
    PackedFormat, PackedMatmulKernel, PlaceHeadsKernel, RouteKernel, SoftCapKernel,
};

/// The number of tokens from which on attention is computed for 64 of them at a time.
const MMA_FROM: usize = 16;

/// Elements in the GPU's memory.
type Elements = Arc<CudaBuffer<f32>>;

impl StepBackend for SharedCuda {
    type Buffer = Elements;
    type Weights = CudaWeights;
    type Cache = BufferCache<Elements>;
    type CacheMemory = Elements;
    type Pass<'a> = CudaPass<'a>;

    const KERNELS: StepKernels = StepKernels {
        norm: "rms_norm",
        add: "add_rows",
        silu: "gate_silu",
        gelu: "gate_gelutanh",
        soft_cap: "soft_cap",
        place: ["place_heads", "place_heads_f16", "place_heads_q8_0"],
        attend: ["attend", "attend_f16", "attend_q8_0"],
        attend_next: None,
        encoder: None,
        route: "route",
    };

    fn block(&self) -> usize {
        MOST_BLOCK
    }

    fn pass(&self) -> Result<CudaPass<'_>> {
        Ok(CudaPass {
            cuda: self,
            memory: self.passes.take(),
            launches: Vec::new(),
            own: Vec::new(),
        })
    }

    async fn weights(
        &self,
        kind: WeightType,
        matrices: &[&[u8]],
        cols: usize,
    ) -> Result<CudaWeights> {
        CudaWeights::new(self, kind, matrices, cols)
    }

    fn half_precision(&self) -> HalfPrecision {
        self.as_ref().half_precision()
    }

    fn tiled_from(&self) -> usize {
        self.tiles_from()
    }

    fn gates(&self, _weights: &CudaWeights, rows: usize) -> bool {
        rows < self.tiles_from()
    }

    fn expert_kernel(weights: &CudaWeights) -> &'static str {
        match weights.format {
            PackedFormat::Floats => "experts_floats",
            PackedFormat::Bytes => "experts_bytes",
            _ => "experts_nibbles",
        }
    }

    fn row_kernel(weights: &CudaWeights, normalises: bool) -> (&'static str, Vec<(usize, usize)>) {
        let bytes = 4 * (weights.words.len() + weights.scales.len());
        (
            weights.name_of_row_kernel(normalises),
            vec![(weights.rows, bytes)],
        )
    }
}

/// A matrix of weights in words.
pub(crate) struct CudaWeights {
    format: PackedFormat,
    few: FewRows,
    words: CudaBuffer<u32>,
    /// The scale and the offset of each group.
    scales: CudaBuffer<f32>,
    rows: usize,
    cols: usize,
    group_len: usize,
    least: f32,
}

impl CudaWeights {
    fn new(cuda: &CudaBackend, kind: WeightType, matrices: &[&[u8]], cols: usize) -> Result<Self> {
        check_row(cols)?;
        let bytes: usize = matrices.iter().map(|blocks| blocks.len()).sum();
        let row_bytes = kind.row_bytes(cols).unwrap_or_default().max(1);
        let rows = bytes / row_bytes;
        check_limit("the number of rows of weights", rows, LARGEST)?;
        let lens = Words::lens(kind, rows as u64 * cols as u64);
        let lens = lens.map(|len| len as usize);
        let words = CudaBuffer::uninitialised(&cuda.device, lens[0])?;
        let scales = CudaBuffer::uninitialised(&cuda.device, lens[1])?;
        let (mut packed, mut at) = (PackedBlocks::default(), [0, 0]);
        for blocks in pieces(matrices, row_bytes) {
            packed.replace(kind, blocks)?;
            words.write_from(at[0], &packed.words)?;
            scales.write_from(at[1], &packed.scales)?;
            at[0] += packed.words.len();
            at[1] += packed.scales.len();
        }
        let format = match Words::of(kind) {
            Words::Floats => PackedFormat::Floats,
            Words::Bytes => PackedFormat::Bytes,
            Words::Nibbles => PackedFormat::Nibbles,
        };
        Ok(Self {
            format,
            words,
            scales,
            rows,
            cols,
            group_len: kind.group_len(),
            least: f32::from(kind.least()),
            few: FewRows::of(cuda, format, [rows, cols, kind.group_len()]),
        })
    }

    /// The binary logarithm of a sixteenth of the length of a group.
    fn group_shift(&self) -> u32 {
        (self.group_len / 16).trailing_zeros()
    }
}

/// Steps of a pass, during which no other pass runs.
pub(crate) struct CudaPass<'a> {
    cuda: &'a CudaBackend,
    memory: MutexGuard<'a, PassMemory>,
    launches: Vec<PlannedLaunch>,
    /// Buffers of the pass, which live until it is submitted.
    own: Vec<Elements>,
}

/// Sizes as arguments of a launch.
fn sizes<const N: usize>(sizes: [usize; N]) -> [Argument; N] {
    sizes.map(|size| Argument::U32(size as u32))
}

fn of_gate(activation: Activation) -> GateActivation {
    match activation {
        Activation::Silu => GateActivation::Silu,
        Activation::GeluTanh => GateActivation::GeluTanh,
    }
}

/// A flag as an argument of a launch.
fn flag(value: bool) -> Argument {
    Argument::U32(value.into())
}

impl CudaPass<'_> {
    /// The kernel for a product of many rows.
    fn tiled(&self, weights: &CudaWeights, tokens: usize) -> PackedMatmulKernel {
        let wide = PackedMatmulKernel::mma_wide(weights.format);
        if !self.cuda.has(&wide) {
            return PackedMatmulKernel::tiled(weights.format);
        }
        let tiles = tokens
            .div_ceil(64)
            .saturating_mul(weights.rows.div_ceil(64));
        let multiprocessors = self.cuda.device.multiprocessors() as usize;
        // Measured: with one tile to a multiprocessor the smaller ones are 1.5 times as fast.
        if 2 * tiles < 3 * multiprocessors {
            return PackedMatmulKernel::mma(weights.format);
        }
        wide
    }

    fn launch(&mut self, kernel: &dyn Kernel, arguments: Vec<Argument>) -> Result<()> {
        let kernel = self.cuda.device.load(kernel)?;
        self.launches.push(PlannedLaunch { kernel, arguments });
        Ok(())
    }
}

impl<'a> StepPass for CudaPass<'a> {
    type Buffer = Elements;
    type Weights = CudaWeights;
    type Cache = Elements;

    fn allocate(&mut self, len: usize) -> Result<Elements> {
        let buffer = match self.memory.spare(len) {
            Some(spare) => spare,
            None => Arc::new(CudaBuffer::uninitialised(&self.cuda.device, len)?),
        };
        self.own.push(buffer.clone());
        Ok(buffer)
    }

    fn write(&mut self, values: &[f32], to: &Elements) -> Result<()> {
        Ok(to.write_first(values)?)
    }

    fn upload(&mut self, values: &[f32]) -> Result<Elements> {
        let buffer = Arc::new(self.cuda.device.upload(values)?);
        self.own.push(buffer.clone());
        Ok(buffer)
    }

    fn submit(
        mut self,
        read: Option<(&Elements, usize)>,
    ) -> Result<impl Future<Output = Result<Vec<f32>>> + use<'a>> {
        let launches = std::mem::take(&mut self.launches);
        // SAFETY: the steps pass what the kernels' documentation asks for, and buffers that live at least as long as the
        // pass and have as many elements as the steps read and write. No other pass writes to them meanwhile, and the
        // default queue orders all work.
        unsafe { self.memory.passes.launch(&self.cuda.device, launches)? };
        self.memory.take_back(&mut self.own);
        let values = match read {
            Some((buffer, len)) => {
                let mut values = try_zeros(len)?;
                buffer.read_first(&mut values)?;
                values
            }
            None => Vec::new(),
        };
        Ok(ready(Ok(values)))
    }

    fn norm(
        &mut self,
        x: &Elements,
        norm: Norm<'_, Elements>,
        y: &Elements,
        rows: usize,
    ) -> Result<()> {
        let layout = self.cuda.device.row_layout(norm.cols);
        let kernel = LayerNormKernel::rms().with_layout(layout);
        let pointers = [
            x.from(norm.skipped * norm.cols),
            y.from(0),
            norm.gain.from(0),
        ];
        let sizes = sizes([rows, norm.cols]);
        let epsilon = [Argument::F32(norm.epsilon)];
        let arguments = [&pointers[..], &sizes, &epsilon].concat();
        self.launch(&kernel, arguments)
    }

    fn multiply(
        &mut self,
        x: &Elements,
        weights: &CudaWeights,
        (y, column, stride): Columns<'_, Elements>,
        product: Product,
        norm: Option<Norm<'_, Elements>>,
    ) -> Result<()> {
        let tokens = product.rows;
        if let Some(memory) = self.memory_for_planes(weights, tokens, [column, stride]) {
            return self.multiply_planes(x, weights, (y, column, stride), product, memory);
        }
        let skipped = norm.map_or(0, |norm| norm.skipped);
        // Where there is no norm, another buffer stands for its gain that is not read.
        let gain = norm.map_or(x, |norm| norm.gain);
        let pointers = [
            x.from(skipped * weights.cols),
            gain.from(0),
            weights.words.from(0),
            weights.scales.from(0),
            y.from(column),
        ];
        let shape = sizes([tokens, weights.rows, weights.cols, stride]);
        let numbers = [
            flag(product.adds),
            Argument::U32(weights.group_shift()),
            Argument::F32(weights.least),
            Argument::F32(product.scale),
        ];
        let mut arguments = [&pointers[..], &shape, &numbers].concat();
        let is_plain = norm.is_none() && product.gate.is_none();
        let is_tiled =
            tokens >= self.cuda.tiles_from() || is_plain && weights.few.are_tiled(tokens);
        let kernel = if is_tiled {
            self.tiled(weights, tokens)
        } else {
            let epsilon = norm.map_or(0.0, |norm| norm.epsilon);
            arguments.extend([flag(norm.is_some()), Argument::F32(epsilon)]);
            weights.few_kernel(tokens, norm.is_some(), product.gate.map(of_gate))
        };
        self.launch(&kernel, arguments)
    }

    fn largest(
        &mut self,
        (x, first): Element<'_, Elements>,
        len: usize,
        (index, at): Element<'_, Elements>,
    ) -> Result<()> {
        let [len] = sizes([len]);
        let arguments = vec![x.from(first), index.from(at), len];
        self.launch(&ArgmaxKernel, arguments)
    }

    fn take_row(
        &mut self,
        weights: &CudaWeights,
        (index, at): Element<'_, Elements>,
        scale: f32,
        y: &Elements,
    ) -> Result<()> {
        self.take_packed_row(weights, index.from(at), scale, y)
    }

    fn change(
        &mut self,
        changes: &Changes<Elements>,
        chosen: Element<'_, Elements>,
        logits: &Elements,
        len: usize,
    ) -> Result<()> {
        self.change_logits(changes, chosen, logits, len)
    }

    fn forbid(&mut self, allowed: &Elements, logits: &Elements, len: usize) -> Result<()> {
        let [len] = sizes([len]);
        self.launch(&ForbidKernel, vec![allowed.from(0), logits.from(0), len])
    }

    fn draw(
        &mut self,
        logits: &Elements,
        len: usize,
        draw: Draw,
        (index, at): Element<'_, Elements>,
    ) -> Result<()> {
        self.draw_token(logits, len, draw, index.from(at))
    }

    fn add(
        &mut self,
        (x, len): (&Elements, usize),
        (y, column, stride): Columns<'_, Elements>,
        rows: usize,
    ) -> Result<()> {
        let pointers = [x.from(0), y.from(column)];
        let arguments = [&pointers[..], &sizes([len, rows, stride])].concat();
        self.launch(&AddRowsKernel, arguments)
    }

    fn place(
        &mut self,
        x: &Elements,
        heads: &HeadPlaces<'_, Elements>,
        queries: &Elements,
        cached: &Elements,
    ) -> Result<()> {
        check_head(heads.head_len, heads.cache_type)?;
        let kernel = PlaceHeadsKernel::new();
        let kernel = match heads.cache_type {
            CacheType::F32 => kernel,
            CacheType::F16 => kernel.packed(),
            CacheType::Q8_0 => kernel.quantized(),
        };
        let gains = heads.gains_or(x);
        let (norms, epsilon) = heads.norm_parameters();
        let rotation = &heads.rotation;
        let before = heads.rows.before * heads.head_len;
        let pointers = [
            x.from(before * (heads.heads + 2 * heads.kv_heads)),
            gains[0].from(0),
            gains[1].from(0),
            rotation.angles.from(0),
            queries.from(before * heads.heads),
            cached.from(0),
        ];
        let shape = sizes([
            heads.tokens,
            heads.heads + 2 * heads.kv_heads,
            heads.heads,
            heads.heads + heads.kv_heads,
            heads.head_len,
            heads.position,
            rotation.pairs,
        ]);
        let numbers = [
            flag(rotation.neighbours),
            Argument::U32(norms),
            Argument::U32(heads.capacity as u32),
            Argument::U32(rotation.query_angles as u32),
            Argument::F32(epsilon),
        ];
        let arguments = [&pointers[..], &shape, &numbers].concat();
        self.launch(&kernel, arguments)
    }

    fn attend(
        &mut self,
        (queries, cached): (&Elements, &Elements),
        attention: &Attention,
        parts: &Elements,
        mixed: &Elements,
    ) -> Result<()> {
        check_head(attention.head_len, attention.cache_type)?;
        let len = attention.head_len as u32;
        let mma = CachedAttentionKernel::mma(len);
        let many = attention.tokens >= MMA_FROM && CachedAttentionKernel::MMA_HEADS.contains(&len);
        let (kernel, splits) = match attention.splits() {
            _ if many && self.cuda.has(&mma) => (mma, 1),
            1 => (CachedAttentionKernel::new(), 1),
            splits => (CachedAttentionKernel::split(), splits),
        };
        let kernel = match attention.cache_type {
            CacheType::F32 => kernel,
            CacheType::F16 => kernel.packed(),
            CacheType::Q8_0 => kernel.quantized(),
        };
        let before = attention.rows.before * attention.heads * attention.head_len;
        let inputs = [queries.from(before), cached.from(0)];
        let shape = sizes([
            attention.tokens,
            attention.heads,
            attention.kv_heads,
            attention.head_len,
            attention.position,
            attention.capacity,
            attention.window.unwrap_or(0),
        ]);
        let soft_cap = attention.soft_cap.unwrap_or(0.0);
        let scale = [attention.scale, soft_cap].map(Argument::F32);
        if splits == 1 {
            let arguments = [&inputs[..], &[mixed.from(before)], &shape, &scale].concat();
            return self.launch(&kernel, arguments);
        }
        let heads = attention.tokens * attention.heads;
        let left = [
            parts.from(0),
            parts.from(heads * splits * attention.head_len),
        ];
        let arguments = [&inputs[..], &left, &shape, &scale, &sizes([splits])].concat();
        self.launch(&kernel, arguments)?;
        let sum = DecodeSumKernel::new(PtxType::F32, len);
        let arguments = [&left[..], &[mixed.from(before)], &sizes([heads, splits])].concat();
        self.launch(&sum, arguments)
    }

    fn route(
        &mut self,
        logits: &Elements,
        routes: &Elements,
        rows: usize,
        routing: Routing,
    ) -> Result<()> {
        let pointers = [logits.from(0), routes.from(0)];
        let shape = sizes([rows, routing.experts, routing.used]);
        let arguments = [&pointers[..], &shape, &[flag(routing.normalises)]].concat();
        self.launch(&RouteKernel, arguments)
    }

    fn multiply_experts(
        &mut self,
        x: &Elements,
        weights: &CudaWeights,
        (y, column, stride): Columns<'_, Elements>,
        routes: &Elements,
        product: ExpertProduct,
    ) -> Result<()> {
        let ExpertProduct {
            tokens,
            used,
            rows,
            mixes,
            scale,
            ..
        } = product;
        let results = if mixes { 1 } else { used };
        let pointers = [
            x.from(0),
            routes.from(0),
            weights.words.from(0),
            weights.scales.from(0),
            y.from(column),
        ];
        let shape = sizes([tokens, rows, weights.cols, used, results, stride]);
        let numbers = [
            flag(mixes),
            Argument::U32(weights.group_shift()),
            Argument::F32(weights.least),
            Argument::F32(scale),
        ];
        let arguments = [&pointers[..], &shape, &numbers].concat();
        self.launch(&PackedExpertsKernel::new(weights.format), arguments)
    }

    fn soft_cap(&mut self, x: &Elements, len: usize, cap: f32) -> Result<()> {
        let [len] = sizes([len]);
        self.launch(&SoftCapKernel, vec![x.from(0), len, Argument::F32(cap)])
    }

    fn gate(
        &mut self,
        x: &Elements,
        y: &Elements,
        [tokens, hidden]: [usize; 2],
        activation: Activation,
    ) -> Result<()> {
        let pointers = [x.from(0), y.from(0)];
        let arguments = [&pointers[..], &sizes([tokens, hidden])].concat();
        self.launch(&GateKernel::new(of_gate(activation)), arguments)
    }
}

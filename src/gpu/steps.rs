//! The steps of a language model's forward pass, recorded one after the other.

mod attention;
mod block_weights;
mod choice;
mod f16_check;

use std::sync::Arc;

use super::context::Gpu;
use super::f16_matmul;
use super::kernels;
use super::pipelines::{Composed, Proof};
use super::readback::Readback;
use super::recorder::{GpuBuffer, Recorder};
use crate::error::Result;
use crate::graph::choice::{Changes, Draw};
use crate::graph::steps::{
    Activation, Attention, BLOCK, BufferCache, Columns, Element, EncoderKernels, ExpertProduct,
    HeadPlaces, MOST_BLOCK, Norm, Product, Routing, StepBackend, StepKernels, StepPass, TILED_FROM,
    TextRows,
};
use crate::ops::HalfPrecision;
use crate::tensor::ggml::WeightType;
pub(crate) use block_weights::BlockWeights;
use block_weights::{F16_TILE, Part, Tile};

/// The number of invocations of a workgroup; each has an element.
const WORKGROUP: usize = 64;

/// The number of invocations of a workgroup of a product with few rows.
const MOST_LANES: usize = 128;

/// The rows of weights that one of them multiplies by at a time.
const ROWS_OF_A_LANE: usize = 4;

/// The rows of an expert's weights that a workgroup multiplies by.
const ROWS_OF_EXPERTS: usize = 4;

/// The number of rows of weights that give enough workgroups if 32 invocations share them.
const MANY_ROWS: usize = 8192;

/// The number of tiles of 64 by 64 that keep a GPU busy.
const MANY_TILES: usize = 96;

/// The number of rows from which on tiles take less time than each row alone, which keeps more of a hardware GPU busy: on an
/// H200 with 1.24 billion parameters, 8 rows took 4 and 11 ms, 24 rows 10 and 11, and 32 rows 13 and 12.
const ROWS_ALONE: usize = 24;

/// The number of rows from which on tiles in f16 take less time.
const F16_FROM: usize = 12;

impl StepBackend for Arc<Gpu> {
    type Buffer = GpuBuffer;
    type Weights = BlockWeights;
    type Cache = BufferCache<GpuBuffer>;
    type CacheMemory = GpuBuffer;
    type Pass<'a> = GpuPass<'a>;

    const KERNELS: StepKernels = StepKernels {
        norm: "norm_rows",
        add: "add_rows",
        silu: "gate",
        gelu: "gate",
        soft_cap: "cap_logits",
        place: ["place_heads", "place_heads_f16", "place_heads_q8_0"],
        attend: ["attend", "attend_f16", "attend_q8_0"],
        attend_next: Some(["attend_next", "attend_next_f16", "attend_next_q8_0"]),
        encoder: Some(EncoderKernels {
            layer_norm: "layer_norm_rows",
            attend_within: "attend_within",
            gelu: "gelu_rows",
        }),
        route: "route",
    };

    fn block(&self) -> usize {
        if self.adapter().software {
            BLOCK
        } else {
            MOST_BLOCK
        }
    }

    fn pass(&self) -> Result<GpuPass<'_>> {
        Recorder::new(self).map(GpuPass)
    }

    async fn weights(
        &self,
        kind: WeightType,
        matrices: &[&[u8]],
        cols: usize,
    ) -> Result<BlockWeights> {
        BlockWeights::new(self, kind, matrices, cols).await
    }

    fn half_precision(&self) -> HalfPrecision {
        Gpu::half_precision(self)
    }

    async fn check_f16(&self, matrices: &[&BlockWeights]) -> Result<()> {
        f16_check::check(self, matrices).await
    }

    fn tiled_from(&self) -> usize {
        if self.adapter().software {
            TILED_FROM
        } else if f16_matmul::is_used(self) {
            F16_FROM
        } else {
            ROWS_ALONE
        }
    }

    fn gates(&self, weights: &BlockWeights, rows: usize) -> bool {
        rows < self.tiled_from() && weights.parts.len() == 1
    }

    fn expert_kernel(weights: &BlockWeights) -> &'static str {
        weights.experts().0
    }

    fn row_kernel(weights: &BlockWeights, _: bool) -> (&'static str, Vec<(usize, usize)>) {
        (weights.kernel(Tile::Row).name, weights.parts().collect())
    }
}

/// Steps of a pass as kernels of a recording.
pub(crate) struct GpuPass<'g>(Recorder<'g>);

impl GpuPass<'_> {
    /// Returns the number of invocations that share a row of weights in a matmul with few rows.
    ///
    /// With few rows, many invocations per row keep a GPU busy. With many rows, few invocations per row need less time
    /// to add up their sums. A software adapter adds up one by one.
    fn lanes(&self, rows: usize) -> usize {
        if self.0.gpu.adapter().software {
            16
        } else if rows < MANY_ROWS {
            MOST_LANES
        } else {
            32
        }
    }

    /// Returns the tiles of a product: large ones read less, where there are enough of them to keep a GPU busy.
    fn tile(
        &self,
        tokens: usize,
        part: &Part,
        cols: usize,
        columns: Columns<'_, GpuBuffer>,
    ) -> Tile {
        let shape = [tokens, part.rows];
        if tokens < self.0.gpu.tiled_from() {
            return Tile::Row;
        }
        if f16_matmul::is_used(self.0.gpu) && f16_fits(shape, cols, columns) {
            return Tile::F16;
        }
        let many = Tile::By64.count(shape) >= Some(MANY_TILES);
        if many && !self.0.gpu.adapter().software {
            Tile::By64
        } else {
            Tile::By32
        }
    }

    fn record(
        &mut self,
        kernel: (&'static str, &'static str),
        params: &[u32],
        inputs: &[&GpuBuffer],
        output: &GpuBuffer,
        workgroups: usize,
    ) -> Result<()> {
        self.record_to(kernel, params, inputs, &[output], workgroups)
    }

    fn record_to(
        &mut self,
        (name, source): (&'static str, &'static str),
        params: &[u32],
        inputs: &[&GpuBuffer],
        outputs: &[&GpuBuffer],
        workgroups: usize,
    ) -> Result<()> {
        let kernel = Composed {
            name,
            source: source.into(),
            proof: Proof::Ends,
        };
        self.0
            .dispatch_composed(&kernel, params, inputs, outputs, workgroups)
    }
}

impl<'g> StepPass for GpuPass<'g> {
    type Buffer = GpuBuffer;
    type Weights = BlockWeights;
    type Cache = GpuBuffer;

    fn allocate(&mut self, len: usize) -> Result<GpuBuffer> {
        self.0.allocate(len)
    }

    fn write(&mut self, values: &[f32], to: &GpuBuffer) -> Result<()> {
        self.0.send(values, &to.with_len(values.len()))
    }

    fn upload(&mut self, values: &[f32]) -> Result<GpuBuffer> {
        self.0.upload(values)
    }

    fn submit(
        self,
        read: Option<(&GpuBuffer, usize)>,
    ) -> Result<impl Future<Output = Result<Vec<f32>>> + use<'g>> {
        let reads: Vec<_> = read
            .iter()
            .map(|(buffer, len)| buffer.with_len(*len))
            .collect();
        let submitted = self.0.submit(&reads)?;
        Ok(async move {
            let readbacks = submitted.finished().await?;
            readbacks.first().map_or(Ok(Vec::new()), Readback::values)
        })
    }

    fn norm(
        &mut self,
        x: &GpuBuffer,
        norm: Norm<'_, GpuBuffer>,
        y: &GpuBuffer,
        rows: usize,
    ) -> Result<()> {
        let Norm {
            gain,
            bias,
            cols,
            epsilon,
            skipped,
        } = norm;
        let params = [
            rows as u32,
            (cols / 4) as u32,
            epsilon.to_bits(),
            skipped as u32,
        ];
        let (kernel, inputs) = match bias {
            Some(bias) => (
                ("layer_norm_rows", kernels::LAYER_NORM_ROWS),
                &[x, gain, bias][..],
            ),
            None => (("norm_rows", kernels::NORM_ROWS), &[x, gain][..]),
        };
        self.record(kernel, &params, inputs, y, rows)
    }

    fn multiply(
        &mut self,
        x: &GpuBuffer,
        weights: &BlockWeights,
        (y, column, stride): Columns<'_, GpuBuffer>,
        product: Product,
        norm: Option<Norm<'_, GpuBuffer>>,
    ) -> Result<()> {
        let tokens = product.rows;
        for part in &weights.parts {
            let columns = (y, column + part.first, stride);
            let tile = self.tile(tokens, part, weights.cols, columns);
            let lanes = self.lanes(part.rows);
            let gates = product.gate.map_or(0, |_| part.rows / 2);
            let params = [
                tokens as u32,
                weights.cols as u32,
                part.rows as u32,
                (column + part.first) as u32,
                stride as u32,
                u32::from(product.adds),
                weights.group_len as u32,
                f32::from(weights.least).to_bits(),
                product.scale.to_bits(),
                u32::from(norm.is_some()),
                norm.map_or(0.0, |norm| norm.epsilon).to_bits(),
                norm.map_or(0, |norm| norm.skipped as u32),
                lanes as u32,
                gates as u32,
                u32::from(product.gate == Some(Activation::GeluTanh)),
            ];
            let rows_at_once = ROWS_OF_A_LANE * MOST_LANES / lanes;
            let workgroups = tile.count([tokens, part.rows]);
            let workgroups = workgroups.unwrap_or(tokens * part.rows.div_ceil(rows_at_once));
            let inputs = if tile == Tile::Row {
                // Where there is no norm, another buffer stands for its gain that is not read.
                &[
                    x,
                    norm.map_or(x, |norm| norm.gain),
                    &part.words,
                    &part.scales,
                ]
            } else {
                &[x, &part.words, &part.scales][..]
            };
            let kernel = weights.kernel(tile);
            self.0
                .dispatch_composed(&kernel, &params, inputs, &[y], workgroups)?;
        }
        Ok(())
    }

    fn largest(
        &mut self,
        x: Element<'_, GpuBuffer>,
        len: usize,
        index: Element<'_, GpuBuffer>,
    ) -> Result<()> {
        self.record_largest(x, len, index)
    }

    fn change(
        &mut self,
        changes: &Changes<GpuBuffer>,
        next: Element<'_, GpuBuffer>,
        logits: &GpuBuffer,
        len: usize,
    ) -> Result<()> {
        self.record_change(changes, next, &logits.with_len(len))
    }

    fn forbid(&mut self, allowed: &GpuBuffer, logits: &GpuBuffer, len: usize) -> Result<()> {
        self.record_forbid(allowed, &logits.with_len(len))
    }

    fn draw(
        &mut self,
        logits: &GpuBuffer,
        len: usize,
        draw: Draw,
        index: Element<'_, GpuBuffer>,
    ) -> Result<()> {
        self.record_draw(&logits.with_len(len), draw, index)
    }

    fn take_row(
        &mut self,
        weights: &BlockWeights,
        (index, at): Element<'_, GpuBuffer>,
        scale: f32,
        y: &GpuBuffer,
    ) -> Result<()> {
        for part in &weights.parts {
            let params = [
                weights.cols as u32,
                part.rows as u32,
                part.first as u32,
                weights.group_len as u32,
                f32::from(weights.least).to_bits(),
                scale.to_bits(),
                at as u32,
            ];
            let inputs = [index, &part.words, &part.scales];
            let workgroups = (weights.cols / 8).div_ceil(WORKGROUP);
            self.record(weights.row_copy(), &params, &inputs, y, workgroups)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        (x, len): (&GpuBuffer, usize),
        (y, column, columns): Columns<'_, GpuBuffer>,
        rows: usize,
    ) -> Result<()> {
        let params = [rows, len, column, columns].map(|value| value as u32);
        let workgroups = (rows * len).div_ceil(WORKGROUP);
        self.record(
            ("add_rows", kernels::ADD_ROWS),
            &params,
            &[&x.with_len(len)],
            y,
            workgroups,
        )
    }

    fn place(
        &mut self,
        x: &GpuBuffer,
        heads: &HeadPlaces<'_, GpuBuffer>,
        queries: &GpuBuffer,
        cached: &GpuBuffer,
    ) -> Result<()> {
        self.place_heads(x, heads, [queries, cached])
    }

    fn attend(
        &mut self,
        (queries, cached): (&GpuBuffer, &GpuBuffer),
        attention: &Attention,
        parts: &GpuBuffer,
        mixed: &GpuBuffer,
    ) -> Result<()> {
        self.attend_placed([queries, cached], attention, [parts, mixed])
    }

    fn place_and_attend(
        &mut self,
        x: &GpuBuffer,
        heads: &HeadPlaces<'_, GpuBuffer>,
        (queries, cached): (&GpuBuffer, &GpuBuffer),
        attention: &Attention,
        parts: &GpuBuffer,
        mixed: &GpuBuffer,
    ) -> Result<()> {
        if attention.tokens == 1 {
            return self.attend_next(x, heads, cached, attention, [parts, mixed]);
        }
        self.place(x, heads, queries, cached)?;
        self.attend((queries, cached), attention, parts, mixed)
    }

    fn attend_within(
        &mut self,
        (queries, cached): (&GpuBuffer, &GpuBuffer),
        attention: &Attention,
        texts: TextRows<'_, GpuBuffer>,
        mixed: &GpuBuffer,
    ) -> Result<()> {
        self.attend_texts([queries, cached, texts.bounds], attention, mixed)
    }

    fn gelu(&mut self, x: &GpuBuffer, y: &GpuBuffer, len: usize) -> Result<()> {
        let vectors = len / 4;
        let kernel = ("gelu_rows", kernels::GELU_ROWS);
        let workgroups = vectors.div_ceil(WORKGROUP);
        self.record(kernel, &[vectors as u32], &[x], y, workgroups)
    }

    fn route(
        &mut self,
        logits: &GpuBuffer,
        routes: &GpuBuffer,
        rows: usize,
        routing: Routing,
    ) -> Result<()> {
        let params = [
            rows as u32,
            routing.experts as u32,
            routing.used as u32,
            u32::from(routing.normalises),
        ];
        self.record(("route", kernels::ROUTE), &params, &[logits], routes, rows)
    }

    fn multiply_experts(
        &mut self,
        x: &GpuBuffer,
        weights: &BlockWeights,
        (y, column, stride): Columns<'_, GpuBuffer>,
        routes: &GpuBuffer,
        product: ExpertProduct,
    ) -> Result<()> {
        let ExpertProduct {
            tokens, used, rows, ..
        } = product;
        let results = if product.mixes { 1 } else { used };
        for part in &weights.parts {
            let params = [
                tokens as u32,
                weights.cols as u32,
                rows as u32,
                used as u32,
                part.first as u32,
                part.rows as u32,
                column as u32,
                stride as u32,
                u32::from(product.mixes),
                weights.group_len as u32,
                f32::from(weights.least).to_bits(),
                product.scale.to_bits(),
            ];
            let inputs = [x, routes, &part.words, &part.scales];
            let workgroups = tokens * results * rows.div_ceil(ROWS_OF_EXPERTS);
            self.record(weights.experts(), &params, &inputs, y, workgroups)?;
        }
        Ok(())
    }

    fn soft_cap(&mut self, x: &GpuBuffer, len: usize, cap: f32) -> Result<()> {
        let kernel = ("cap_logits", kernels::CAP_LOGITS);
        let workgroups = len.div_ceil(WORKGROUP);
        self.record(kernel, &[len as u32, cap.to_bits()], &[], x, workgroups)
    }

    fn gate(
        &mut self,
        x: &GpuBuffer,
        y: &GpuBuffer,
        [tokens, hidden]: [usize; 2],
        activation: Activation,
    ) -> Result<()> {
        let gelu = u32::from(activation == Activation::GeluTanh);
        let hidden = hidden / 4;
        let params = [(tokens * hidden) as u32, hidden as u32, gelu];
        let workgroups = (tokens * hidden).div_ceil(WORKGROUP);
        self.record(("gate", kernels::GATE), &params, &[x], y, workgroups)
    }
}

/// Returns whether a product of `cols` columns has whole tiles of f16, and room for them in its result.
fn f16_fits(
    [tokens, rows]: [usize; 2],
    cols: usize,
    (y, column, stride): Columns<'_, GpuBuffer>,
) -> bool {
    let is_whole = |len: usize| len.is_multiple_of(F16_TILE);
    let is_aligned = |at: usize| at.is_multiple_of(4);
    let has_room = tokens.next_multiple_of(F16_TILE) * stride <= y.len();
    is_whole(cols) && is_whole(rows) && is_aligned(column) && is_aligned(stride) && has_room
}

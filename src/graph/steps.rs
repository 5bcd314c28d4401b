//! The steps of a language model's forward pass, and the interface of back-ends that run them.

mod cache_layout;
#[cfg(not(feature = "gpu"))]
mod no_gpu;

use super::choice::{Changes, Draw};
use crate::error::{Error, Result};
use crate::ops::HalfPrecision;
use crate::ops::shape::check_limit;
use crate::tensor::CacheType;
use crate::tensor::ggml::WeightType;
pub(crate) use cache_layout::{BufferCache, CacheLayout, StepCache};
use std::ops::Range;

/// The largest number of elements of a head for which back-ends have kernels.
const MAX_HEAD: usize = 256;

/// The number of rows from which on most back-ends compute a product in tiles, without a norm.
pub(crate) const TILED_FROM: usize = 4;

/// The number of rows below which SIMD multiplies each of them as it does one by itself, and from which on in blocks. Of
/// `SmolLM2` a pass of eight rows takes five times as long as one of one row either way, and one of four 2.3 and 5 times.
pub(crate) const ALONE_BELOW: usize = 9;

/// The tokens of a prompt that go through the layers at a time where that is on a CPU.
pub(crate) const BLOCK: usize = 128;

/// The number of a prompt's tokens that go through the layers at a time on a GPU. It is large enough to keep the GPU
/// busy.
pub(crate) const MOST_BLOCK: usize = 512;

/// The number of positions that a workgroup goes through at a time in attention of one token.
const ROUND: usize = 256;

/// The largest number of workgroups of attention with split positions. They keep a large GPU busy.
const SPLIT_GROUPS: usize = 512;

/// The largest number of splits of a head. Kernels have memory for this number.
const MOST_SPLITS: usize = 64;

/// The number of weights that a thread multiplies at a time: rows are a multiple of them.
const EIGHT: usize = 8;

/// A back-end with kernels for the steps.
pub(crate) trait StepBackend: Clone {
    /// Elements in the back-end's memory; clones share them.
    type Buffer: Clone;
    /// A matrix of weights in the back-end's memory.
    type Weights;
    /// The keys and values of a layer of a sequence.
    type Cache: StepCache<Self>;
    /// The memory of a cache, which steps write and read.
    type CacheMemory;
    /// Steps that run one after the other.
    type Pass<'a>: StepPass<Buffer = Self::Buffer, Weights = Self::Weights, Cache = Self::CacheMemory>
    where
        Self: 'a;

    /// The names of the kernels, as profiles have them.
    const KERNELS: StepKernels;

    /// Whether the back-end is a GPU, for which models differ in four ways: matrices for the same rows become one, angles of
    /// all positions are uploaded with the weights, long passes take several submissions, and tokens are chosen ahead of
    /// the host.
    const IS_GPU: bool = true;

    /// The largest number of tokens whose logits are computed at a time: each token has a logit for every token of the
    /// vocabulary.
    const LOGIT_ROWS: usize = 8;

    /// Returns the tokens of a prompt that go through the layers at a time, at most [`MOST_BLOCK`].
    fn block(&self) -> usize;

    fn pass(&self) -> Result<Self::Pass<'_>>;

    /// Returns a pass over tokens of a sequence, whose number no other sequence has.
    fn sequence_pass(&self, _sequence: u64) -> Result<Self::Pass<'_>> {
        self.pass()
    }

    /// Copies the rows of matrices of `cols` columns, one after the other, from ggml's blocks.
    ///
    /// # Errors
    /// `LimitExceeded` if the length of a row is no multiple of 8 or a row is longer than a buffer, `OutOfMemory`,
    /// `DeviceLost`.
    fn weights(
        &self,
        kind: WeightType,
        matrices: &[&[u8]],
        cols: usize,
    ) -> impl Future<Output = Result<Self::Weights>>;

    /// Returns whether products are in f16.
    fn half_precision(&self) -> HalfPrecision {
        HalfPrecision::NotRequested
    }

    /// Compares products in f16 with products in `f32` for matrices of a model, on a back-end that multiplies in f16, and
    /// turns f16 off if they are wrong.
    ///
    /// # Errors
    /// `OutOfMemory`, `LimitExceeded`, `DeviceLost`.
    fn check_f16(&self, _matrices: &[&Self::Weights]) -> impl Future<Output = Result<()>> {
        std::future::ready(Ok(()))
    }

    /// Returns the number of rows from which on a product is computed in tiles, without a norm.
    fn tiled_from(&self) -> usize {
        TILED_FROM
    }

    /// Returns whether products of `rows` rows can have a [gate](Product::gate).
    fn gates(&self, _weights: &Self::Weights, _rows: usize) -> bool {
        false
    }

    /// Returns the name of the kernel that multiplies by the matrices of experts.
    fn expert_kernel(weights: &Self::Weights) -> &'static str;

    /// Returns the name of the kernel that multiplies one row, which it may normalise, and the rows and the size in bytes
    /// of each part of the weights, which a kernel multiplies by on its own.
    fn row_kernel(weights: &Self::Weights, normalises: bool)
    -> (&'static str, Vec<(usize, usize)>);
}

/// The names of a back-end's kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepKernels {
    pub(crate) norm: &'static str,
    pub(crate) add: &'static str,
    pub(crate) silu: &'static str,
    pub(crate) gelu: &'static str,
    pub(crate) soft_cap: &'static str,
    /// For each type of cache.
    pub(crate) place: [&'static str; 3],
    pub(crate) attend: [&'static str; 3],
    /// The kernels that place one token's heads and attend, on back-ends that have them.
    pub(crate) attend_next: Option<[&'static str; 3]>,
    /// The kernels of encoders, on back-ends that run them.
    pub(crate) encoder: Option<EncoderKernels>,
    /// The kernel that chooses experts.
    pub(crate) route: &'static str,
}

/// The names of a back-end's kernels for encoders.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EncoderKernels {
    pub(crate) layer_norm: &'static str,
    pub(crate) attend_within: &'static str,
    pub(crate) gelu: &'static str,
}

/// Steps that are recorded for one submission. Buffers have at least as many elements as the steps read and write.
///
/// Steps with the same number of rows write and read columns that lie beside each other in a buffer, so that a back-end
/// may store the columns one after the other.
pub(crate) trait StepPass: Sized {
    type Buffer;
    type Weights;
    type Cache;

    /// Returns a buffer of `len` elements, whose contents are arbitrary.
    fn allocate(&mut self, len: usize) -> Result<Self::Buffer>;

    /// Copies elements to the beginning of a buffer before all steps.
    fn write(&mut self, values: &[f32], to: &Self::Buffer) -> Result<()>;

    /// Copies elements to a new buffer.
    fn upload(&mut self, values: &[f32]) -> Result<Self::Buffer>;

    /// Submits the steps, and returns the first `len` elements of a buffer. Without a GPU the future runs them.
    fn submit(
        self,
        read: Option<(&Self::Buffer, usize)>,
    ) -> Result<impl Future<Output = Result<Vec<f32>>> + use<Self>>;

    /// Normalises `rows` rows.
    fn norm(
        &mut self,
        x: &Self::Buffer,
        norm: Norm<'_, Self::Buffer>,
        y: &Self::Buffer,
        rows: usize,
    ) -> Result<()>;

    /// `Y = s · X · Wᵀ`, or `Y += s · X · Wᵀ`. With a norm, the rows of `X` are normalised first; their number must
    /// then be below [`StepBackend::tiled_from`].
    fn multiply(
        &mut self,
        x: &Self::Buffer,
        weights: &Self::Weights,
        y: Columns<'_, Self::Buffer>,
        product: Product,
        norm: Option<Norm<'_, Self::Buffer>>,
    ) -> Result<()>;

    /// [`multiply`](Self::multiply), and adds low-rank products of the same rows.
    fn multiply_adapted(
        &mut self,
        x: &Self::Buffer,
        weights: &Self::Weights,
        y: Columns<'_, Self::Buffer>,
        product: Product,
        norm: Option<Norm<'_, Self::Buffer>>,
        adapters: &[LowRankProduct<'_, Self::Buffer, Self::Weights>],
    ) -> Result<()> {
        self.multiply(x, weights, y, product, norm)?;
        for adapter in adapters {
            let [low, high] = adapter.products(product.rows);
            self.multiply(x, adapter.a, adapter.between, low, norm)?;
            self.multiply(adapter.between.0, adapter.b, adapter.y, high, None)?;
        }
        Ok(())
    }

    /// Writes the index of the first largest of `len` elements from `x` on, or of the first NaN, as the operation `argmax`
    /// does.
    fn largest(
        &mut self,
        x: Element<'_, Self::Buffer>,
        len: usize,
        index: Element<'_, Self::Buffer>,
    ) -> Result<()>;

    /// Writes the row of a matrix whose number is `index`, times `scale`. A number that no row has writes nothing. Back-ends
    /// that are no GPUs have neither this step nor the next three.
    fn take_row(
        &mut self,
        _weights: &Self::Weights,
        _index: Element<'_, Self::Buffer>,
        _scale: f32,
        _y: &Self::Buffer,
    ) -> Result<()> {
        no_choice()
    }

    /// Changes logits as [`Changes`] says. The tokens before the element `next` have occurred, too.
    fn change(
        &mut self,
        _changes: &Changes<Self::Buffer>,
        _next: Element<'_, Self::Buffer>,
        _logits: &Self::Buffer,
        _len: usize,
    ) -> Result<()> {
        no_choice()
    }

    /// Makes the first `len` logits of tokens that are not allowed lower than all others. The words of `allowed` are those of
    /// [`Choices`](super::choice::Choices).
    fn forbid(
        &mut self,
        _allowed: &Self::Buffer,
        _logits: &Self::Buffer,
        _len: usize,
    ) -> Result<()> {
        no_choice()
    }

    /// Writes the index that a draw from `len` logits gives, or −1 where it takes more of them than the kernels rank.
    fn draw(
        &mut self,
        _logits: &Self::Buffer,
        _len: usize,
        _draw: Draw,
        _index: Element<'_, Self::Buffer>,
    ) -> Result<()> {
        no_choice()
    }

    /// Adds the `len` first elements of `x` to each of `rows` rows.
    fn add(
        &mut self,
        x: (&Self::Buffer, usize),
        y: Columns<'_, Self::Buffer>,
        rows: usize,
    ) -> Result<()>;

    /// Writes heads where attention reads them: rows of `x` have queries, keys and values. Queries and keys are
    /// normalised and rotated.
    fn place(
        &mut self,
        x: &Self::Buffer,
        heads: &HeadPlaces<'_, Self::Buffer>,
        queries: &Self::Buffer,
        cached: &Self::Cache,
    ) -> Result<()>;

    /// Attention of queries to keys and values. `parts` is memory for [`Attention::parts_len`] elements.
    fn attend(
        &mut self,
        inputs: (&Self::Buffer, &Self::Cache),
        attention: &Attention,
        parts: &Self::Buffer,
        mixed: &Self::Buffer,
    ) -> Result<()>;

    /// [`place`](Self::place), and then [`attend`](Self::attend) by these queries.
    fn place_and_attend(
        &mut self,
        x: &Self::Buffer,
        heads: &HeadPlaces<'_, Self::Buffer>,
        (queries, cached): (&Self::Buffer, &Self::Cache),
        attention: &Attention,
        parts: &Self::Buffer,
        mixed: &Self::Buffer,
    ) -> Result<()> {
        self.place(x, heads, queries, cached)?;
        self.attend((queries, cached), attention, parts, mixed)
    }

    /// Attention of each token to all tokens of its text, whose heads are in the cache by the number of their row.
    /// Back-ends that do not run encoders have neither this step nor the next one.
    fn attend_within(
        &mut self,
        _inputs: (&Self::Buffer, &Self::Cache),
        _attention: &Attention,
        _texts: TextRows<'_, Self::Buffer>,
        _mixed: &Self::Buffer,
    ) -> Result<()> {
        no_encoders()
    }

    /// Writes the GELU of the first `len` elements, by its definition with the error function.
    fn gelu(&mut self, _x: &Self::Buffer, _y: &Self::Buffer, _len: usize) -> Result<()> {
        no_encoders()
    }

    /// Writes the numbers of the experts that each row of logits chooses, and then their weights.
    fn route(
        &mut self,
        logits: &Self::Buffer,
        routes: &Self::Buffer,
        rows: usize,
        routing: Routing,
    ) -> Result<()>;

    /// Multiplies rows by the matrices of the experts in `routes`, which are parts of one matrix.
    fn multiply_experts(
        &mut self,
        x: &Self::Buffer,
        weights: &Self::Weights,
        y: Columns<'_, Self::Buffer>,
        routes: &Self::Buffer,
        product: ExpertProduct,
    ) -> Result<()>;

    /// Bounds the first `len` elements: each becomes `cap · tanh(x / cap)`.
    fn soft_cap(&mut self, x: &Self::Buffer, len: usize, cap: f32) -> Result<()>;

    /// Rows of `hidden` elements: the activation of the first `hidden` elements of rows of `x` times
    /// the ones after them.
    fn gate(
        &mut self,
        x: &Self::Buffer,
        y: &Self::Buffer,
        shape: [usize; 2],
        activation: Activation,
    ) -> Result<()>;
}

/// Returns the error of a step that chooses tokens ahead of the host, where the host draws from logits.
fn no_choice() -> Result<()> {
    Err(Error::invalid("device", "SIMD", "a GPU to choose tokens"))
}

/// Returns the error of a step of encoders on a back-end that does not run them.
pub(crate) fn no_encoders() -> Result<()> {
    let requirement = "SIMD or a GPU through wgpu to run an encoder";
    Err(Error::invalid("device", "CUDA", requirement))
}

/// The rows of several texts that go through the steps together, one text after the other.
pub(crate) struct TextRows<'a, B> {
    /// The rows of each text.
    pub(crate) rows: &'a [Range<usize>],
    /// Memory for the first row and the end of each row's text, as words: filled on a GPU.
    pub(crate) bounds: &'a B,
}

/// An element of a buffer, by its index.
pub(crate) type Element<'a, B> = (&'a B, usize);

/// Some columns of a row-major matrix: the first one, and the number of columns that there are.
pub(crate) type Columns<'a, B> = (&'a B, usize, usize);

/// The rows of a sequence's tokens among those of a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenRows {
    /// The number of rows before the first token's.
    pub(crate) before: usize,
    /// The number of rows of the pass.
    pub(crate) all: usize,
}

impl TokenRows {
    /// Returns the elements of the rows of `tokens` tokens, if a row has `len`.
    pub(crate) fn elements(self, tokens: usize, len: usize) -> Range<usize> {
        self.before * len..(self.before + tokens) * len
    }
}

/// How heads are normalised and rotated, and where they go.
pub(crate) struct HeadPlaces<'a, B> {
    pub(crate) tokens: usize,
    pub(crate) rows: TokenRows,
    /// The heads of queries.
    pub(crate) heads: usize,
    /// The number of heads of keys, which is also that of values.
    pub(crate) kv_heads: usize,
    pub(crate) head_len: usize,
    /// The position of the first token.
    pub(crate) position: usize,
    /// The number of rows of a head in the cache. Position `p` has row `p % capacity`.
    pub(crate) capacity: usize,
    pub(crate) gains: Option<HeadGains<'a, B>>,
    pub(crate) rotation: HeadRotation<'a, B>,
    pub(crate) cache_type: CacheType,
}

/// The norms of queries and of keys.
pub(crate) struct HeadGains<'a, B> {
    /// The gains of queries and of keys.
    pub(crate) gains: [&'a B; 2],
    pub(crate) epsilon: f32,
    /// Whether all heads of queries are normalised together, and all of keys; else each is by itself.
    pub(crate) joint: bool,
}

impl<'a, B> HeadPlaces<'a, B> {
    /// Returns the numbers by which kernels know how heads are normalised, and the epsilon.
    pub(crate) fn norm_parameters(&self) -> (u32, f32) {
        match &self.gains {
            None => (0, 0.0),
            Some(norms) => (1 + u32::from(norms.joint), norms.epsilon),
        }
    }

    /// Returns the gains of queries and of keys. If there are none, another buffer is bound in their place and not read.
    pub(crate) fn gains_or(&self, other: &'a B) -> [&'a B; 2] {
        self.gains.as_ref().map_or([other; 2], |norms| norms.gains)
    }
}

/// A rotation of heads.
pub(crate) struct HeadRotation<'a, B> {
    /// The cosine and the sine for each position and pair: of all positions on a GPU, else of the pass's rows.
    pub(crate) angles: &'a B,
    /// The index of the cosine and the sine from which on those of queries are; 0 if keys have the same.
    pub(crate) query_angles: usize,
    pub(crate) pairs: usize,
    pub(crate) neighbours: bool,
}

/// Rows divided by their root mean square and multiplied by a gain. With a bias, their mean is subtracted first, and the
/// bias added last; no product computes such a norm itself.
pub(crate) struct Norm<'a, B> {
    pub(crate) gain: &'a B,
    pub(crate) bias: Option<&'a B>,
    /// The length of the gain and of a row.
    pub(crate) cols: usize,
    pub(crate) epsilon: f32,
    /// The rows of the input before the first one.
    pub(crate) skipped: usize,
}

impl<B> Clone for Norm<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Norm<'_, B> {}

/// The function of the gate in a feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    Silu,
    /// GELU by its approximation with tanh.
    GeluTanh,
}

/// A product of rows by a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub(crate) rows: usize,
    /// Whether the product is added to the elements of the result's buffer.
    pub(crate) adds: bool,
    /// The factor of the product.
    pub(crate) scale: f32,
    /// The activation of the first half of the matrix's rows, which multiplies the second half: the result has half the
    /// number of columns. Only where [`StepBackend::gates`] allows it.
    pub(crate) gate: Option<Activation>,
    /// Whether SIMD gives each row the bits that it has by itself, however many there are. GPUs do as their kernels do.
    pub(crate) alone: bool,
}

impl Product {
    /// The plain product of rows.
    pub(crate) fn of(rows: usize) -> Self {
        Self {
            rows,
            adds: false,
            scale: 1.0,
            gate: None,
            alone: rows < ALONE_BELOW,
        }
    }
}

/// The choice of experts by rows of logits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routing {
    pub(crate) experts: usize,
    /// The number of experts that a row chooses: those with the largest logits.
    pub(crate) used: usize,
    /// Whether the weights of the chosen experts add up to 1. Else those of all experts do.
    pub(crate) normalises: bool,
}

/// A product of rows by the matrices of experts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpertProduct {
    pub(crate) tokens: usize,
    /// The number of experts that a token chose.
    pub(crate) used: usize,
    /// The rows of an expert's matrix.
    pub(crate) rows: usize,
    /// Whether there is an input for each expert of a token, and the weighted sum of their products, times `scale`, is added
    /// to the result. Else the result has the products of all experts of a token one after the other.
    pub(crate) mixes: bool,
    pub(crate) scale: f32,
    /// [`Product::alone`].
    pub(crate) alone: bool,
}

/// A product of rows by two matrices of low rank, one after the other.
pub(crate) struct LowRankProduct<'a, B, W> {
    pub(crate) a: &'a W,
    pub(crate) b: &'a W,
    /// The factor of the product.
    pub(crate) scale: f32,
    /// Memory for the values between the two matrices.
    pub(crate) between: Columns<'a, B>,
    /// The columns that the product is added to.
    pub(crate) y: Columns<'a, B>,
}

impl<B, W> LowRankProduct<'_, B, W> {
    /// Returns the products of rows by each matrix.
    fn products(&self, rows: usize) -> [Product; 2] {
        let low = Product::of(rows);
        let high = Product {
            adds: true,
            scale: self.scale,
            ..low
        };
        [low, high]
    }
}

/// Attention of tokens to the keys and values in the cache.
#[derive(Clone, Copy)]
pub(crate) struct Attention {
    pub(crate) tokens: usize,
    pub(crate) rows: TokenRows,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_len: usize,
    /// The position of the first token.
    pub(crate) position: usize,
    /// The positions that the cache has room for, as [`HeadPlaces::capacity`] has it.
    pub(crate) capacity: usize,
    pub(crate) window: Option<usize>,
    pub(crate) scale: f32,
    /// The bound `c` of the scores, which become `c · tanh(score / c)`.
    pub(crate) soft_cap: Option<f32>,
    pub(crate) cache_type: CacheType,
}

impl Attention {
    /// Returns the workgroups that share the positions of a head. Each except the last has at least [`ROUND`] of them.
    pub(crate) fn splits(&self) -> usize {
        let seen = (self.position + self.tokens).min(self.window.unwrap_or(usize::MAX));
        let most = (SPLIT_GROUPS / (self.tokens * self.heads).max(1)).clamp(1, MOST_SPLITS);
        let rounds = seen.div_ceil(ROUND).max(1);
        rounds.div_ceil(rounds.div_ceil(most))
    }

    /// Returns the elements that splits take in all: a head each and four more.
    pub(crate) fn parts_len(head_len: usize) -> usize {
        SPLIT_GROUPS * (head_len + 4)
    }
}

/// Checks whether kernels take heads of this length, whose rows in the cache they read by four words.
///
/// # Errors
/// `LimitExceeded`.
pub(crate) fn check_head(len: usize, cache_type: CacheType) -> Result<()> {
    check_limit("the length of a head", len, MAX_HEAD)?;
    let (what, divisor) = match cache_type {
        CacheType::F32 => ("the rest of a head's length divided by 4", 4),
        CacheType::F16 => ("the rest of a head's length divided by 8", 8),
        CacheType::Q8_0 => ("the rest of a head's length divided by 16", 16),
    };
    check_limit(what, len % divisor, 0)
}

/// Checks whether kernels take rows of weights of this length.
///
/// # Errors
/// `LimitExceeded`.
pub(crate) fn check_row(cols: usize) -> Result<()> {
    check_limit("the rest of a row of weights divided by 8", cols % EIGHT, 0)
}

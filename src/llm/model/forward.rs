//! The forward pass: blocks of tokens through all layers.

use super::backend::BackendModel;
use super::steps::Slot;
use super::{KeptPositions, Model, Scaled, State};
use crate::error::{Error, Result};
use crate::graph::choice::Choices;
use crate::graph::steps::ALONE_BELOW;
use crate::instruction_set::InstructionSet;
use crate::runtime::pause;
use crate::simd::argmax;
use std::ops::Range;

/// The result that is wanted of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The logits of the last one.
    Last,
    /// The index of the largest logit of the last one, which is the first of several: one value, for vocabularies of
    /// at most [`MOST_CHOICES`] tokens.
    Largest,
    /// The logits of all.
    All,
    /// The values of all after the last norm, from which logits are computed.
    Hidden,
    /// Nothing but that they are read.
    Nothing,
}

impl Wanted {
    /// Returns this result by the logits of all tokens, rows of `len`; those of [`Wanted::Largest`] may be the index of the
    /// largest one each.
    pub(crate) fn of_rows(self, logits: &[f32], len: usize, are_indices: bool) -> Vec<f32> {
        let last = &logits[logits.len().saturating_sub(len)..];
        match self {
            Wanted::Last => last.to_vec(),
            Wanted::Largest if are_indices => last.to_vec(),
            Wanted::Largest => vec![argmax(InstructionSet::best(), last) as f32],
            Wanted::All => logits.to_vec(),
            Wanted::Hidden | Wanted::Nothing => Vec::new(),
        }
    }
}

/// The vocabulary below which an `f32` holds every index.
pub(crate) const MOST_CHOICES: usize = 1 << 24;

/// The input of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input<'a> {
    Tokens(&'a [u32]),
    /// Rows as long as embeddings.
    Rows(&'a [f32]),
}

/// The result of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// The logits of the last tokens, whose number is given.
    Logits(usize),
    /// The index of the largest logit of the last token.
    Largest,
    /// The index of the largest logit of each token.
    LargestOfEach,
    /// The values of all tokens after the last layer.
    Residual,
    /// The values of all tokens after the last norm.
    Normed,
}

impl Output {
    /// Returns the slot that has the result, but for the largest logits that with all.
    pub(super) fn slot(self) -> Slot {
        match self {
            Output::Residual => Slot::Residual,
            Output::Normed => Slot::Normed,
            Output::Logits(_) | Output::Largest | Output::LargestOfEach => Slot::Logits,
        }
    }

    /// Returns the number of last tokens, of a block of `tokens`, that go through the steps after the layers.
    pub(super) fn rows(self, tokens: usize) -> usize {
        match self {
            Output::Residual | Output::Normed | Output::LargestOfEach => tokens,
            Output::Logits(rows) => rows,
            Output::Largest => 1,
        }
    }
}

/// The tokens of a sequence in a block, after those of the sequences before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequenceRows<'a> {
    pub(crate) state: &'a State,
    /// The first token's position.
    pub(crate) first: usize,
    pub(crate) tokens: usize,
}

/// The state of a block of at most [`Model::block`] tokens between layers.
#[derive(Clone, Debug)]
pub(crate) struct BlockRequest<'a> {
    /// The sequences whose tokens go through the steps together.
    pub(crate) sequences: &'a [SequenceRows<'a>],
    pub(crate) input: Input<'a>,
    pub(crate) layers: Range<usize>,
    pub(crate) output: Output,
    pub(crate) adapters: &'a [Scaled],
    /// The rows of each text that an encoder reads; none of a decoder.
    pub(crate) texts: &'a [Range<usize>],
}

impl BlockRequest<'_> {
    /// Returns the number of tokens for a model of this width.
    pub(super) fn tokens(&self, width: usize) -> usize {
        match self.input {
            Input::Tokens(tokens) => tokens.len(),
            Input::Rows(rows) => rows.len() / width,
        }
    }
}

impl Model {
    /// Reads the tokens after the first `first` ones, and returns the requested results, row after row. The number of
    /// logits is that of the vocabulary's tokens.
    ///
    /// The tokens must have passed [`Model::check`]. Pauses between blocks, and on SIMD also within them.
    ///
    /// # Errors
    /// `OutOfMemory`; on a GPU also `DeviceLost` and `Gpu`.
    pub(crate) async fn forward(
        &self,
        state: &mut State,
        mut first: usize,
        tokens: &[u32],
        wanted: Wanted,
        adapters: &[Scaled],
    ) -> Result<Vec<f32>> {
        let mut results = Vec::new();
        let blocks = tokens.len().div_ceil(self.block());
        for (index, block) in tokens.chunks(self.block()).enumerate() {
            if index > 0 {
                pause().await;
            }
            let sequence = SequenceRows {
                state,
                first,
                tokens: block.len(),
            };
            let request = BlockRequest {
                sequences: &[sequence],
                input: Input::Tokens(block),
                layers: 0..self.config.layers,
                output: match wanted {
                    Wanted::All => Output::Logits(block.len()),
                    Wanted::Largest if index + 1 == blocks => Output::Largest,
                    Wanted::Largest | Wanted::Nothing => Output::Logits(0),
                    Wanted::Last => Output::Logits(usize::from(index + 1 == blocks)),
                    Wanted::Hidden => Output::Normed,
                },
                adapters,
                texts: &[],
            };
            results.extend(self.read(&request).await?);
            first += block.len();
        }
        Ok(results)
    }

    /// Reads tokens of several sequences in one pass, and returns the logits after each of them, row after row, or of each the
    /// index of the largest one. There are at most [`Model::block`] tokens in all, and each sequence has a number that [may share](Model::may_share) a pass. On SIMD
    /// a token's logits have the bits of a pass of its own.
    ///
    /// # Errors
    /// The errors of [`Model::forward`].
    pub(crate) async fn forward_together(
        &self,
        sequences: &[SequenceRows<'_>],
        tokens: &[u32],
        largest: bool,
        adapters: &[Scaled],
    ) -> Result<Vec<f32>> {
        let request = BlockRequest {
            sequences,
            input: Input::Tokens(tokens),
            layers: 0..self.config.layers,
            output: if largest {
                Output::LargestOfEach
            } else {
                Output::Logits(tokens.len())
            },
            adapters,
            texts: &[],
        };
        self.read(&request).await
    }

    /// Whether this number of tokens of a sequence may share a pass: SIMD multiplies as few as these one by one.
    pub(crate) fn may_share(tokens: usize) -> bool {
        tokens < ALONE_BELOW
    }

    /// The tokens that go through the layers at a time.
    pub(crate) fn block(&self) -> usize {
        by_executor!(self.executor, on => on.block())
    }

    /// Returns a function of a number of tokens from two on: the time of a pass that returns the logits of all of them, in
    /// passes that choose one token. Measured of `SmolLM2` (`Q4_K_M`) with AVX-512, and on an H200 through Vulkan and CUDA.
    /// Not measured at run time, since answers must not depend on a clock.
    pub(crate) fn pass_cost(&self) -> fn(usize) -> f64 {
        // With more tokens SIMD unpacks the weights first.
        let on_simd: fn(usize) -> f64 = |tokens| match tokens {
            ..ALONE_BELOW => 0.15 + 0.62 * tokens as f64,
            _ => 5.5 + 0.2 * tokens as f64,
        };
        let on_gpu: fn(usize) -> f64 = |tokens| 2.0 + 0.1 * tokens as f64;
        by_executor!(self.executor, _cpu => on_simd, _gpu => on_gpu)
    }

    /// Reads a block.
    ///
    /// # Errors
    /// The errors of [`Model::forward`], and `Foreign` for another model's memory.
    pub(crate) async fn read(&self, request: &BlockRequest<'_>) -> Result<Vec<f32>> {
        by_executor!(
            self.executor,
            cpu => cpu.read_at_once(self, request).await,
            gpu => gpu.read(self, request).await,
        )
    }

    /// Returns the most tokens that [`Model::choose`] chooses; none where the executor has no kernels for it.
    pub(crate) fn ahead(&self) -> usize {
        by_executor!(self.executor, _cpu => 0, gpu => gpu.ahead(self))
    }

    /// Reads a token after the first `first` ones and chooses the next one, reads that, and so on; returns the chosen
    /// tokens, or −1 for one that takes all logits to choose.
    ///
    /// # Errors
    /// The errors of [`Model::forward`].
    pub(crate) async fn choose(
        &self,
        state: &mut State,
        first: usize,
        token: u32,
        choices: &Choices,
        adapters: &[Scaled],
    ) -> Result<Vec<f32>> {
        let sequence = SequenceRows {
            state,
            first,
            tokens: 1,
        };
        let request = BlockRequest {
            sequences: &[sequence],
            input: Input::Tokens(&[token]),
            layers: 0..self.config.layers,
            output: Output::Largest,
            adapters,
            texts: &[],
        };
        by_executor!(
            self.executor,
            _cpu => Err(foreign()),
            gpu => gpu.choose(self, &request, choices).await,
        )
    }

    /// Returns the keys and values of a sequence's first tokens, as words: for each layer and each head its keys, position
    /// by position, and after all heads' keys the values likewise.
    ///
    /// # Errors
    /// `OutOfMemory`; on a GPU also `DeviceLost`; `Foreign` for another model's memory.
    pub(crate) async fn export(&self, state: &State, kept: KeptPositions) -> Result<Vec<f32>> {
        by_executor!(
            self.executor,
            _cpu => BackendModel::export_at_once(&self.config, state, kept),
            gpu => gpu.export(&self.config, state, kept).await,
        )
    }

    /// Replaces the keys and values of a sequence by those of the same positions that [`Model::export`] returned.
    ///
    /// # Errors
    /// The errors of [`Model::export`].
    pub(crate) async fn import(
        &self,
        state: &mut State,
        kept: KeptPositions,
        values: &[f32],
    ) -> Result<()> {
        by_executor!(
            self.executor,
            _cpu => BackendModel::import_at_once(&self.config, state, kept, values),
            gpu => gpu.import(&self.config, state, kept, values).await,
        )
    }

    /// Checks whether tokens can be read after the first `first` ones.
    ///
    /// # Errors
    /// `LimitExceeded` if the cache has no room for them, `InvalidArgument` for an unknown token.
    pub(crate) fn check(&self, first: usize, tokens: &[u32]) -> Result<()> {
        self.check_tokens(tokens)?;
        self.check_room(first, tokens.len())
    }

    pub(crate) fn check_tokens(&self, tokens: &[u32]) -> Result<()> {
        let vocabulary = self.vocabulary();
        match tokens.iter().find(|&&token| token as usize >= vocabulary) {
            Some(token) => Err(Error::invalid(
                "tokens",
                token.to_string(),
                format!("below {vocabulary}"),
            )),
            None => Ok(()),
        }
    }

    pub(crate) fn check_room(&self, first: usize, count: usize) -> Result<()> {
        let capacity = self.config.capacity;
        if count <= capacity - first {
            return Ok(());
        }
        Err(Error::LimitExceeded {
            what: "the number of tokens in the context",
            value: (first + count) as u64,
            limit: capacity as u64,
        })
    }

    /// The number of tokens in the vocabulary.
    pub(crate) fn vocabulary(&self) -> usize {
        self.weights.vocabulary()
    }

    /// Writes the values that enter the first layer for a request.
    pub(super) fn first_input(&self, request: &BlockRequest<'_>, rows: &mut [f32]) -> Result<()> {
        self.embed(request.input, rows)?;
        match &self.weights.input {
            Some(input) => self.complete_input(input, request.texts, rows),
            None => Ok(()),
        }
    }

    /// Writes the embeddings of tokens, or copies rows.
    pub(crate) fn embed(&self, input: Input<'_>, rows: &mut [f32]) -> Result<()> {
        let tokens = match input {
            Input::Tokens(tokens) => tokens,
            Input::Rows(values) => {
                rows.copy_from_slice(values);
                return Ok(());
            }
        };
        let scale = self.config.multipliers.embedding;
        let embedding = self.weights.matrices[self.weights.embedding].matrix(&self.file)?;
        let rows = rows.chunks_exact_mut(self.config.width);
        for (&token, row) in tokens.iter().zip(rows) {
            embedding.dequantize_row(token as usize, row);
            for x in row {
                *x *= scale;
            }
        }
        Ok(())
    }
}

/// The error of a sequence that another model made.
pub(super) fn foreign() -> Error {
    Error::Foreign {
        what: "session",
        owner: "model",
    }
}

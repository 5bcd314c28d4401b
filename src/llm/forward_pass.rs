//! The layers of a model without its tokenizer.

use super::lora::low_ranks;
use super::model::{BlockRequest, Input, Model, Output, Scaled, SequenceRows, State};
use super::{Gguf, LoadOptions, QkvLora};
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// The layers of a model, for programs that bring embeddings or weights of their own: one layer or a whole
/// stack at a time, one token or many.
///
/// Rows stay on the device from layer to layer. Keys and values of the rows so far are cached, layer by layer. Weights
/// come from a GGUF file, which [`GgufWriter`](super::GgufWriter) can write from a program's own weights; the file
/// needs no tokenizer.
///
/// ```no_run
/// use relampago::llm::{ForwardPass, Gguf};
///
/// let file = Gguf::open("smollm2-135m.gguf")?;
/// let mut pass = ForwardPass::new(file, Default::default())?;
/// let rows = pass.embed(&[504, 3575, 282])?;
/// let rows = pass.forward(0..pass.layers(), &rows)?;
/// let logits = pass.logits(&rows)?;
/// assert_eq!(logits.len(), 3 * pass.vocabulary());
/// # Ok::<(), relampago::Error>(())
/// ```
#[doc(alias = "WgslForwardPass")]
#[derive(Debug)]
pub struct ForwardPass {
    model: Model,
    state: State,
    /// The number of rows that each layer has read.
    lens: Vec<usize>,
    scaled: Vec<Scaled>,
}

impl ForwardPass {
    /// Reads a model's file, and moves its weights to the options' device.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::load_async`](super::LanguageModel::load_async); `InvalidArgument` for an encoder.
    pub async fn new_async(file: Gguf, options: LoadOptions) -> Result<Self> {
        let mut model = Model::new(file, &options)?;
        model.check_decoder()?;
        // Rows are not there to be read again after a rewind.
        model.config.keeps_all = true;
        if let Some(device) = &options.device {
            model.move_to(device).await?;
        }
        Ok(Self {
            state: model.state()?,
            lens: vec![0; model.config.layers],
            model,
            scaled: Vec::new(),
        })
    }

    /// The number of layers.
    pub fn layers(&self) -> usize {
        self.lens.len()
    }

    /// The length of a row.
    pub fn width(&self) -> usize {
        self.model.config.width
    }

    /// The number of logits of a row.
    pub fn vocabulary(&self) -> usize {
        self.model.vocabulary()
    }

    /// Returns the rows that enter the first layer for tokens: their embeddings.
    ///
    /// # Errors
    /// `InvalidArgument` for a token beyond the vocabulary, `OutOfMemory`.
    pub fn embed(&self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.model.check_tokens(tokens)?;
        let mut rows = crate::alloc::try_zeros(tokens.len() * self.width())?;
        self.model.embed(Input::Tokens(tokens), &mut rows)?;
        Ok(rows)
    }

    /// Passes rows through a range of layers, and returns the rows that leave the last one. The rows come after the
    /// rows that these layers have read before.
    ///
    /// # Errors
    /// `InvalidArgument` for a range that is empty or beyond the layers, or whose layers have read different numbers of
    /// rows; `LengthMismatch` if `rows` is no multiple of the width; `LimitExceeded` if the
    /// context has no room for them; `OutOfMemory`, `DeviceLost`. After an error the layers have read none of the rows.
    pub async fn forward_async(&mut self, layers: Range<usize>, rows: &[f32]) -> Result<Vec<f32>> {
        let first = self.check(&layers, rows)?;
        self.read(first, layers, rows, |_| Output::Residual).await
    }

    /// Passes rows through layers block by block.
    async fn read(
        &mut self,
        mut first: usize,
        layers: Range<usize>,
        rows: &[f32],
        output: impl Fn(usize) -> Output,
    ) -> Result<Vec<f32>> {
        let before = first;
        let mut results = Vec::new();
        for block in rows.chunks(self.model.block() * self.width()) {
            let count = block.len() / self.width();
            let sequence = SequenceRows {
                state: &self.state,
                first,
                tokens: count,
            };
            let request = BlockRequest {
                sequences: &[sequence],
                input: Input::Rows(block),
                layers: layers.clone(),
                output: output(count),
                adapters: &self.scaled,
                texts: &[],
            };
            let result = self.model.read(&request).await;
            first = if result.is_ok() {
                first + count
            } else {
                before
            };
            self.lens[layers.clone()].fill(first);
            results.extend(result?);
        }
        Ok(results)
    }

    /// Returns the logits of rows that left the last layer: the last norm and the head.
    ///
    /// # Errors
    /// `LengthMismatch` if `rows` is no multiple of the width, `OutOfMemory`, `DeviceLost`.
    pub async fn logits_async(&mut self, rows: &[f32]) -> Result<Vec<f32>> {
        self.check_rows(rows)?;
        self.read(0, 0..0, rows, Output::Logits).await
    }

    /// Replaces the adapters, which are added to the queries, keys and values of layers by number; none is the
    /// weights alone. Forgets all rows, since keys and values depend on them.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::qkv_lora_async`](super::LanguageModel::qkv_lora_async).
    pub async fn set_qkv_lora_async(&mut self, layers: &[(usize, QkvLora)]) -> Result<()> {
        let adapter = self.model.adapter(&low_ranks(layers)?).await?;
        self.scaled = vec![(Arc::new(adapter), 1.0)];
        self.rewind(0);
        Ok(())
    }

    /// Forgets all rows but the first `len` in each layer.
    pub fn rewind(&mut self, len: usize) {
        for read in &mut self.lens {
            *read = len.min(*read);
        }
    }

    /// Returns where rows go in these layers.
    fn check(&self, layers: &Range<usize>, rows: &[f32]) -> Result<usize> {
        self.check_rows(rows)?;
        let lens = self.lens.get(layers.clone()).unwrap_or_default();
        let Some(&first) = lens.first() else {
            let value = format!("{layers:?}");
            let requirement = format!("a range of the layers 0..{}", self.layers());
            return Err(Error::invalid("layers", value, requirement));
        };
        if lens.iter().any(|&len| len != first) {
            let value = format!("{layers:?}");
            let requirement = "layers that have read the same number of rows";
            return Err(Error::invalid("layers", value, requirement));
        }
        self.model.check_room(first, rows.len() / self.width())?;
        Ok(first)
    }

    fn check_rows(&self, rows: &[f32]) -> Result<()> {
        let expected = rows.len().next_multiple_of(self.width());
        if rows.len() == expected {
            return Ok(());
        }
        Err(Error::LengthMismatch {
            what: "rows",
            expected,
            actual: rows.len(),
            reason: "",
        })
    }
}

/// Blocking versions.
#[cfg(not(target_arch = "wasm32"))]
impl ForwardPass {
    /// Blocking version of [`ForwardPass::new_async`].
    pub fn new(file: Gguf, options: LoadOptions) -> Result<Self> {
        crate::runtime::block_on(Self::new_async(file, options))
    }

    /// Blocking version of [`ForwardPass::forward_async`].
    pub fn forward(&mut self, layers: Range<usize>, rows: &[f32]) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.forward_async(layers, rows))
    }

    /// Blocking version of [`ForwardPass::set_qkv_lora_async`].
    pub fn set_qkv_lora(&mut self, layers: &[(usize, QkvLora)]) -> Result<()> {
        crate::runtime::block_on(self.set_qkv_lora_async(layers))
    }

    /// Blocking version of [`ForwardPass::logits_async`].
    pub fn logits(&mut self, rows: &[f32]) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.logits_async(rows))
    }
}

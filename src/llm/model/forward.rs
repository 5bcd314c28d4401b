//! The forward pass: a block of tokens through all layers.

use super::attention::{Attention, Rotation};
use super::weights::{Layer, Weight};
use super::{KvCache, Model};
use crate::alloc::try_zeros;
use crate::error::{Error, Result};
use crate::ops::Op;
use crate::simd::{execute, multiply_blocks};

/// Tokens that go through the layers at a time.
pub(crate) const BLOCK: usize = 128;

/// Of which tokens logits are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Of the last one.
    Last,
    /// Of all.
    All,
}

impl Model {
    /// Appends tokens to the cache and returns logits: rows of as many values as there are tokens in
    /// the vocabulary.
    ///
    /// The tokens must have passed [`Model::check`].
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn forward(
        &self,
        cache: &mut KvCache,
        tokens: &[u32],
        wanted: Wanted,
    ) -> Result<Vec<f32>> {
        let mut logits = Vec::new();
        let blocks = tokens.len().div_ceil(BLOCK);
        for (index, block) in tokens.chunks(BLOCK).enumerate() {
            let rows = match wanted {
                Wanted::All => block.len(),
                Wanted::Last => usize::from(index + 1 == blocks),
            };
            let x = self.layers(cache, block)?;
            let x = &x[(block.len() - rows) * self.config.width..];
            logits.extend(self.head(x)?);
        }
        Ok(logits)
    }

    /// Checks whether tokens can be appended to the cache.
    ///
    /// # Errors
    /// `LimitExceeded` if the cache has no room for them, `InvalidArgument` for an unknown token.
    pub(crate) fn check(&self, cache: &KvCache, tokens: &[u32]) -> Result<()> {
        let vocabulary = self.layout.embedding.rows;
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
            return Err(Error::invalid(
                "tokens",
                token.to_string(),
                format!("below {vocabulary}"),
            ));
        }
        if tokens.len() > cache.capacity - cache.len {
            return Err(Error::LimitExceeded {
                what: "the number of tokens in the context",
                value: (cache.len + tokens.len()) as u64,
                limit: cache.capacity as u64,
            });
        }
        Ok(())
    }

    /// A block's values after the last layer.
    fn layers(&self, cache: &mut KvCache, tokens: &[u32]) -> Result<Vec<f32>> {
        let config = &self.config;
        let mut x = try_zeros(tokens.len() * config.width)?;
        let embedding = self.layout.embedding.matrix(&self.file)?;
        for (&token, x) in tokens.iter().zip(x.chunks_exact_mut(config.width)) {
            embedding.dequantize_row(token as usize, x);
        }
        let rotation = Rotation::new(config, cache.len, tokens.len());
        let mut attention = Attention::new(config, tokens.len(), cache.len + tokens.len())?;
        for (index, layer) in self.layout.layers.iter().enumerate() {
            self.attend(cache, (index, layer), &rotation, &mut attention, &mut x)?;
            self.feed_forward(layer, &mut x)?;
        }
        cache.len += tokens.len();
        Ok(x)
    }

    /// Adds a layer's attention to `x`.
    fn attend(
        &self,
        cache: &mut KvCache,
        (index, layer): (usize, &Layer),
        rotation: &Rotation,
        attention: &mut Attention,
        x: &mut [f32],
    ) -> Result<()> {
        let config = &self.config;
        let normed = self.norm(x, &layer.attention_norm)?;
        let mut queries = self.multiply(&layer.query, &normed)?;
        let mut keys = self.multiply(&layer.key, &normed)?;
        let values = self.multiply(&layer.value, &normed)?;
        rotation.apply(&mut queries, config.heads);
        rotation.apply(&mut keys, config.kv_heads);
        cache.write(index, &keys, &values);
        let mut mixed = try_zeros(queries.len())?;
        attention.run(self.cpu, config, (cache, index), &queries, &mut mixed)?;
        add(x, &self.multiply(&layer.output, &mixed)?);
        Ok(())
    }

    /// Adds a layer's gated feed-forward network to `x`.
    fn feed_forward(&self, layer: &Layer, x: &mut [f32]) -> Result<()> {
        let normed = self.norm(x, &layer.feed_norm)?;
        let gate = self.multiply(&layer.gate, &normed)?;
        let mut hidden = try_zeros(gate.len())?;
        execute(self.cpu, &Op::Swish, &[&gate], &mut hidden)?;
        let up = self.multiply(&layer.up, &normed)?;
        hidden
            .iter_mut()
            .zip(&up)
            .for_each(|(hidden, up)| *hidden *= up);
        add(x, &self.multiply(&layer.down, &hidden)?);
        Ok(())
    }

    /// The logits of rows of values.
    fn head(&self, x: &[f32]) -> Result<Vec<f32>> {
        if x.is_empty() {
            return Ok(Vec::new());
        }
        self.multiply(&self.layout.head, &self.norm(x, &self.layout.norm)?)
    }

    fn norm(&self, x: &[f32], gain: &[f32]) -> Result<Vec<f32>> {
        let mut normed = try_zeros(x.len())?;
        let [rows, cols] = [x.len() / gain.len(), gain.len()];
        let epsilon = self.config.epsilon;
        execute(
            self.cpu,
            &Op::RmsNorm {
                rows,
                cols,
                epsilon,
            },
            &[x, gain],
            &mut normed,
        )?;
        Ok(normed)
    }

    fn multiply(&self, weight: &Weight, x: &[f32]) -> Result<Vec<f32>> {
        let mut product = try_zeros(x.len() / weight.cols * weight.rows)?;
        multiply_blocks(self.cpu, weight.matrix(&self.file)?, x, &mut product)?;
        Ok(product)
    }
}

fn add(x: &mut [f32], more: &[f32]) {
    x.iter_mut().zip(more).for_each(|(x, more)| *x += more);
}

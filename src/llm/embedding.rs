//! Embeddings of texts.

use super::model::Wanted;
use super::sequence::Sequence;
use super::{LanguageModel, Value};
use crate::error::{Error, Result};

/// How the values of a text's tokens become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Pooling {
    /// The mean of all tokens.
    Mean,
    /// The last token, which has seen all others.
    Last,
}

/// Options for embedding texts.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct EmbedOptions {
    /// How tokens become one vector: by default as the file says, and their mean if it does not.
    pub pooling: Option<Pooling>,
    /// Whether vectors are divided by their Euclidean length, so that products of two are cosines.
    pub normalize: bool,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self {
            pooling: None,
            normalize: true,
        }
    }
}

impl EmbedOptions {
    /// Returns the options with this way to make one vector of the tokens.
    #[must_use]
    pub fn with_pooling(self, pooling: Pooling) -> Self {
        Self {
            pooling: Some(pooling),
            ..self
        }
    }

    /// Returns the options with vectors that are divided by their length, or not.
    #[must_use]
    pub fn with_normalize(self, normalize: bool) -> Self {
        Self { normalize, ..self }
    }
}

impl LanguageModel {
    /// Returns a vector for each text: the values after the model's last norm, pooled. A text ends with the token that ends
    /// texts if the file asks for it (`tokenizer.ggml.add_eos_token`).
    ///
    /// # Errors
    /// `InvalidModel` if the file pools in a way that is not supported and the options do not say how; `Empty` for a text of no tokens, `LimitExceeded` for one that is longer than the context;
    /// `InvalidArgument` for one that the tokenizer cannot split; `OutOfMemory`; on a GPU `DeviceLost` and `Gpu`.
    pub async fn embed_async(
        &self,
        texts: &[impl AsRef<str>],
        options: EmbedOptions,
    ) -> Result<Vec<Vec<f32>>> {
        let pooling = options.pooling.map_or_else(|| self.pooling(), Ok)?;
        let mut sequence = Sequence::new(self)?;
        let mut vectors = Vec::new();
        for text in texts {
            let mut tokens = self.continuation(text.as_ref())?;
            if tokens.is_empty() {
                return Err(Error::Empty { op: "embed" });
            }
            tokens.extend(self.tokenizer.end());
            sequence.rewind(0)?;
            let rows = sequence.read(self, &tokens, Wanted::Hidden).await?;
            let mut vector = pool(&rows, self.model.config.width, pooling);
            if options.normalize {
                normalize(&mut vector);
            }
            vectors.push(vector);
        }
        Ok(vectors)
    }

    /// How the file says that tokens become one vector.
    fn pooling(&self) -> Result<Pooling> {
        let file = &self.model.file;
        let architecture = file.text("general.architecture")?.unwrap_or_default();
        let key = format!("{architecture}.pooling_type");
        let of = |value: Value<'_>| match value.as_u64()? {
            0 | 1 => Some(Pooling::Mean),
            3 => Some(Pooling::Last),
            _ => None,
        };
        let requirement = "0 (none), 1 (mean) or 3 (last) for `embed` without the option `pooling`";
        Ok(file.typed(&key, of, requirement)?.unwrap_or(Pooling::Mean))
    }

    /// Blocking version of [`LanguageModel::embed_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn embed(&self, texts: &[impl AsRef<str>], options: EmbedOptions) -> Result<Vec<Vec<f32>>> {
        crate::runtime::block_on(self.embed_async(texts, options))
    }
}

fn pool(rows: &[f32], width: usize, pooling: Pooling) -> Vec<f32> {
    if pooling == Pooling::Last {
        return rows[rows.len() - width..].to_vec();
    }
    let count = (rows.len() / width) as f64;
    let mean = |column: usize| {
        let column = rows[column..].iter().step_by(width);
        column.map(|&x| f64::from(x)).sum::<f64>() / count
    };
    (0..width).map(|column| mean(column) as f32).collect()
}

/// Divides a vector by its Euclidean length, unless the length is 0.
fn normalize(vector: &mut [f32]) {
    let squares = vector.iter().map(|&x| f64::from(x) * f64::from(x));
    let length = squares.sum::<f64>().sqrt();
    if length > 0.0 {
        for x in vector {
            *x = (f64::from(*x) / length) as f32;
        }
    }
}

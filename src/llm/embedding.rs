//! Embeddings of texts.

use super::model::Wanted;
use super::sequence::Sequence;
use super::{LanguageModel, Value};
use crate::error::{Error, Result};
use crate::runtime::pause;

/// How the values of a text's tokens become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Pooling {
    /// The mean of all tokens.
    Mean,
    /// The last token, which in a decoder has seen all others.
    Last,
    /// The first token, `[CLS]` in encoders.
    Cls,
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
    /// The text before each text, such as `query: `; none by default. Models say which they were trained with.
    pub prompt: Option<String>,
    /// The number of elements of a vector: the first ones, which are divided by their own length. By default all. Only
    /// models that were trained for it (Matryoshka) give good vectors of fewer.
    pub dimensions: Option<usize>,
    /// Whether texts that are longer than the context are cut; otherwise they are an error.
    pub truncate: bool,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self {
            pooling: None,
            normalize: true,
            prompt: None,
            dimensions: None,
            truncate: false,
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

    /// Returns the options with this text before each text.
    #[must_use]
    pub fn with_prompt(self, prompt: impl Into<String>) -> Self {
        Self {
            prompt: Some(prompt.into()),
            ..self
        }
    }

    /// Returns the options with vectors of this number of elements.
    #[must_use]
    pub fn with_dimensions(self, dimensions: usize) -> Self {
        Self {
            dimensions: Some(dimensions),
            ..self
        }
    }

    /// Returns the options with texts that are cut where they are longer than the context, or not.
    #[must_use]
    pub fn with_truncate(self, truncate: bool) -> Self {
        Self { truncate, ..self }
    }

    fn check(&self, width: usize) -> Result<()> {
        match self.dimensions {
            Some(dimensions) if !(1..=width).contains(&dimensions) => Err(Error::invalid(
                "dimensions",
                dimensions.to_string(),
                format!("from 1 to {width}"),
            )),
            _ => Ok(()),
        }
    }
}

impl LanguageModel {
    /// Returns a vector for each text: the values after the last layer, of a decoder those after its last norm, pooled. A
    /// text begins and ends with the tokens that the file asks for (`tokenizer.ggml.add_bos_token`, `add_eos_token`).
    ///
    /// An encoder reads many short texts together, which changes no vector: on SIMD by no bit. A decoder reads one after
    /// the other.
    ///
    /// # Errors
    /// `InvalidModel` if the file pools in a way that is not supported and the options do not say how; `Empty` for a text of
    /// no tokens, `LimitExceeded` for one that is longer than the context; `InvalidArgument` for one that the tokenizer
    /// cannot split, and for `dimensions` beyond the model's; `OutOfMemory`; on a GPU `DeviceLost` and `Gpu`.
    pub async fn embed_async(
        &self,
        texts: &[impl AsRef<str>],
        options: EmbedOptions,
    ) -> Result<Vec<Vec<f32>>> {
        let tokens = texts.iter();
        let tokens = tokens.map(|text| self.tokens_to_embed(text.as_ref(), &options));
        let tokens = tokens.collect::<Result<Vec<_>>>()?;
        self.embed_tokens(&tokens, &options).await
    }

    /// Returns a vector for the tokens of each text.
    pub(crate) async fn embed_tokens(
        &self,
        texts: &[Vec<u32>],
        options: &EmbedOptions,
    ) -> Result<Vec<Vec<f32>>> {
        let width = self.model.config.width;
        options.check(width)?;
        let pooling = options.pooling.map_or_else(|| self.pooling(), Ok)?;
        let vector = |rows: &[f32]| {
            let mut vector = pool(rows, width, pooling);
            vector.truncate(options.dimensions.unwrap_or(width));
            if options.normalize {
                normalize(&mut vector);
            }
            vector
        };
        if self.model.config.is_encoder() {
            return self.model.encode(texts, vector).await;
        }
        let mut sequence = Sequence::new(self)?;
        let mut vectors = Vec::new();
        for tokens in texts {
            sequence.rewind(0)?;
            let rows = sequence.read(self, tokens, Wanted::Hidden).await?;
            vectors.push(vector(&rows));
            pause().await;
        }
        Ok(vectors)
    }

    /// Returns the tokens of a text that [`embed_tokens`](Self::embed_tokens) reads.
    pub(crate) fn tokens_to_embed(&self, text: &str, options: &EmbedOptions) -> Result<Vec<u32>> {
        let prompted = options.prompt.as_ref();
        let prompted = prompted.map(|prompt| format!("{prompt}{text}"));
        let mut tokens = self.continuation(prompted.as_deref().unwrap_or(text))?;
        if tokens.is_empty() {
            return Err(Error::Empty { op: "embed" });
        }
        let end = self.tokenizer.end();
        if options.truncate {
            let most = self.context_length() - end.iter().len();
            tokens.truncate(most);
        }
        tokens.extend(end);
        self.model.check(0, &tokens)?;
        Ok(tokens)
    }

    /// How the file says that tokens become one vector.
    fn pooling(&self) -> Result<Pooling> {
        let file = &self.model.file;
        let architecture = file.text("general.architecture")?.unwrap_or_default();
        let key = format!("{architecture}.pooling_type");
        let of = |value: Value<'_>| match value.as_u64()? {
            0 | 1 => Some(Pooling::Mean),
            2 => Some(Pooling::Cls),
            3 => Some(Pooling::Last),
            _ => None,
        };
        let requirement =
            "0 (none), 1 (mean), 2 (cls) or 3 (last) for `embed` without the option `pooling`";
        Ok(file.typed(&key, of, requirement)?.unwrap_or(Pooling::Mean))
    }

    /// Blocking version of [`LanguageModel::embed_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn embed(&self, texts: &[impl AsRef<str>], options: EmbedOptions) -> Result<Vec<Vec<f32>>> {
        crate::runtime::block_on(self.embed_async(texts, options))
    }
}

fn pool(rows: &[f32], width: usize, pooling: Pooling) -> Vec<f32> {
    match pooling {
        Pooling::Cls => rows[..width].to_vec(),
        Pooling::Last => rows[rows.len() - width..].to_vec(),
        Pooling::Mean => mean(rows, width),
    }
}

/// Returns the mean of rows.
fn mean(rows: &[f32], width: usize) -> Vec<f32> {
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

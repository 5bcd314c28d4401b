//! Scores of texts for a query, by encoders that read both together.

use super::LanguageModel;
use crate::error::Result;

/// Options for ranking texts.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct RankOptions {
    /// Whether texts that do not fit into the context with the query are cut; otherwise they are an error.
    pub truncate: bool,
}

impl RankOptions {
    /// Returns the options with texts that are cut where they do not fit, or not.
    #[must_use]
    pub fn with_truncate(self, truncate: bool) -> Self {
        Self { truncate }
    }
}

impl LanguageModel {
    /// Returns a score for each text: the higher, the better it answers the query. The model is a reranker, whose file has
    /// the `pooling_type` 4.
    ///
    /// # Errors
    /// `InvalidArgument` for another model, and for a text that the tokenizer cannot split; `LimitExceeded` for a pair that
    /// is longer than the context; `OutOfMemory`; on a GPU `DeviceLost` and `Gpu`.
    pub async fn rank_async(
        &self,
        query: &str,
        texts: &[impl AsRef<str>],
        options: RankOptions,
    ) -> Result<Vec<f32>> {
        let pairs = texts.iter();
        let pairs = pairs.map(|text| self.tokens_to_rank(query, text.as_ref(), &options));
        self.rank_tokens(&pairs.collect::<Result<Vec<_>>>()?).await
    }

    /// Returns the scores of pairs of texts.
    pub(crate) async fn rank_tokens(&self, pairs: &[Vec<u32>]) -> Result<Vec<f32>> {
        self.model.check_ranking()?;
        let scores = self.model.encode(pairs, |rows| self.model.score(rows));
        scores.await?.into_iter().collect()
    }

    /// Returns the tokens of a pair that [`rank_tokens`](Self::rank_tokens) reads.
    pub(crate) fn tokens_to_rank(
        &self,
        query: &str,
        text: &str,
        options: &RankOptions,
    ) -> Result<Vec<u32>> {
        self.model.check_ranking()?;
        let end = self.tokenizer.end();
        let mut tokens = self.continuation(query)?;
        tokens.extend(std::iter::repeat_n(end, self.tokenizer.ends_between()).flatten());
        let mut text = self.tokenizer.encode(text, false)?;
        if options.truncate {
            let taken = tokens.len() + end.iter().len();
            text.truncate(self.context_length().saturating_sub(taken));
        }
        tokens.extend(text.into_iter().chain(end));
        self.model.check(0, &tokens)?;
        Ok(tokens)
    }

    /// Blocking version of [`LanguageModel::rank_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn rank(
        &self,
        query: &str,
        texts: &[impl AsRef<str>],
        options: RankOptions,
    ) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.rank_async(query, texts, options))
    }
}

//! The sizes of an attention, and the positions that its tokens see.

use crate::tensor::CacheType;
use std::ops::Range;

/// The number of tokens from which scores and results are computed by matmuls.
const GEMM_TOKENS: usize = 8;

/// The sizes and options of an attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionShape {
    /// The number of queries of each head.
    pub(crate) tokens: usize,
    /// The position of the first token: a token sees positions up to its own.
    pub(crate) first: usize,
    /// The number of positions if tokens see all of them.
    pub(crate) all: Option<usize>,
    pub(crate) heads: usize,
    /// The heads of keys and values, which divide `heads`.
    pub(crate) kv_heads: usize,
    pub(crate) head_len: usize,
    /// The number of positions that the cache of a head has room for.
    pub(crate) capacity: usize,
    /// The factor of the scores.
    pub(crate) scale: f32,
    /// The number of positions that a token sees, itself included.
    pub(crate) window: Option<usize>,
    /// The bound `c` of the scores, which become `c · tanh(score / c)`.
    pub(crate) soft_cap: Option<f32>,
    /// The type of keys and values, as [`pack_row`](super::pack_row) writes them.
    pub(crate) cache_type: CacheType,
}

impl AttentionShape {
    /// The number of heads that share keys and values.
    pub(super) fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// The length of a token's queries, and of its results.
    pub(super) fn row(&self) -> usize {
        self.heads * self.head_len
    }

    /// The number of 32-bit words of a cached row of keys or values.
    pub(super) fn cached_row(&self) -> usize {
        self.cache_type.words(self.head_len)
    }

    /// The end of the positions that a token sees.
    pub(super) fn end(&self, token: usize) -> usize {
        self.all.unwrap_or(self.first + token + 1)
    }

    /// The end of the positions that any token sees.
    pub(super) fn last(&self) -> usize {
        self.end(self.tokens.saturating_sub(1))
    }

    /// Whether scores and results are computed by matmuls.
    pub(super) fn in_blocks(&self) -> bool {
        self.tokens >= GEMM_TOKENS
    }

    /// The positions that a token of the block sees.
    pub(super) fn visible(&self, token: usize) -> Range<usize> {
        let end = self.end(token);
        end - self.window.unwrap_or(end).clamp(1, end)..end
    }

    pub(super) fn fits(&self, [queries, keys, values, out]: [usize; 4]) -> bool {
        let product = |sizes: &[usize]| sizes.iter().try_fold(1, |a: usize, &b| a.checked_mul(b));
        let rows = product(&[self.tokens, self.heads, self.head_len]);
        let cache = product(&[self.kv_heads, self.capacity, self.cached_row()]);
        let end = self.first.checked_add(self.tokens);
        let end = end.map(|end| self.all.unwrap_or(end));
        rows == Some(queries)
            && queries == out
            && cache.is_some_and(|len| len <= keys && len <= values)
            && end.is_some_and(|end| end <= self.capacity)
            && self.kv_heads > 0
            && self.heads.is_multiple_of(self.kv_heads)
    }
}

//! The operation `attention`, by the kernel that reads keys and values head by head.

use super::attention::{AttentionShape, attention};
use super::threads::Cpu;
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::ops::Attention;
use crate::tensor::CacheType;
use std::borrow::Cow;

/// Runs the operation, whose keys and values have the heads of a position side by side.
///
/// # Errors
/// `OutOfMemory` where there is no memory for scores, and for keys and values by heads.
pub(super) fn attend(
    cpu: Cpu,
    options: &Attention,
    [queries, keys, values]: [&[f32]; 3],
    out: &mut [f32],
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let shape = AttentionShape {
        tokens: options.tokens,
        first: options.causal.unwrap_or(0),
        all: options.causal.is_none().then_some(options.positions),
        heads: options.heads,
        kv_heads: options.kv_heads,
        head_len: options.head_len,
        capacity: options.positions,
        scale: options.scale,
        window: options.window,
        soft_cap: options.soft_cap,
        cache_type: CacheType::F32,
    };
    let keys = by_heads(&shape, keys)?;
    let values = by_heads(&shape, values)?;
    attention(cpu, shape, queries, &keys, &values, out)
}

/// Copies the rows of each head together, unless there is one head.
fn by_heads<'a>(shape: &AttentionShape, rows: &'a [f32]) -> Result<Cow<'a, [f32]>> {
    if shape.kv_heads == 1 {
        return Ok(Cow::Borrowed(rows));
    }
    let (len, stride) = (shape.head_len, shape.capacity * shape.head_len);
    let mut heads = try_zeros(rows.len())?;
    for (head, to) in heads.chunks_exact_mut(stride).enumerate() {
        let from = rows.chunks_exact(shape.kv_heads * len);
        for (to, from) in to.chunks_exact_mut(len).zip(from) {
            to.copy_from_slice(&from[head * len..][..len]);
        }
    }
    Ok(Cow::Owned(heads))
}

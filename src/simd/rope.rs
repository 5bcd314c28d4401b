//! Rotary position embedding.

use super::threads::share_out;
use crate::error::Result;
use crate::ops::Rope;

/// Rotates the heads of each token by the angles of its position.
pub(super) fn rope(pieces: usize, options: &Rope, x: &[f32], out: &mut [f32]) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let (row, head) = (options.heads * options.head_len, options.head_len);
    let frequencies = options.frequencies();
    share_out(pieces, row, out, |at, out| {
        out.copy_from_slice(&x[at..][..out.len()]);
        for (token, row) in out.chunks_exact_mut(row).enumerate() {
            let token = at / row.len() + token;
            let angles: Vec<[f32; 2]> = options.angles(token, &frequencies).collect();
            for head in row.chunks_exact_mut(head) {
                rotate(options.interleaved, &mut head[..options.rotated], &angles);
            }
        }
        Ok(())
    })
}

/// Rotates the pairs of a head's rotated part: neighbours if they are interleaved, else one element of each half.
pub(crate) fn rotate(interleaved: bool, head: &mut [f32], angles: &[[f32; 2]]) {
    if interleaved {
        for (pair, angle) in head.chunks_exact_mut(2).zip(angles) {
            [pair[0], pair[1]] = rotated([pair[0], pair[1]], *angle);
        }
        return;
    }
    let (first, second) = head.split_at_mut(angles.len());
    for ((a, b), angle) in first.iter_mut().zip(second).zip(angles) {
        [*a, *b] = rotated([*a, *b], *angle);
    }
}

#[inline]
fn rotated([a, b]: [f32; 2], [cos, sin]: [f32; 2]) -> [f32; 2] {
    [a * cos - b * sin, a * sin + b * cos]
}

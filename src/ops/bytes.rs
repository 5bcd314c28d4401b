//! Validation of operations on bytes.

use super::shape::{invalid, product};
use crate::error::Result;

/// Checks the distance of the numbers of a word. Returns the number of numbers in all words.
pub(super) fn unpacked_len(stride: usize, words: usize) -> Result<usize> {
    check_stride(stride, words)?;
    product("y", words, 4)
}

/// Checks the distance of the numbers of a word. Returns the number of words that the numbers take.
pub(super) fn packed_len(stride: usize, numbers: usize) -> Result<usize> {
    let words = numbers.div_ceil(4);
    check_stride(stride, words).map(|()| words)
}

/// Checks that the numbers of a word lie side by side or in planes.
fn check_stride(stride: usize, words: usize) -> Result<()> {
    if stride == 1 || stride == words {
        return Ok(());
    }
    Err(invalid("stride", stride, "1 or the number of words"))
}

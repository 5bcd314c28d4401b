//! The largest elements of rows.
//!
//! NaN ranks before numbers, larger numbers before smaller ones, and equal elements as they stand.

use std::cmp::Ordering;

use super::InstructionSet;
use super::functions::Maximum;
use super::reduce::fold;
use super::threads::share_out;
use crate::error::{Error, Result};

/// The number of elements in a block. If the largest is too small, the block is skipped.
const BLOCK: usize = 256;

/// The number of candidates per rank. When this number is reached, all but the best are dropped.
const CANDIDATES: usize = 4;

/// Writes the indices of each row's `k` largest elements.
pub(super) fn top_k_rows(
    isa: InstructionSet,
    pieces: usize,
    x: &[f32],
    [cols, k]: [usize; 2],
    out: &mut [f32],
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    share_out(pieces, k, out, |at, out| {
        let mut best = Best::new(k, cols)?;
        let rows = x[at / k * cols..].chunks(cols);
        for (out, row) in out.chunks_mut(k).zip(rows) {
            best.find(isa, row);
            for (out, candidate) in out.iter_mut().zip(&best.candidates) {
                *out = candidate.index as f32;
            }
        }
        Ok(())
    })
}

#[derive(Clone, Copy)]
struct Candidate {
    value: f32,
    index: u32,
}

impl Candidate {
    fn rank(self, other: Self) -> Ordering {
        let by_value = match (self.value.is_nan(), other.value.is_nan()) {
            (false, false) => other.value.partial_cmp(&self.value),
            (self_nan, other_nan) => Some(other_nan.cmp(&self_nan)),
        };
        let by_value = by_value.unwrap_or(Ordering::Equal);
        by_value.then(self.index.cmp(&other.index))
    }
}

/// Whether an element ranks before the least of the best ones so far. All of these are before it in the row.
pub(super) fn is_above(value: f32, least: Option<f32>) -> bool {
    least.is_none_or(|least| value > least || (value.is_nan() && !least.is_nan()))
}

/// The best candidates of a row.
struct Best {
    k: usize,
    candidates: Vec<Candidate>,
}

impl Best {
    fn new(k: usize, cols: usize) -> Result<Self> {
        let len = k.saturating_mul(CANDIDATES).min(cols);
        let mut candidates = Vec::new();
        let reserved = candidates.try_reserve_exact(len);
        reserved.map_err(|_| Error::OutOfMemory {
            bytes: (len as u64).saturating_mul(size_of::<Candidate>() as u64),
        })?;
        Ok(Self { k, candidates })
    }

    /// Finds the best candidates of a row, the best one first.
    fn find(&mut self, isa: InstructionSet, row: &[f32]) {
        self.candidates.clear();
        let mut least = None;
        for (block, first) in row.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
            if !is_above(fold(isa, Maximum, block), least) {
                continue;
            }
            for (&value, index) in block.iter().zip(first..) {
                if !is_above(value, least) {
                    continue;
                }
                self.candidates.push(Candidate { value, index });
                if self.candidates.len() == self.k * CANDIDATES {
                    least = self.keep_best();
                }
            }
        }
        self.keep_best();
    }

    /// Sorts the candidates, drops all but the `k` best, and returns the least of them.
    fn keep_best(&mut self) -> Option<f32> {
        self.candidates.sort_unstable_by(|a, b| a.rank(*b));
        self.candidates.truncate(self.k);
        self.candidates.last().map(|candidate| candidate.value)
    }
}

//! Work shared among threads, where each thread gets enough of it.
//!
//! How an operation is split never changes its result: every value is computed as it would be
//! by one thread.

#[cfg(relampago_threads)]
use std::mem::MaybeUninit;

use super::InstructionSet;
#[cfg(not(relampago_threads))]
use crate::alloc::try_reserved;
#[cfg(relampago_threads)]
use crate::alloc::try_written;
use crate::error::Result;
use crate::ops::policy::{Policy, work};
use crate::ops::{Op, OpClass};

/// The instruction set and the threads that operations use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpu {
    pub(crate) isa: InstructionSet,
    /// The number of threads that one operation may use.
    pub(crate) threads: usize,
}

/// The least work for a thread. Waking one may take 50 µs, and the blocks of a divided product
/// are packed less well: of 256³ and below two threads made nothing quicker.
const GRAIN: Policy = Policy {
    elementwise: 1 << 17,
    transcendental: 1 << 16,
    reduction: 1 << 18,
    softmax: 1 << 16,
    matmul: 1 << 24,
    convolution: 1 << 22,
    movement: 1 << 17,
};

impl Cpu {
    /// Creates a configuration with all threads of rayon's pool, or at most `limit`.
    pub(crate) fn new(isa: InstructionSet, limit: Option<usize>) -> Self {
        let threads = limit.map_or(threads(), |limit| limit.clamp(1, threads()));
        Self { isa, threads }
    }

    /// Returns the number of pieces into which an operation should be split.
    pub(super) fn pieces(self, op: &Op, inputs: &[&[f32]]) -> usize {
        if !THREADED || self.threads == 1 {
            return 1;
        }
        pieces_among(self.threads, op, inputs.iter().map(|input| input.len()))
    }

    /// Returns the number of pieces into which this much work of a class should be split.
    pub(crate) fn split(self, work: u64, class: OpClass) -> usize {
        if !THREADED || self.threads == 1 {
            return 1;
        }
        split_among(self.threads, work, class)
    }

    /// Returns a copy of values, made by the only thread.
    #[cfg(not(relampago_threads))]
    #[allow(clippy::unused_self)] // The other one has several threads.
    pub(crate) fn copy(self, values: &[f32]) -> Result<Vec<f32>> {
        let mut copy = try_reserved(values.len())?;
        copy.extend_from_slice(values);
        Ok(copy)
    }

    /// Returns a copy of many values, made by several threads. One thread alone does not use the full bandwidth of
    /// memory, and waits for new pages.
    #[cfg(relampago_threads)]
    pub(crate) fn copy(self, values: &[f32]) -> Result<Vec<f32>> {
        let pieces = self.split(values.len() as u64, OpClass::Movement);
        let len = values.len().div_ceil(pieces).max(1);
        let write = |places: &mut [MaybeUninit<f32>]| {
            let parts = places.chunks_mut(len).zip(values.chunks(len));
            share(pieces, parts, |(places, values)| {
                for (place, &value) in places.iter_mut().zip(values) {
                    place.write(value);
                }
                Ok(())
            })
        };
        // SAFETY: there are as many places as values.
        unsafe { try_written(values.len(), write) }
    }
}

/// Returns the number of pieces into which `threads` threads split an operation on inputs of the lengths `lens`.
pub(crate) fn pieces_among(
    threads: usize,
    op: &Op,
    lens: impl Iterator<Item = usize> + Clone,
) -> usize {
    let class = match op {
        Op::Matmul { m, n, .. } => matmul_class(*m, *n),
        _ => op.class(),
    };
    split_among(threads, work(op, lens), class)
}

fn split_among(threads: usize, work: u64, class: OpClass) -> usize {
    let pieces = work / GRAIN.threshold(class);
    pieces.clamp(1, threads as u64) as usize
}

/// Returns the class of a matmul by its bottleneck: with a vector it is memory, as for a sum.
pub(super) fn matmul_class(m: usize, n: usize) -> OpClass {
    if m.min(n) <= 2 {
        OpClass::Reduction
    } else {
        OpClass::Matmul
    }
}

/// Whether there may be more than one thread.
pub(super) const THREADED: bool = cfg!(relampago_threads);

#[cfg(relampago_threads)]
fn threads() -> usize {
    rayon::current_num_threads()
}

#[cfg(not(relampago_threads))]
fn threads() -> usize {
    1
}

/// Calls `f` with every item, each on some thread if there is to be more than one piece.
pub(super) fn share<T: Send>(
    pieces: usize,
    mut items: impl Iterator<Item = T>,
    f: impl Fn(T) -> Result<()> + Sync + Send,
) -> Result<()> {
    #[cfg(relampago_threads)]
    if pieces > 1 {
        use rayon::iter::{IntoParallelIterator, ParallelIterator};
        return items.collect::<Vec<T>>().into_par_iter().try_for_each(f);
    }
    debug_assert!(THREADED || pieces == 1);
    items.try_for_each(f)
}

/// Calls `f` for `pieces` pieces of `out`, each of them whole blocks, with the place where the
/// piece starts.
pub(crate) fn share_out(
    pieces: usize,
    block: usize,
    out: &mut [f32],
    f: impl Fn(usize, &mut [f32]) -> Result<()> + Sync + Send,
) -> Result<()> {
    let len = out.len().div_ceil(pieces).next_multiple_of(block).max(1);
    share(pieces, out.chunks_mut(len).enumerate(), |(piece, out)| {
        f(piece * len, out)
    })
}

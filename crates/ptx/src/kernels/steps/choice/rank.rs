//! The largest elements, in order.

use super::argmax::rank_of;
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::types::PtxType::{B32, F32, S32, U32};
use crate::types::Target;

/// The number of elements that a block sorts.
const CHUNK: u32 = 1024;
const THREADS: u32 = CHUNK / 2;

/// The rank of −∞, and an index after all others.
const LOWEST: u32 = 0x007f_ffff;
const NONE: u32 = 1 << 24;

/// Sorts each chunk of [`RankKernel::CHUNK`] elements, the largest first, NaN before all numbers and the earlier one of
/// equal ones, and writes the first [`RankKernel::RANKED`] of each. A launch on the results ranks the first elements of
/// several chunks, and so on until one chunk is left.
///
/// Parameters: `x` (f32, elements or pairs of an element and its index), `y` (f32, a pair for each that is left: an element,
/// a zero of either sign as +0, and its index; −∞ and 2²⁴ where a chunk has too few), `n` (the elements or pairs
/// of `x`, at most 2²⁴), `is_pairs` (0 or 1) (u32). Both are aligned to 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RankKernel;

impl RankKernel {
    /// The elements of a chunk.
    pub const CHUNK: usize = CHUNK as usize;
    /// The elements of a chunk that are left.
    pub const RANKED: usize = 64;
}

impl Kernel for RankKernel {
    fn name(&self) -> String {
        "rank".to_owned()
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let grid = [
            Extent::Tiles("n", CHUNK),
            Extent::Fixed(1),
            Extent::Fixed(1),
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let [x, y] = ["x", "y"].map(|name| k.pointer(name, F32));
        let [n, is_pairs] = ["n", "is_pairs"].map(|name| k.scalar(name, U32));
        let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        // A rank and an index each.
        let sorted = k.shared("sorted", U32, 2 * CHUNK);
        let is_pairs = k.ne(is_pairs, 0);
        k.wait_for_grid();
        for half in [0, THREADS] {
            let place = k.offset(thread, half);
            let i = k.fma(block, CHUNK, place);
            // What does not exist comes after all elements, by its index.
            let (rank, index) = (k.value(U32, LOWEST), k.value(U32, NONE));
            let exists = k.lt(i, n);
            k.when(exists, |k| {
                k.when_else(
                    is_pairs,
                    |k| {
                        let at = k.at(x, i, 8);
                        let pair = k.ld_vector(Op::LdGlobal, F32, 2, at, 0);
                        let own = rank_of(k, pair[0]);
                        k.assign(rank, own);
                        let own = k.convert(Op::CvtS32F32, S32, &[pair[1].into()]);
                        let own = k.value(U32, own);
                        k.assign(index, own);
                    },
                    |k| {
                        let at = k.at(x, i, 4);
                        let value = k.ld(Op::LdGlobal, F32, at, 0);
                        let own = rank_of(k, value);
                        k.assign(rank, own);
                        k.assign(index, i);
                    },
                );
            });
            let to = k.fma(place, 8, sorted);
            k.st_shared(U32, to, 0, [rank, index].as_slice());
        }
        sort(&mut k, thread, sorted);
        let is_left = k.lt(thread, Self::RANKED as u32);
        k.when(is_left, |k| {
            let from = k.fma(thread, 8, sorted);
            let pair = k.ld_vector(Op::LdShared, U32, 2, from, 0);
            let value = value_of(k, pair[0]);
            let index = k.convert(Op::CvtF32U32, F32, &[pair[1].into()]);
            let place = k.fma(block, Self::RANKED as u32, thread);
            let to = k.at(y, place, 8);
            k.st_global(F32, to, 0, [value, index].as_slice());
        });
        k.finish()
    }
}

/// Sorts pairs by a bitonic network (Batcher, 1968): runs of `size` become ordered, every other one in reverse.
fn sort(k: &mut Builder, thread: Reg, sorted: Reg) {
    let powers = (1..=CHUNK.trailing_zeros()).map(|power| 1u32 << power);
    for size in powers {
        let strides = (0..size.trailing_zeros()).rev().map(|power| 1 << power);
        for stride in strides {
            k.barrier();
            let within = k.and(thread, stride - 1);
            let first = k.sub(thread, within);
            let first = k.fma(first, 2, within);
            let at = k.fma(first, 8, sorted);
            let further = 8 * stride;
            let a = k.ld_vector(Op::LdShared, U32, 2, at, 0);
            let b = k.ld_vector(Op::LdShared, U32, 2, at, further);
            let larger = k.lt(a[0], b[0]);
            let equal = k.eq(a[0], b[0]);
            let earlier = k.lt(b[1], a[1]);
            let earlier = k.and(equal, earlier);
            let is_better = k.or(larger, earlier);
            let direction = k.and(first, size);
            let in_reverse = k.ne(direction, 0);
            let moves = k.xor(is_better, in_reverse);
            k.when(moves, |k| {
                k.st_shared(U32, at, 0, b.as_slice());
                k.st_shared(U32, at, further, a.as_slice());
            });
        }
    }
    k.barrier();
}

/// Returns the number of a rank.
fn value_of(k: &mut Builder, rank: Reg) -> Reg {
    let signed = k.value(S32, rank);
    let sign = k.shr(signed, 31);
    // The bits of numbers that are not negative have the sign bit in their rank, those of negative ones are flipped.
    let flipped = k.not(sign);
    let flipped = k.or(flipped, 0x8000_0000u32);
    k.op(Op::Xor, B32, F32, &[rank.into(), flipped.into()])
}

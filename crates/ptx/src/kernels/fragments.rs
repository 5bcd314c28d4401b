//! Fragments of matrices in the layout of `mma.sync`.

use crate::build::Builder;
use crate::inst::{Op, Operand, Reg};
use crate::types::PtxType::{self, B32, BF16, F32};

/// Loads four 8 × 8 matrices of 16-bit elements with `LdMatrix4` or `LdMatrix4Trans` from
/// `address + offset`.
pub(super) fn load_matrices(k: &mut Builder, op: Op, address: Reg, offset: u32) -> Vec<Reg> {
    let to = k.regs(B32, 4);
    let from = [Operand::At(address, offset as i32)];
    k.emit(op, B32, &[to.as_slice().into()], &from);
    to
}

/// Rounds pairs of f32 to a 16-bit type, packed as in memory and in a left fragment.
pub(super) fn rounded_pairs(k: &mut Builder, ty: PtxType, values: &[Reg]) -> Vec<Reg> {
    let (op, pairs) = if ty == BF16 {
        (Op::CvtBf16x2F32, PtxType::BF16x2)
    } else {
        (Op::CvtF16x2F32, PtxType::F16x2)
    };
    let pair = |pair: &[Reg]| k.convert(op, pairs, &[pair[1].into(), pair[0].into()]);
    values.chunks_exact(2).map(pair).collect()
}

/// Writes each number as a sum of two bf16: the nearest one and the remainder. Together they have 16 significant bits.
/// Returns pairs of both, packed as in memory and in a left fragment. The second part of an infinity is NaN.
pub(super) fn bf16_parts(k: &mut Builder, numbers: &[Reg]) -> [Vec<Reg>; 2] {
    let uppers = rounded_pairs(k, BF16, numbers);
    let rest = |(i, &number): (usize, &Reg)| {
        let pair = k.op(Op::Mov, B32, B32, &[uppers[i / 2].into()]);
        // A bf16 is the upper half of an f32.
        let upper = if i % 2 == 0 {
            k.shl(pair, 16)
        } else {
            k.and(pair, 0xffff_0000u32)
        };
        let upper = k.op(Op::Mov, B32, F32, &[upper.into()]);
        k.sub(number, upper)
    };
    let rests: Vec<Reg> = numbers.iter().enumerate().map(rest).collect();
    let lowers = rounded_pairs(k, BF16, &rests);
    [uppers, lowers]
}

/// Transposes four words of each of four neighbouring lanes: lane `t` gets word `t` of each lane,
/// in the order of the lanes. Pairs of lanes exchange words, then pairs of pairs.
pub(super) fn transpose_words(k: &mut Builder, lane: Reg, mut words: [Reg; 4]) -> [Reg; 4] {
    for (bit, pairs) in [(1, [[0, 1], [2, 3]]), (2, [[0, 2], [1, 3]])] {
        let own = k.and(lane, bit);
        let upper = k.ne(own, 0);
        for [low, high] in pairs {
            let sent = k.select(upper, words[low], words[high]);
            let got = k.shuffle_xor(sent, bit);
            words[low] = k.select(upper, got, words[low]);
            words[high] = k.select(upper, words[high], got);
        }
    }
    words
}

/// Computes `sums += a · b` for 16 × 8 accumulators; f32 is multiplied as tf32.
pub(super) fn multiply(k: &mut Builder, ty: PtxType, sums: &[Reg], a: &[Reg], b: &[Reg]) {
    let op = match ty {
        BF16 => Op::MmaBf16,
        F32 => Op::MmaTf32,
        _ => Op::MmaF16,
    };
    k.emit(op, B32, &[sums.into()], &[a.into(), b.into(), sums.into()]);
}

/// Adds the products of both parts of a left fragment and of right ones, except the product of the lower parts. The
/// parts are those of [`bf16_parts`]; a right fragment has two registers.
pub(super) fn multiply_parts(
    k: &mut Builder,
    sums: &[Vec<Reg>],
    left: &[Vec<Reg>; 2],
    right: &[Vec<Reg>; 2],
) {
    for [of_left, of_right] in [[0, 0], [0, 1], [1, 0]] {
        let right = right[of_right].chunks_exact(2);
        for (sums, right) in sums.iter().zip(right) {
            multiply(k, BF16, sums, &left[of_left], right);
        }
    }
}

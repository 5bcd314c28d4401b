//! Fragments of matrices in the layout of `mma.sync`.

use crate::ptx::build::Builder;
use crate::ptx::inst::{Op, Operand, Reg};
use crate::ptx::types::PtxType::{self, B32, BF16, F32};

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

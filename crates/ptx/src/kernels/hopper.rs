//! Helpers for Hopper kernels: rings of stages with barriers, and descriptors of shared memory.

use crate::build::Builder;
use crate::inst::{Op, Operand, Reg};
use crate::types::PtxType::{B32, B64, Pred, U32, U64};

/// The number of threads of a warp group.
pub(super) const GROUP: u32 = 128;
/// The number of columns of a box of 16-bit elements: 128 bytes, the width of the swizzle.
pub(super) const BOX_COLS: u32 = 64;
/// The period of the swizzle in bytes: eight rows of a box.
pub(super) const SWIZZLE: u32 = 1024;

/// A position in a ring of stages: the stage, and the parity of the round.
pub(super) struct Place {
    pub(super) stage: Reg,
    pub(super) parity: Reg,
}

impl Place {
    pub(super) fn first(k: &mut Builder) -> Self {
        Place {
            stage: k.value(U32, 0),
            parity: k.value(U32, 0),
        }
    }

    pub(super) fn advance(&self, k: &mut Builder, stages: u32) {
        k.add_assign(self.stage, 1);
        let over = k.eq(self.stage, stages);
        k.guarded(over, true, |k| {
            k.assign(self.stage, 0);
            let other = [self.parity.into(), 1.into()];
            k.emit(Op::Xor, B32, &[self.parity.into()], &other);
        });
    }
}

/// Waits until the phase with this parity of the stage's barrier completes.
pub(super) fn wait(k: &mut Builder, barriers: Reg, place: &Place, parity: Reg) {
    let barrier = k.fma(place.stage, 8, barriers);
    wait_at(k, barrier, parity);
}

/// Waits until the phase with this parity of a barrier completes.
pub(super) fn wait_at(k: &mut Builder, barrier: Reg, parity: Reg) {
    k.repeat_while(|k| {
        let from = [Operand::At(barrier, 0), parity.into()];
        let over = k.op(Op::MbarrierTryWait, B32, Pred, &from);
        k.not(over)
    });
}

/// Builds the `wgmma` descriptor of a matrix in shared memory from its address and the distances
/// `leading` and `stride`, with the 128-byte swizzle.
pub(super) fn descriptor(k: &mut Builder, address: Reg, leading: u32, stride: u32) -> Reg {
    let units = k.shr(address, 4);
    let low = k.widen(units);
    let high = u64::from(leading / 16) << 16 | u64::from(stride / 16) << 32 | 1 << 62;
    k.op(Op::Or, B64, U64, &[low.into(), (high as i64).into()])
}

//! The rows of the instruction table.

use super::kind::{Constants, Kind};
use super::row::Row;
use crate::types::{PtxType, Target, Version};

macro_rules! instructions {
    ($($(#[$doc:meta])* $op:ident = $text:literal, $types:expr,
       [$($to:expr),*] <- [$($from:expr),*], $since:ident;)*) => {
        /// An instruction of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Op {
            $($(#[$doc])* #[doc = concat!("`", $text, "`")] $op,)*
        }

        static TABLE: &[Row] = &[
            $(Row::new($text, $types, [&[$($to),*], &[$($from),*]], $since),)*
        ];

        impl Op {
            /// Every row of the table.
            pub const ALL: &[Op] = &[$(Op::$op,)*];
        }
    };
}

impl Op {
    pub(crate) fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

/// The set of targets and the first version of PTX that support an instruction.
pub(super) type Since = (u32, Version);
const VOLTA: Since = (from(70), Version(6, 0));
const VOLTA_ALIGNED: Since = (from(70), Version(6, 3));
const TURING: Since = (from(75), Version(6, 5));
const AMPERE: Since = (from(80), Version(7, 0));
const AMPERE_HINTS: Since = (from(80), Version(7, 4));
const HOPPER: Since = (from(90), Version(8, 0));
/// Instructions that only one architecture supports.
const HOPPER_ONLY: Since = (1 << Target::Sm90a as u32, Version(8, 0));

/// Returns the set of targets with at least this compute capability.
const fn from(capability: u16) -> u32 {
    let (mut targets, mut i) = (0, 0);
    while i < Target::ALL.len() {
        if Target::ALL[i].capability() >= capability {
            targets |= 1 << Target::ALL[i] as u32;
        }
        i += 1;
    }
    targets
}

pub(super) type Types = &'static [PtxType];
const NONE: Types = &[PtxType::B32];
const INTEGERS: Types = {
    use PtxType::{S16, S32, S64, U16, U32, U64};
    &[U16, S16, U32, S32, U64, S64]
};
const SHORT: Types = &[PtxType::U16, PtxType::S16, PtxType::U32, PtxType::S32];
const REALS: Types = &[PtxType::F32, PtxType::F64];
const F32: Types = &[PtxType::F32];
const HALVES: Types = &[PtxType::F16, PtxType::F16x2];
const SHIFTED: Types = INTEGERS;
const ORDERED: Types = {
    use PtxType::{F32, F64, S16, S32, S64, U16, U32, U64};
    &[U16, S16, U32, S32, U64, S64, F32, F64]
};
const SIGNEDS: Types = {
    use PtxType::{F32, F64, S16, S32, S64};
    &[S16, S32, S64, F32, F64]
};
const BITS: Types = &[PtxType::B16, PtxType::B32, PtxType::B64, PtxType::Pred];
const UNTYPED: Types = &[PtxType::B16, PtxType::B32, PtxType::B64];
const CHOSEN: Types = {
    use PtxType::{B16, B32, B64, F32, F64, S16, S32, S64, U16, U32, U64};
    &[B16, B32, B64, U16, S16, U32, S32, U64, S64, F32, F64]
};
const LOADED: Types = {
    use PtxType::{B16, B32, B64, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
    &[
        U8, S8, B16, B32, B64, U16, S16, U32, S32, U64, S64, F32, F64,
    ]
};
const U32S: Types = &[PtxType::U32];
const U64S: Types = &[PtxType::U64];
const B32S: Types = &[PtxType::B32];
const PREDS: Types = &[PtxType::Pred];
const F16S: Types = &[PtxType::F16];

use Kind::{Factor, Global, Group, Int, Part, Same, Shared, Sums, Vector, Wide, Word};
const PRED: Kind = Kind::Is(PtxType::Pred);
const WORD: Kind = Kind::Is(PtxType::U32);
const LONG: Kind = Kind::Is(PtxType::U64);
const SIGNED: Kind = Kind::Is(PtxType::S32);
const REAL: Kind = Kind::Is(PtxType::F32);

/// A mask of lanes, or the bound of a shuffle.
const LANES: Kind = Int(Constants::new(i32::MIN, u32::MAX, 1));
/// The number of groups that may still be in progress.
const GROUPS: Kind = Int(Constants::new(0, i32::MAX as u32, 1));
/// The numbers of a block's barriers.
const BARRIERS: Constants = Constants::new(0, 15, 1);
const THREADS: Kind = Int(Constants::new(32, 1024, 32));
/// The position and the length of a bit field.
const BYTE: Kind = Word(Constants::new(0, 255, 1));
const PARITY: Kind = Word(Constants::new(0, 1, 1));
/// The sign of an input matrix.
const SIGN: Kind = Int(Constants::new(-1, 1, 2));
const TURNED: Kind = Int(Constants::new(0, 1, 1));
const REGISTERS: Kind = Int(Constants::new(24, 256, 8));

instructions! {
    // Integers.
    Add = "add.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    Sub = "sub.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    MulLo = "mul.lo.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    MulHi = "mul.hi.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    MulWide = "mul.wide.{}", SHORT, [Wide] <- [Same, Same], VOLTA;
    MadLo = "mad.lo.{}", INTEGERS, [Same] <- [Same, Same, Same], VOLTA;
    MadWide = "mad.wide.{}", SHORT, [Wide] <- [Same, Same, Wide], VOLTA;
    Div = "div.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    Rem = "rem.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    And = "and.{}", BITS, [Same] <- [Same, Same], VOLTA;
    Or = "or.{}", BITS, [Same] <- [Same, Same], VOLTA;
    Xor = "xor.{}", BITS, [Same] <- [Same, Same], VOLTA;
    Not = "not.{}", BITS, [Same] <- [Same], VOLTA;
    Shl = "shl.{}", UNTYPED, [Same] <- [Same, WORD], VOLTA;
    Shr = "shr.{}", SHIFTED, [Same] <- [Same, WORD], VOLTA;
    /// Extracts `length` bits from bit `position` on.
    Bfe = "bfe.{}", U32S, [Same] <- [Same, BYTE, BYTE], VOLTA;
    /// Selects four bytes of two words.
    Prmt = "prmt.{}", B32S, [Same] <- [Same, Same, Same], VOLTA;
    /// Adds the dot product of four signed bytes with four signed bytes to a word.
    Dp4a = "dp4a.s32.s32", NONE, [SIGNED] <- [SIGNED, SIGNED, SIGNED], VOLTA;

    // Floating-point numbers. Rounding is always stated, so that ptxas contracts nothing and a
    // GPU computes what the interpreter computes.
    AddRn = "add.rn.{}", REALS, [Same] <- [Same, Same], VOLTA;
    SubRn = "sub.rn.{}", REALS, [Same] <- [Same, Same], VOLTA;
    MulRn = "mul.rn.{}", REALS, [Same] <- [Same, Same], VOLTA;
    Fma = "fma.rn.{}", REALS, [Same] <- [Same, Same, Same], VOLTA;
    FmaHalf = "fma.rn.{}", HALVES, [Same] <- [Same, Same, Same], VOLTA;
    DivRn = "div.rn.{}", REALS, [Same] <- [Same, Same], VOLTA;
    SqrtRn = "sqrt.rn.{}", REALS, [Same] <- [Same], VOLTA;
    /// Computes 1/x, rounded to nearest.
    RcpRn = "rcp.rn.{}", REALS, [Same] <- [Same], VOLTA;
    /// Computes 1/√x with a relative error below 2⁻²².
    Rsqrt = "rsqrt.approx.{}", F32, [Same] <- [Same], VOLTA;
    /// Computes 2ˣ with a relative error below 2⁻²²; −∞ gives 0.
    Ex2 = "ex2.approx.ftz.{}", F32, [Same] <- [Same], VOLTA;
    /// Computes log₂ x with an absolute error below 2⁻²² near 1, and a relative error below 2⁻²²
    /// elsewhere.
    Lg2 = "lg2.approx.{}", F32, [Same] <- [Same], VOLTA;
    Min = "min.{}", ORDERED, [Same] <- [Same, Same], VOLTA;
    Max = "max.{}", ORDERED, [Same] <- [Same, Same], VOLTA;
    Neg = "neg.{}", SIGNEDS, [Same] <- [Same], VOLTA;
    Abs = "abs.{}", SIGNEDS, [Same] <- [Same], VOLTA;

    // Comparisons. Floating-point comparisons except `neu` are false if either operand is NaN.
    SetEq = "setp.eq.{}", ORDERED, [PRED] <- [Same, Same], VOLTA;
    SetNe = "setp.ne.{}", INTEGERS, [PRED] <- [Same, Same], VOLTA;
    SetNeu = "setp.neu.{}", REALS, [PRED] <- [Same, Same], VOLTA;
    SetLt = "setp.lt.{}", ORDERED, [PRED] <- [Same, Same], VOLTA;
    SetLe = "setp.le.{}", ORDERED, [PRED] <- [Same, Same], VOLTA;
    SetGt = "setp.gt.{}", ORDERED, [PRED] <- [Same, Same], VOLTA;
    SetGe = "setp.ge.{}", ORDERED, [PRED] <- [Same, Same], VOLTA;
    /// Selects the first operand if the predicate is true, and the second otherwise.
    Selp = "selp.{}", CHOSEN, [Same] <- [Same, Same, PRED], VOLTA;

    // Moves and conversions.
    Mov = "mov.{}", CHOSEN, [Same] <- [Same], VOLTA;
    MovSpecial = "mov.{}", U32S, [Same] <- [Kind::Special], VOLTA;
    MovShared = "mov.{}", U32S, [Same] <- [Kind::SharedName], VOLTA;
    /// Takes the address of a parameter.
    MovParam = "mov.{}", &[PtxType::B64], [LONG] <- [Kind::Param], HOPPER;
    /// Packs two 16-bit registers into a word, the first into the low half.
    Pack = "mov.{}", B32S, [Same] <- [Group(2, PtxType::B16)], VOLTA;
    /// Unpacks a word into two 16-bit registers, the low half first.
    Unpack = "mov.{}", B32S, [Group(2, PtxType::B16)] <- [Same], VOLTA;
    /// Converts a generic address to an address in global memory.
    CvtaGlobal = "cvta.to.global.{}", U64S, [Same] <- [Same], VOLTA;
    /// Converts the address of a parameter to a generic address.
    CvtaParam = "cvta.param.{}", U64S, [Same] <- [Same], HOPPER;
    CvtU64U32 = "cvt.u64.u32", NONE, [LONG] <- [WORD], VOLTA;
    CvtU32U64 = "cvt.u32.u64", NONE, [WORD] <- [LONG], VOLTA;
    CvtU32U16 = "cvt.u32.u16", NONE, [WORD] <- [Kind::Is(PtxType::U16)], VOLTA;
    CvtU16U32 = "cvt.u16.u32", NONE, [Kind::Is(PtxType::U16)] <- [WORD], VOLTA;
    CvtF32U32 = "cvt.rn.f32.u32", NONE, [REAL] <- [WORD], VOLTA;
    CvtF32S32 = "cvt.rn.f32.s32", NONE, [REAL] <- [SIGNED], VOLTA;
    /// Rounds to the nearest integer, ties to even.
    CvtS32F32 = "cvt.rni.s32.f32", NONE, [SIGNED] <- [REAL], VOLTA;
    CvtF32F16 = "cvt.f32.f16", NONE, [REAL] <- [Kind::Is(PtxType::F16)], VOLTA;
    CvtF16F32 = "cvt.rn.f16.f32", NONE, [Kind::Is(PtxType::F16)] <- [REAL], VOLTA;
    CvtBf16F32 = "cvt.rn.bf16.f32", NONE, [Kind::Is(PtxType::BF16)] <- [REAL], AMPERE;
    /// Rounds to nearest, ties away from zero.
    CvtTf32F32 = "cvt.rna.tf32.f32", NONE, [Kind::Is(PtxType::TF32)] <- [REAL], AMPERE;
    /// Converts two numbers, the first into the upper half.
    CvtF16x2F32 = "cvt.rn.f16x2.f32", NONE, [Kind::Is(PtxType::F16x2)] <- [REAL, REAL], AMPERE;
    /// Converts two numbers, the first into the upper half.
    CvtBf16x2F32 = "cvt.rn.bf16x2.f32", NONE, [Kind::Is(PtxType::BF16x2)] <- [REAL, REAL], AMPERE;

    // Memory.
    LdParam = "ld.param.{}", LOADED, [Same] <- [Kind::Param], VOLTA;
    LdGlobal = "ld.global{v}.{}", LOADED, [Vector] <- [Global], VOLTA;
    /// Loads from memory that nothing writes while the kernel runs.
    LdGlobalNc = "ld.global.nc{v}.{}", LOADED, [Vector] <- [Global], VOLTA;
    StGlobal = "st.global{v}.{}", LOADED, [] <- [Global, Vector], VOLTA;
    LdShared = "ld.shared{v}.{}", LOADED, [Vector] <- [Shared], VOLTA;
    StShared = "st.shared{v}.{}", LOADED, [] <- [Shared, Vector], VOLTA;
    /// Adds to memory atomically, without a result.
    RedAdd = "red.global.add.{}", &[PtxType::U32, PtxType::F32], [] <- [Global, Same], VOLTA;
    /// Copies 16 bytes. The last operand is the number of bytes that come from memory; the rest are
    /// zeros.
    CpAsync16 = "cp.async.cg.shared.global", NONE, [] <- [Shared, Global, Int(Constants::new(16, 16, 1)), Part], AMPERE;
    /// Copies 16 bytes like `CpAsync16`, and prefetches the surrounding 128 bytes to the L2 cache.
    CpAsync16Near = "cp.async.cg.shared.global.L2::128B", NONE, [] <- [Shared, Global, Int(Constants::new(16, 16, 1)), Part], AMPERE_HINTS;
    /// Copies 4 or 8 bytes. The last operand is the number of bytes that come from memory; the rest
    /// are zeros.
    CpAsync4 = "cp.async.ca.shared.global", NONE, [] <- [Shared, Global, Int(Constants::new(4, 8, 4)), Part], AMPERE;
    CpAsyncCommit = "cp.async.commit_group", NONE, [] <- [], AMPERE;
    /// Waits until at most this number of groups are in progress.
    CpAsyncWait = "cp.async.wait_group", NONE, [] <- [GROUPS], AMPERE;

    // Synchronisation of threads.
    /// Synchronises all threads of the block, and makes their writes visible to each other.
    BarSync = "bar.sync", NONE, [] <- [Int(BARRIERS)], VOLTA;
    /// Synchronises a number of threads at a numbered barrier.
    NamedBarrier = "barrier.sync.aligned", NONE, [] <- [Word(BARRIERS), THREADS], VOLTA;
    BarWarpSync = "bar.warp.sync", NONE, [] <- [LANES], VOLTA;
    /// Returns the value of the lane whose index is the XOR of this lane's index and a mask.
    ShflBfly = "shfl.sync.bfly.{}", B32S, [Kind::Same] <- [Same, WORD, LANES, LANES], VOLTA;
    /// Returns the value of the lane with a higher index.
    ShflDown = "shfl.sync.down.{}", B32S, [Kind::Same] <- [Same, WORD, LANES, LANES], VOLTA;
    /// Returns the value of the lane with a given index.
    ShflIdx = "shfl.sync.idx.{}", B32S, [Kind::Same] <- [Same, WORD, LANES, LANES], VOLTA;
    VoteAny = "vote.sync.any.{}", PREDS, [Same] <- [Same, LANES], VOLTA;
    VoteAll = "vote.sync.all.{}", PREDS, [Same] <- [Same, LANES], VOLTA;

    // Blocks of a cluster, which can access each other's shared memory.
    /// Arrives at the cluster's barrier. Earlier writes become visible to threads that wait.
    ClusterArrive = "barrier.cluster.arrive.release.aligned", NONE, [] <- [], HOPPER;
    /// Waits until all threads of the cluster have arrived.
    ClusterWait = "barrier.cluster.wait.acquire.aligned", NONE, [] <- [], HOPPER;
    /// Maps a shared address of this block to the block with a given rank, for `LdCluster` and
    /// `StCluster`.
    Mapa = "mapa.shared::cluster.{}", U32S, [Same] <- [Same, WORD], HOPPER;
    LdCluster = "ld.shared::cluster{v}.{}", LOADED, [Vector] <- [Shared], HOPPER;
    StCluster = "st.shared::cluster{v}.{}", LOADED, [] <- [Shared, Vector], HOPPER;

    // Matrix instructions of one warp.
    /// Loads four 8×8 matrices of 16-bit elements; lane `8i + j` passes the address of row `j` of
    /// matrix `i`.
    LdMatrix4 = "ldmatrix.sync.aligned.m8n8.x4.shared.b16", NONE, [Group(4, PtxType::B32)] <- [Shared], TURING;
    /// Loads four 8×8 matrices of 16-bit elements, each transposed.
    LdMatrix4Trans = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", NONE, [Group(4, PtxType::B32)] <- [Shared], TURING;
    MmaF16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", NONE,
        [Group(4, PtxType::F32)] <- [Factor(4), Factor(2), Group(4, PtxType::F32)], AMPERE;
    MmaBf16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", NONE,
        [Group(4, PtxType::F32)] <- [Factor(4), Factor(2), Group(4, PtxType::F32)], AMPERE;
    MmaTf32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", NONE,
        [Group(4, PtxType::F32)] <- [Factor(4), Factor(2), Group(4, PtxType::F32)], AMPERE;
    /// Multiplies signed bytes with exact integer accumulators.
    MmaS8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", NONE,
        [Group(4, PtxType::S32)] <- [Factor(4), Factor(2), Group(4, PtxType::S32)], AMPERE;
    MmaS8Half = "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", NONE,
        [Group(4, PtxType::S32)] <- [Factor(2), Factor(1), Group(4, PtxType::S32)], AMPERE;
    WmmaLoadA = "wmma.load.a.sync.aligned.row.m16n16k16.shared.{}", F16S,
        [Factor(8)] <- [Shared, WORD], VOLTA_ALIGNED;
    WmmaLoadB = "wmma.load.b.sync.aligned.row.m16n16k16.shared.{}", F16S,
        [Factor(8)] <- [Shared, WORD], VOLTA_ALIGNED;
    WmmaMma = "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32", NONE,
        [Group(8, PtxType::F32)] <- [Factor(8), Factor(8), Group(8, PtxType::F32)], VOLTA_ALIGNED;
    WmmaStore = "wmma.store.d.sync.aligned.row.m16n16k16.shared.{}", F32,
        [] <- [Shared, Group(8, PtxType::F32), WORD], VOLTA_ALIGNED;

    // Asynchronous barriers in shared memory.
    /// Initialises a barrier with the number of arrivals of a phase.
    MbarrierInit = "mbarrier.init.shared::cta.b64", NONE, [] <- [Shared, WORD], HOPPER;
    MbarrierArrive = "mbarrier.arrive.shared::cta.b64 _,", NONE, [] <- [Shared], HOPPER;
    /// Arrives, and adds to the number of bytes that asynchronous copies transfer in this phase.
    MbarrierExpect = "mbarrier.arrive.expect_tx.shared::cta.b64 _,", NONE, [] <- [Shared, WORD], HOPPER;
    /// Tests whether the phase with this parity has completed; may wait a while for it.
    MbarrierTryWait = "mbarrier.try_wait.parity.shared::cta.b64", NONE, [PRED] <- [Shared, PARITY], HOPPER;
    /// Makes initialised barriers visible to asynchronous copies and to the cluster.
    FenceMbarrierInit = "fence.mbarrier_init.release.cluster", NONE, [] <- [], HOPPER;
    /// Makes earlier writes to shared memory visible to asynchronous copies and `wgmma`.
    FenceProxyAsync = "fence.proxy.async.shared::cta", NONE, [] <- [], HOPPER;

    // The tensor memory accelerator, which copies boxes of tensors between global and shared
    // memory.
    PrefetchTensorMap = "prefetch.tensormap", NONE, [] <- [Kind::Global], HOPPER;
    TmaLoad = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes", NONE,
        [] <- [Shared, Kind::Box, Shared], HOPPER;
    /// Loads a box of one of several matrices.
    TmaLoad3 = "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes", NONE,
        [] <- [Shared, Kind::Box, Shared], HOPPER;
    TmaStore = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", NONE,
        [] <- [Kind::Box, Shared], HOPPER;
    BulkCommit = "cp.async.bulk.commit_group", NONE, [] <- [], HOPPER;
    /// Waits until at most this number of groups of stores still read shared memory.
    BulkWaitRead = "cp.async.bulk.wait_group.read", NONE, [] <- [GROUPS], HOPPER;

    // Asynchronous matrix instructions of four warps.
    WgmmaFence = "wgmma.fence.sync.aligned", NONE, [] <- [], HOPPER_ONLY;
    WgmmaCommit = "wgmma.commit_group.sync.aligned", NONE, [] <- [], HOPPER_ONLY;
    /// Waits until at most this number of groups are in progress.
    WgmmaWait = "wgmma.wait_group.sync.aligned", NONE, [] <- [GROUPS], HOPPER_ONLY;
    /// Adds A·B of two descriptors to the accumulators. The other operands are: whether to add, the
    /// signs of A and B, and whether each is stored transposed.
    WgmmaBf16 = "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16", NONE,
        [Sums(PtxType::F32)] <- [LONG, LONG, PRED, SIGN, SIGN, TURNED, TURNED], HOPPER_ONLY;
    /// Adds A·B with A in registers, in the layout of `mma.sync`. The other operands are: whether
    /// to add, the signs, and whether B is stored transposed.
    WgmmaBf16Regs = "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16", NONE,
        [Sums(PtxType::F32)] <- [Factor(4), LONG, PRED, SIGN, SIGN, TURNED], HOPPER_ONLY;
    WgmmaF16Regs = "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16", NONE,
        [Sums(PtxType::F32)] <- [Factor(4), LONG, PRED, SIGN, SIGN, TURNED], HOPPER_ONLY;
    /// Adds A·B of f32 without its last 13 bits, with A in registers and B contiguous along `k`.
    WgmmaTf32Regs = "wgmma.mma_async.sync.aligned.m64n{n}k8.f32.tf32.tf32", NONE,
        [Sums(PtxType::F32)] <- [Factor(4), LONG, PRED, SIGN, SIGN], HOPPER_ONLY;
    WgmmaF16 = "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16", NONE,
        [Sums(PtxType::F32)] <- [LONG, LONG, PRED, SIGN, SIGN, TURNED, TURNED], HOPPER_ONLY;
    /// Raises the number of registers of this warp, from the registers that other warps released.
    SetMaxRegInc = "setmaxnreg.inc.sync.aligned.u32", NONE, [] <- [REGISTERS], HOPPER_ONLY;
    /// Lowers the number of registers of this warp.
    SetMaxRegDec = "setmaxnreg.dec.sync.aligned.u32", NONE, [] <- [REGISTERS], HOPPER_ONLY;

    /// Waits until earlier kernels have finished and their results are visible, if this one was
    /// launched to overlap with them.
    GridWait = "griddepcontrol.wait", NONE, [] <- [], HOPPER;
    /// Allows the next kernel to begin, once all blocks have executed this.
    GridLaunchNext = "griddepcontrol.launch_dependents", NONE, [] <- [], HOPPER;

    /// Ends the thread.
    Ret = "ret", NONE, [] <- [], VOLTA;
}

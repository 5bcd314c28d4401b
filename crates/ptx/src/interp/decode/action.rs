//! The actions that instructions decode to.

use crate::interp::alu::Alu;
use crate::types::PtxType;

/// The source of a value.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Src {
    Reg(usize),
    Imm(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Space {
    Global,
    Shared,
    /// The shared memory of any block of the cluster.
    Cluster,
}

/// An address: a register and an offset.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct At(pub(in super::super) usize, pub(in super::super) i64);

/// The action of an instruction.
#[derive(Clone, Debug)]
pub(in super::super) enum Act {
    Alu {
        op: Alu,
        ty: PtxType,
        to: usize,
        from: [Src; 3],
    },
    Special {
        to: usize,
        name: &'static str,
    },
    Pack {
        to: usize,
        from: [usize; 2],
    },
    Unpack {
        to: [usize; 2],
        from: Src,
    },
    LoadParam {
        to: usize,
        ty: PtxType,
        offset: usize,
    },
    ParamAddress {
        to: usize,
        offset: usize,
    },
    Load {
        space: Space,
        ty: PtxType,
        constant: bool,
        to: Vec<usize>,
        at: At,
    },
    Store {
        space: Space,
        ty: PtxType,
        from: Vec<Src>,
        at: At,
    },
    RedAdd {
        ty: PtxType,
        at: At,
        from: Src,
    },
    CopyAsync {
        to: At,
        from: At,
        bytes: usize,
        given: Src,
    },
    CopyCommit,
    CopyWait(usize),
    Branch(usize),
    Return,
    /// A barrier for all threads of the block, or for `threads` of them.
    Barrier {
        id: Src,
        threads: Option<u32>,
    },
    ClusterWait,
    /// The mapping of a shared address of this block to the block with a rank.
    Mapa {
        to: usize,
        from: Src,
        rank: Src,
    },
    Warp(Warp),
    Mbarrier(Mbarrier),
    Tma(Tma),
    /// Makes this thread's writes to shared memory visible to asynchronous copies.
    ProxyFence,
    /// An action of four warps.
    Group(Group),
    Nothing,
}

/// An action that a warp executes together.
#[derive(Clone, Debug)]
pub(in super::super) enum Warp {
    Sync,
    /// An arrival at the cluster's barrier.
    Arrive,
    Shuffle {
        mode: Shuffle,
        to: usize,
        from: Src,
        lane: Src,
    },
    Vote {
        all: bool,
        to: usize,
        from: Src,
    },
    LoadMatrix {
        transposed: bool,
        to: Vec<usize>,
        at: At,
    },
    Mma {
        ty: PtxType,
        sums: Vec<usize>,
        a: Vec<usize>,
        b: Vec<usize>,
        c: Vec<usize>,
    },
    WmmaLoad {
        to: Vec<usize>,
        at: At,
        stride: Src,
    },
    WmmaMma {
        sums: Vec<usize>,
        a: Vec<usize>,
        b: Vec<usize>,
        c: Vec<usize>,
    },
    WmmaStore {
        from: Vec<usize>,
        at: At,
        stride: Src,
    },
}

#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Shuffle {
    Xor,
    Down,
    Index,
}

#[derive(Clone, Debug)]
pub(in super::super) enum Mbarrier {
    Init { at: At, count: Src },
    Arrive { at: At },
    Expect { at: At, bytes: Src },
    TryWait { to: usize, at: At, parity: Src },
}

#[derive(Clone, Debug)]
pub(in super::super) enum Tma {
    /// A load of a box. The coordinates are column, row and, if there are several matrices, the
    /// matrix.
    Load {
        to: At,
        map: usize,
        at: Vec<usize>,
        barrier: At,
    },
    Store {
        map: usize,
        at: Vec<usize>,
        from: At,
    },
    Commit,
    WaitRead(usize),
}

#[derive(Clone, Debug)]
pub(in super::super) enum Group {
    Fence,
    Commit,
    Wait(usize),
    Mma {
        ty: PtxType,
        sums: Vec<usize>,
        a: Left,
        b: Src,
        add: usize,
        transpose_b: bool,
    },
}

/// The source of the left matrix of a matmul.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Left {
    Descriptor(Src),
    /// Registers of each lane, in the layout of `mma.sync`.
    Regs([usize; 4]),
}

/// An action, its guard and its line.
#[derive(Clone, Debug)]
pub(in super::super) struct Step {
    pub(in super::super) line: usize,
    pub(in super::super) guard: Option<(usize, bool)>,
    pub(in super::super) act: Act,
}

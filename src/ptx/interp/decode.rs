//! Lines to actions: what an opcode means, decided once and not at each step.

use super::alu::{Alu, Compare};
use super::parse::{Arg, Line};
use crate::ptx::error::{Error, Result};
use crate::ptx::types::PtxType;

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Src {
    Reg(usize),
    Imm(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Space {
    Global,
    Shared,
    /// Of any block of the cluster.
    Cluster,
}

/// An address: a register and an offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct At(pub(super) usize, pub(super) i64);

/// What an instruction does.
#[derive(Clone, Debug)]
pub(super) enum Act {
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
    /// All threads of the block, or so many of them.
    Barrier {
        id: Src,
        threads: Option<u32>,
    },
    ClusterWait,
    /// A shared address of this block, in the block of a rank.
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
    /// Four warps together.
    Group(Group),
    Nothing,
}

/// What a warp does together.
#[derive(Clone, Debug)]
pub(super) enum Warp {
    Sync,
    /// Comes to the cluster's barrier.
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
pub(super) enum Shuffle {
    Xor,
    Down,
    Index,
}

#[derive(Clone, Debug)]
pub(super) enum Mbarrier {
    Init { at: At, count: Src },
    Arrive { at: At },
    Expect { at: At, bytes: Src },
    TryWait { to: usize, at: At, parity: Src },
}

#[derive(Clone, Debug)]
pub(super) enum Tma {
    /// Coordinates are column, row and, if there are several matrices, which of them.
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
pub(super) enum Group {
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

/// Where a product's left matrix comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Left {
    Descriptor(Src),
    /// Registers of each lane, as `mma.sync` has them.
    Regs([usize; 4]),
}

/// An action, its guard and its line.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) guard: Option<(usize, bool)>,
    pub(super) act: Act,
}

pub(super) fn step(line: &Line) -> Result<Step> {
    let act = Decoder { line }.act().ok_or_else(|| Error::Parse {
        line: line.number,
        message: format!(
            "the interpreter does not know `{}` with these operands",
            line.opcode
        ),
    })?;
    Ok(Step {
        line: line.number,
        guard: line.guard,
        act,
    })
}

fn type_named(name: &str) -> Option<PtxType> {
    use PtxType::{
        B16, B32, B64, BF16, BF16x2, F16, F16x2, F32, F64, Pred, S8, S16, S32, S64, TF32, U8, U16,
        U32, U64,
    };
    let all = [
        Pred, U8, S8, B16, U16, S16, B32, U32, S32, B64, U64, S64, F16, BF16, F16x2, BF16x2, TF32,
        F32, F64,
    ];
    all.into_iter().find(|ty| ty.name() == name)
}

/// Words of an opcode that tell instructions apart.
const WORDS: usize = 8;
/// The most bytes that one access moves.
const WIDEST: usize = 16;

struct Decoder<'a> {
    line: &'a Line,
}

impl Decoder<'_> {
    fn reg(&self, i: usize) -> Option<usize> {
        match self.line.args.get(i)? {
            Arg::Reg(reg) => Some(*reg),
            _ => None,
        }
    }

    fn src(&self, i: usize) -> Option<Src> {
        match self.line.args.get(i)? {
            Arg::Reg(reg) => Some(Src::Reg(*reg)),
            Arg::Imm(value) => Some(Src::Imm(*value)),
            _ => None,
        }
    }

    fn imm(&self, i: usize) -> Option<u64> {
        match self.line.args.get(i)? {
            Arg::Imm(value) => Some(*value),
            _ => None,
        }
    }

    fn at(&self, i: usize) -> Option<At> {
        match self.line.args.get(i)? {
            Arg::Mem(base, offset) => Some(At(*base, *offset)),
            _ => None,
        }
    }

    fn group(&self, i: usize) -> Option<Vec<usize>> {
        match self.line.args.get(i)? {
            Arg::Group(regs) => Some(regs.clone()),
            Arg::Reg(reg) => Some(vec![*reg]),
            _ => None,
        }
    }

    /// A group of so many.
    fn some(&self, i: usize, count: usize) -> Option<Vec<usize>> {
        self.group(i).filter(|regs| regs.len() == count)
    }

    fn boxed(&self, i: usize) -> Option<(usize, Vec<usize>)> {
        match self.line.args.get(i)? {
            Arg::Box(map, at) => Some((*map, at.clone())),
            _ => None,
        }
    }

    fn act(&self) -> Option<Act> {
        let mut parts: Vec<&str> = self.line.opcode.split('.').collect();
        let last = parts.last().copied().and_then(type_named);
        let before_last = parts.iter().rev().nth(1).copied().and_then(type_named);
        // An opcode may have fewer words than are looked at.
        parts.resize(parts.len().max(WORDS), "");
        match parts[0] {
            "bra" => match self.line.args.first()? {
                Arg::Label(target) => Some(Act::Branch(*target)),
                _ => None,
            },
            "ret" => Some(Act::Return),
            "mov" => self.mov(last?),
            "ld" => self.load(&parts, last?),
            "st" => self.store(&parts, last?),
            "red" => Some(Act::RedAdd {
                ty: last?,
                at: self.at(0)?,
                from: self.src(1)?,
            }),
            "cvta" => self.alu(Alu::Mov, last?, 1),
            "cvt" => self.cvt(before_last?, last?),
            "bar" | "barrier" => self.barrier(&parts),
            "fence" if parts[1] == "proxy" => Some(Act::ProxyFence),
            // Registers are not scarce here, and barriers are visible at once.
            "fence" | "prefetch" | "setmaxnreg" | "griddepcontrol" => Some(Act::Nothing),
            "mapa" => Some(Act::Mapa {
                to: self.reg(0)?,
                from: self.src(1)?,
                rank: self.src(2)?,
            }),
            "cp" => self.copy(&parts),
            "shfl" | "vote" | "ldmatrix" | "mma" | "wmma" => self.warp(&parts).map(Act::Warp),
            "mbarrier" => self.mbarrier(&parts).map(Act::Mbarrier),
            "wgmma" => self.warpgroup(&parts).map(Act::Group),
            "dp4a" => self.alu(Alu::Dp4a, PtxType::B32, 3),
            "setp" => self.alu(Alu::Set(compare(parts[1])?), last?, 2),
            _ => self.arithmetic(&parts, last?),
        }
    }

    fn alu(&self, op: Alu, ty: PtxType, inputs: usize) -> Option<Act> {
        if self.line.args.len() != inputs + 1 {
            return None;
        }
        let mut from = [Src::Imm(0); 3];
        for (i, from) in from.iter_mut().enumerate().take(inputs) {
            *from = self.src(i + 1)?;
        }
        Some(Act::Alu {
            op,
            ty,
            to: self.reg(0)?,
            from,
        })
    }

    fn arithmetic(&self, parts: &[&str], ty: PtxType) -> Option<Act> {
        let (op, inputs) = match (parts[0], parts[1]) {
            ("add", _) => (Alu::Add, 2),
            ("sub", _) => (Alu::Sub, 2),
            ("mul", "wide") => (Alu::MulWide, 2),
            ("mul", "hi") => (Alu::MulHi, 2),
            ("mul", _) => (Alu::MulLo, 2),
            ("mad", "wide") => (Alu::MadWide, 3),
            ("mad" | "fma", _) => (Alu::Mad, 3),
            ("div", _) => (Alu::Div, 2),
            ("rem", _) => (Alu::Rem, 2),
            ("min", _) => (Alu::Min, 2),
            ("max", _) => (Alu::Max, 2),
            ("and", _) => (Alu::And, 2),
            ("or", _) => (Alu::Or, 2),
            ("xor", _) => (Alu::Xor, 2),
            ("not", _) => (Alu::Not, 1),
            ("shl", _) => (Alu::Shl, 2),
            ("shr", _) => (Alu::Shr, 2),
            ("bfe", _) => (Alu::Bfe, 3),
            ("prmt", _) => (Alu::Prmt, 3),
            ("neg", _) => (Alu::Neg, 1),
            ("abs", _) => (Alu::Abs, 1),
            ("sqrt", _) => (Alu::Sqrt, 1),
            ("rcp", _) => (Alu::Rcp, 1),
            ("rsqrt", _) => (Alu::Rsqrt, 1),
            ("ex2", _) => (Alu::Ex2, 1),
            ("lg2", _) => (Alu::Lg2, 1),
            ("selp", _) => (Alu::Selp, 3),
            _ => return None,
        };
        self.alu(op, ty, inputs)
    }

    fn mov(&self, ty: PtxType) -> Option<Act> {
        match (self.line.args.first()?, self.line.args.get(1)?) {
            (Arg::Reg(to), Arg::Special(name)) => Some(Act::Special { to: *to, name }),
            (Arg::Reg(to), Arg::ParamAddress(offset)) => Some(Act::ParamAddress {
                to: *to,
                offset: *offset,
            }),
            (Arg::Reg(to), Arg::Group(from)) => Some(Act::Pack {
                to: *to,
                from: from.as_slice().try_into().ok()?,
            }),
            (Arg::Group(to), _) => Some(Act::Unpack {
                to: to.as_slice().try_into().ok()?,
                from: self.src(1)?,
            }),
            _ => self.alu(Alu::Mov, ty, 1),
        }
    }

    fn cvt(&self, to: PtxType, from: PtxType) -> Option<Act> {
        if matches!(to, PtxType::F16x2 | PtxType::BF16x2) {
            return self.alu(Alu::CvtPair, to, 2);
        }
        self.alu(Alu::Cvt(from), to, 1)
    }

    fn load(&self, parts: &[&str], ty: PtxType) -> Option<Act> {
        if parts[1] == "param" {
            let Arg::Param(offset) = self.line.args.get(1)? else {
                return None;
            };
            return Some(Act::LoadParam {
                to: self.reg(0)?,
                ty,
                offset: *offset,
            });
        }
        Some(Act::Load {
            space: space(parts[1])?,
            ty,
            constant: parts.contains(&"nc"),
            to: narrow(self.group(0)?, ty)?,
            at: self.at(1)?,
        })
    }

    fn store(&self, parts: &[&str], ty: PtxType) -> Option<Act> {
        let from = match self.line.args.get(1)? {
            Arg::Group(regs) => regs.iter().map(|reg| Src::Reg(*reg)).collect(),
            _ => vec![self.src(1)?],
        };
        Some(Act::Store {
            space: space(parts[1])?,
            ty,
            from: narrow(from, ty)?,
            at: self.at(0)?,
        })
    }

    fn barrier(&self, parts: &[&str]) -> Option<Act> {
        if parts[1] == "cluster" {
            return Some(match parts[2] {
                "arrive" => Act::Warp(Warp::Arrive),
                _ => Act::ClusterWait,
            });
        }
        if parts[1] == "warp" {
            return (self.imm(0)? == 0xffff_ffff).then_some(Act::Warp(Warp::Sync));
        }
        (parts[1] == "sync").then_some(())?;
        let threads = match self.line.args.len() {
            1 => None,
            _ => Some(self.imm(1)? as u32),
        };
        Some(Act::Barrier {
            id: self.src(0)?,
            threads,
        })
    }

    fn copy(&self, parts: &[&str]) -> Option<Act> {
        if parts[2] == "bulk" {
            return self.bulk(parts).map(Act::Tma);
        }
        Some(match parts[2] {
            "commit_group" => Act::CopyCommit,
            "wait_group" => Act::CopyWait(self.imm(0)? as usize),
            _ => Act::CopyAsync {
                to: self.at(0)?,
                from: self.at(1)?,
                bytes: self.imm(2).filter(|bytes| matches!(bytes, 4 | 8 | 16))? as usize,
                given: self.src(3)?,
            },
        })
    }

    fn bulk(&self, parts: &[&str]) -> Option<Tma> {
        Some(match parts[3] {
            "commit_group" => Tma::Commit,
            "wait_group" => Tma::WaitRead(self.imm(0)? as usize),
            "tensor" if parts[5] == "global" => {
                let (map, at) = self.boxed(0)?;
                Tma::Store {
                    map,
                    at,
                    from: self.at(1)?,
                }
            }
            "tensor" => {
                let (map, at) = self.boxed(1)?;
                Tma::Load {
                    to: self.at(0)?,
                    map,
                    at,
                    barrier: self.at(2)?,
                }
            }
            _ => return None,
        })
    }

    fn warp(&self, parts: &[&str]) -> Option<Warp> {
        let all = |i| (self.imm(i)? == 0xffff_ffff).then_some(());
        match parts[0] {
            "shfl" => {
                all(4)?;
                (self.imm(3)? == 31).then_some(())?;
                let mode = match parts[2] {
                    "bfly" => Shuffle::Xor,
                    "down" => Shuffle::Down,
                    "idx" => Shuffle::Index,
                    _ => return None,
                };
                Some(Warp::Shuffle {
                    mode,
                    to: self.reg(0)?,
                    from: self.src(1)?,
                    lane: self.src(2)?,
                })
            }
            "vote" => {
                all(2)?;
                Some(Warp::Vote {
                    all: parts[2] == "all",
                    to: self.reg(0)?,
                    from: self.src(1)?,
                })
            }
            "ldmatrix" => Some(Warp::LoadMatrix {
                transposed: parts.contains(&"trans"),
                to: self.some(0, 4)?,
                at: self.at(1)?,
            }),
            "mma" => Some(Warp::Mma {
                ty: type_named(parts[7])?,
                sums: self.group(0)?,
                a: self.group(1)?,
                b: self.group(2)?,
                c: self.group(3)?,
            }),
            _ => self.wmma(parts),
        }
    }

    fn wmma(&self, parts: &[&str]) -> Option<Warp> {
        Some(match parts[1] {
            "load" => Warp::WmmaLoad {
                to: self.some(0, 8)?,
                at: self.at(1)?,
                stride: self.src(2)?,
            },
            "mma" => Warp::WmmaMma {
                sums: self.some(0, 8)?,
                a: self.some(1, 8)?,
                b: self.some(2, 8)?,
                c: self.some(3, 8)?,
            },
            _ => Warp::WmmaStore {
                from: self.some(1, 8)?,
                at: self.at(0)?,
                stride: self.src(2)?,
            },
        })
    }

    fn mbarrier(&self, parts: &[&str]) -> Option<Mbarrier> {
        Some(match (parts[1], parts[2]) {
            ("init", _) => Mbarrier::Init {
                at: self.at(0)?,
                count: self.src(1)?,
            },
            ("arrive", "expect_tx") => Mbarrier::Expect {
                at: self.at(1)?,
                bytes: self.src(2)?,
            },
            ("arrive", _) => Mbarrier::Arrive { at: self.at(1)? },
            _ => Mbarrier::TryWait {
                to: self.reg(0)?,
                at: self.at(1)?,
                parity: self.src(2)?,
            },
        })
    }

    fn warpgroup(&self, parts: &[&str]) -> Option<Group> {
        Some(match parts[1] {
            "fence" => Group::Fence,
            "commit_group" => Group::Commit,
            "wait_group" => Group::Wait(self.imm(0)? as usize),
            _ => {
                // Negated inputs and a transposed A are used by no kernel.
                let a = match self.line.args.get(1)? {
                    Arg::Group(regs) => Left::Regs(regs.as_slice().try_into().ok()?),
                    _ => Left::Descriptor(self.src(1)?),
                };
                let in_memory = matches!(a, Left::Descriptor(_));
                let plain = self.imm(4)? == 1 && self.imm(5)? == 1;
                let plain =
                    plain && (!in_memory || self.imm(6).is_none_or(|transpose| transpose == 0));
                let (sums, ty) = (self.group(0)?, type_named(parts[6])?);
                // Of 32-bit types there are half as many, and none transposed.
                let depth = 32 / ty.bytes();
                let shape = format!("m64n{}k{depth}", sums.len() * 2);
                (plain && parts[4] == shape).then_some(())?;
                let transposable = ty.bytes() == 2;
                Group::Mma {
                    ty,
                    sums,
                    a,
                    b: self.src(2)?,
                    add: self.reg(3)?,
                    transpose_b: transposable && self.imm(if in_memory { 7 } else { 6 })? == 1,
                }
            }
        })
    }
}

/// Values of one access, if it is not too wide.
fn narrow<T>(values: Vec<T>, ty: PtxType) -> Option<Vec<T>> {
    let fits = (1..=WIDEST).contains(&(values.len() * ty.bytes() as usize));
    fits.then_some(values)
}

fn space(name: &str) -> Option<Space> {
    match name {
        "global" => Some(Space::Global),
        "shared" => Some(Space::Shared),
        "shared::cluster" => Some(Space::Cluster),
        _ => None,
    }
}

fn compare(name: &str) -> Option<Compare> {
    Some(match name {
        "eq" => Compare::Eq,
        "ne" | "neu" => Compare::Ne,
        "lt" => Compare::Lt,
        "le" => Compare::Le,
        "gt" => Compare::Gt,
        "ge" => Compare::Ge,
        _ => return None,
    })
}

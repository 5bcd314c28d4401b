//! Decodes asynchronous copies, barriers in shared memory, and instructions of a warp or a warp
//! group.

use super::action::{Act, Group, Left, Mbarrier, Shuffle, Tma, Warp};
use super::{Arg, Decoder, type_named};

impl Decoder<'_> {
    pub(super) fn copy(&self, parts: &[&str]) -> Option<Act> {
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

    pub(super) fn warp(&self, parts: &[&str]) -> Option<Warp> {
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

    pub(super) fn mbarrier(&self, parts: &[&str]) -> Option<Mbarrier> {
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

    pub(super) fn warpgroup(&self, parts: &[&str]) -> Option<Group> {
        Some(match parts[1] {
            "fence" => Group::Fence,
            "commit_group" => Group::Commit,
            "wait_group" => Group::Wait(self.imm(0)? as usize),
            _ => {
                // No kernel uses negated inputs or a transposed A.
                let a = match self.line.args.get(1)? {
                    Arg::Group(regs) => Left::Regs(regs.as_slice().try_into().ok()?),
                    _ => Left::Descriptor(self.src(1)?),
                };
                let in_memory = matches!(a, Left::Descriptor(_));
                let plain = self.imm(4)? == 1 && self.imm(5)? == 1;
                let plain =
                    plain && (!in_memory || self.imm(6).is_none_or(|transpose| transpose == 0));
                let (sums, ty) = (self.group(0)?, type_named(parts[6])?);
                // For 32-bit types `k` is half as large, and B cannot be transposed.
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

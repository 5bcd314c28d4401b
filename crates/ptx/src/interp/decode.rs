//! Decodes lines to actions once, so that a step need not look at text.

mod action;
mod collective;

pub(super) use action::{Act, At, Group, Left, Mbarrier, Shuffle, Space, Src, Step, Tma, Warp};

use super::alu::{Alu, Compare};
use super::parse::{Arg, Line};
use crate::error::{Error, Result};
use crate::types::PtxType;

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

/// The number of words of an opcode that the decoder looks at.
const WORDS: usize = 8;
/// The maximum size of one access in bytes.
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

    /// Returns a group of exactly `count` registers.
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
        // Pad short opcodes, so that indexing below is safe.
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
            // The interpreter has enough registers, and makes barriers visible at once.
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
}

/// Returns the elements of one access, unless it is too wide.
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

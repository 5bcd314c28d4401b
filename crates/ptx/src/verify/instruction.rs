//! Checks one instruction against its row of the table.

#![allow(clippy::inline_always)] // Most of it is decided by what is emitted.

use super::super::error::{Error, Place, Result};
use super::super::inst::{Kind, Op, Operand, Reg, Row};
use super::super::kernel::PtxKernel;
use super::super::types::{Class, PtxType};

/// Whether the instruction is valid in the kernel. If not, [`mistake`] returns the error.
#[inline]
pub(in super::super) fn accepts(
    kernel: &PtxKernel,
    row: &Row,
    ty: PtxType,
    to: &[Operand],
    from: &[Operand],
) -> bool {
    let all = |kinds: &[Kind], operands: &[Operand], is_result| {
        let mut pairs = kinds.iter().zip(operands);
        kinds.len() == operands.len()
            && pairs.all(|(kind, operand)| takes(row, *kind, ty, operand, is_result))
    };
    let places = || (0..from.len()).all(|i| is_there(kernel, row.from[i], &from[..=i]));
    row.runs_on(kernel.target)
        && row.has_type(ty)
        && all(row.to, to, true)
        && all(row.from, from, false)
        && (!row.refers || places())
}

/// Returns the error of an invalid instruction.
#[cold]
pub(in super::super) fn mistake(
    kernel: &PtxKernel,
    op: Op,
    ty: PtxType,
    [to, from]: [&[Operand]; 2],
    at: Place,
) -> Error {
    let row = op.row();
    if !row.runs_on(kernel.target) {
        return Error::Target {
            what: format!("{}: `{}`", kernel.name, row.name(ty)),
            needed: row.first_target(),
            target: kernel.target,
        };
    }
    if !row.has_type(ty) {
        return Error::NoSuchType {
            at,
            instruction: row.name_without_type(),
            ty,
            types: row.types(),
        };
    }
    if row.to.len() != to.len() || row.from.len() != from.len() {
        return Error::OperandCount {
            at,
            instruction: row.name(ty),
            wanted: row.to.len() + row.from.len(),
            found: to.len() + from.len(),
        };
    }
    let to = (0..to.len()).map(|i| (row.to[i], &to[..=i], true));
    let from = (0..from.len()).map(|i| (row.from[i], &from[..=i], false));
    let mut operands = to.chain(from).enumerate();
    let wrong = operands.find(|(_, (kind, operands, is_result))| {
        let fits = |operand| takes(row, *kind, ty, operand, *is_result);
        !operands.last().is_some_and(fits) || !is_there(kernel, *kind, operands)
    });
    let (i, (kind, operands, _)) = wrong.unwrap_or((0, (Kind::Same, &[], true)));
    Error::Operand {
        at,
        instruction: row.name(ty),
        position: i + 1,
        wanted: describe(kernel, kind, ty, operands),
        found: operands
            .last()
            .map(|operand| given(kernel, operand))
            .unwrap_or_default(),
    }
}

/// Checks that the condition of a guard, a branch or a loop is a predicate.
pub(in super::super) fn condition(what: &'static str, cond: Reg, at: Place) -> Result<()> {
    if cond.ty == PtxType::Pred {
        return Ok(());
    }
    Err(Error::Operand {
        at,
        instruction: what.to_owned(),
        position: 1,
        wanted: format!("a register of type {}", PtxType::Pred),
        found: register(cond),
    })
}

/// Checks that a base is an address in global memory (`u64`), not one in shared memory (`u32`).
#[inline]
pub(in super::super) fn global_base(what: &'static str, base: Reg, at: Place) -> Result<()> {
    if base.ty.fits(PtxType::U64) {
        return Ok(());
    }
    let shared =
        "; for shared memory, whose addresses have type u32, use `fma(index, bytes, base)`";
    let hint = if base.ty.fits(PtxType::U32) {
        shared
    } else {
        ""
    };
    Err(Error::Operand {
        at,
        instruction: what.to_owned(),
        position: 1,
        wanted: "an address in global memory, of type u64,".to_owned(),
        found: format!("{}{hint}", register(base)),
    })
}

/// Checks that registers belong to the builder with this number.
#[inline]
pub(in super::super) fn own(
    builder: u16,
    regs: &[Reg],
    what: impl FnOnce() -> String,
    at: Place,
) -> Result<()> {
    match regs.iter().find(|reg| reg.builder != builder) {
        None => Ok(()),
        Some(reg) => Err(Error::OtherBuilder {
            at,
            instruction: what(),
            ty: reg.ty,
        }),
    }
}

/// Whether the last operand's reference is valid: the parameter or shared array exists, or the
/// constant is at most the preceding one.
fn is_there(kernel: &PtxKernel, kind: Kind, operands: &[Operand]) -> bool {
    match (kind, operands) {
        (Kind::SharedName, [.., Operand::Shared(index)]) => *index < kernel.shared.len(),
        (Kind::Param, [.., Operand::Param(index)]) => *index < kernel.params.len(),
        (Kind::Part, [.., Operand::Int(all), Operand::Int(part)]) => (0..=*all).contains(part),
        _ => true,
    }
}

#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
fn takes(row: &Row, kind: Kind, ty: PtxType, operand: &Operand, is_result: bool) -> bool {
    match (operand, kind) {
        (Operand::Reg(reg), kind) => kind.value(ty).is_some_and(|ty| reg.ty.fits(ty)),
        (Operand::Int(value), Kind::Int(allowed) | Kind::Word(allowed)) => allowed.contains(*value),
        (Operand::Int(value), kind) => {
            !is_result && kind.value(ty).is_some_and(|ty| holds(ty, *value))
        }
        (Operand::Float(_), kind) => !is_result && kind.value(ty) == Some(PtxType::F32),
        (Operand::Shared(_), Kind::SharedName)
        | (Operand::Param(_), Kind::Param)
        | (Operand::Special(_), Kind::Special) => true,
        (Operand::At(base, _), Kind::Global) => base.ty.fits(PtxType::U64),
        (Operand::At(base, _), Kind::Shared) => base.ty.fits(PtxType::U32),
        (Operand::Box(map, at), Kind::Box) => {
            map.ty.fits(PtxType::U64)
                && at.len() == if row.text.contains(".3d.") { 3 } else { 2 }
                && at.iter().all(|c| c.ty.fits(PtxType::S32))
        }
        (Operand::Group(regs), kind) => takes_group(kind, ty, regs),
        _ => false,
    }
}

fn takes_group(kind: Kind, ty: PtxType, regs: &[Reg]) -> bool {
    let all_fit = |ty| regs.iter().all(|reg| reg.ty.fits(ty));
    match kind {
        Kind::Group(n, ty) => regs.len() == n && all_fit(ty),
        Kind::Factor(n) => regs.len() == n && regs.iter().all(|reg| reg.ty.class() == Class::B32),
        // A tile of 64 rows and n columns takes n/2 registers in each of 128 threads.
        Kind::Sums(ty) => {
            regs.len().is_multiple_of(4) && (4..=128).contains(&regs.len()) && all_fit(ty)
        }
        Kind::Vector => {
            matches!(regs.len(), 2 | 4) && regs.len() as u32 * ty.bytes() <= 16 && all_fit(ty)
        }
        _ => false,
    }
}

/// Whether type `ty` can represent an integer constant.
fn holds(ty: PtxType, value: i64) -> bool {
    use PtxType::{BF16, BF16x2, F16, F16x2, F32, F64, Pred};
    let bits = ty.bytes() * 8;
    match ty {
        F16 | BF16 | F16x2 | BF16x2 | F32 | F64 | Pred => false,
        _ if bits == 64 => true,
        _ => (-(1 << (bits - 1))..1 << bits).contains(&value),
    }
}

/// Describes the requirement on the last of `operands`.
fn describe(kernel: &PtxKernel, kind: Kind, ty: PtxType, operands: &[Operand]) -> String {
    match kind {
        Kind::Same => format!("a value of type {ty}"),
        Kind::Vector => format!("one, two or four registers of type {ty}"),
        Kind::Wide => match ty.doubled() {
            Some(wide) => format!("a value of type {wide}"),
            None => format!("a value twice as wide as {ty}"),
        },
        Kind::Is(ty) => format!("a value of type {ty}"),
        Kind::Int(allowed) => format!("a constant, {allowed},"),
        Kind::Word(allowed) => format!("a register of type u32 or a constant, {allowed},"),
        Kind::Part => match operands {
            [.., Operand::Int(all), _] => {
                format!("a register of type u32 or a constant, 0 to {all},")
            }
            _ => "a register of type u32".to_owned(),
        },
        Kind::Global => "an address in global memory, of type u64,".to_owned(),
        Kind::Shared => "an address in shared memory, of type u32,".to_owned(),
        Kind::SharedName => match kernel.shared.len() {
            0 => "a shared array, of which there is none,".to_owned(),
            count => format!("a shared array, by a number below {count},"),
        },
        Kind::Param => match kernel.params.len() {
            0 => "a parameter, of which there is none,".to_owned(),
            count => format!("a parameter, by a number below {count},"),
        },
        Kind::Special => "a special register".to_owned(),
        Kind::Group(n, ty) => format!("{n} registers of type {ty}"),
        Kind::Factor(n) => format!("{n} registers of 32 bits that are not f32"),
        Kind::Sums(ty) => format!("4 to 128 registers of type {ty}, a multiple of 4"),
        Kind::Box => "a tensor map with two coordinates, or three".to_owned(),
    }
}

/// Describes an operand that was given.
fn given(kernel: &PtxKernel, operand: &Operand) -> String {
    match *operand {
        Operand::Reg(reg) => register(reg),
        Operand::Int(value) => format!("the constant {value}"),
        Operand::Float(value) => format!("the constant {value} of type f32"),
        Operand::Special(special) => format!("the special register {}", special.name()),
        Operand::Shared(index) => match kernel.shared.get(index) {
            Some(array) => format!("the shared array `{}`", array.name),
            None => format!("the shared array number {index}"),
        },
        Operand::Param(index) => match kernel.params.get(index) {
            Some(param) => format!("the parameter `{}`", param.name),
            None => format!("the parameter number {index}"),
        },
        Operand::At(base, _) => format!("an address of type {}", base.ty),
        Operand::Box(map, at) => {
            let coordinates = format!("{} coordinates: {}", at.len(), types(at));
            format!("a tensor map of type {} with {coordinates}", map.ty)
        }
        Operand::Group(regs) => format!("{} registers: {}", regs.len(), types(regs)),
    }
}

fn register(reg: Reg) -> String {
    format!("a register of type {}", reg.ty)
}

/// Lists the types of registers, each once.
fn types(regs: &[Reg]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for reg in regs {
        if !names.contains(&reg.ty.name()) {
            names.push(reg.ty.name());
        }
    }
    names.join(", ")
}

//! What is checked before text is written.
//!
//! Each instruction, as it is emitted: its types, operands and target, against the table; and what
//! branches, loops and guards depend on.
//!
//! Each kernel, when it is finished: that registers are written before they are read, that threads
//! which must execute an instruction together are there and all reach it, that no accumulator is used while
//! tensor cores may write it, that no more values are alive than there are registers, and that shared
//! memory and the launch are within bounds.

mod flight;
mod names;
mod pressure;
mod uniform;
mod warps;
mod written;

pub(super) use pressure::estimate;

use super::error::{Error, Place, Result};
use super::inst::{Kind, Op, Operand, Reg, Row};
use super::kernel::{Extent, PtxKernel};
use super::types::{Class, PtxType, Target};

/// The most threads of a block, and of its third axis.
const MAX_THREADS: u64 = 1024;
const MAX_DEEP: u64 = 64;
/// The most blocks of a cluster that every GPU with clusters has room for.
const MAX_CLUSTER: u64 = 8;
/// The most shared memory of arrays whose size the text states.
const MAX_STATIC_SHARED: u64 = 48 * 1024;
/// The most bytes of parameters.
const MAX_PARAMS: u64 = 4096;

/// Checks one instruction against its row.
pub(super) fn instruction(
    kernel: &PtxKernel,
    op: Op,
    ty: PtxType,
    to: &[Operand],
    from: &[Operand],
    at: Place,
) -> Result<()> {
    let row = op.row();
    if !row.runs_on(kernel.target) {
        return Err(Error::Target {
            what: format!("{}: `{}`", kernel.name, row.text),
            needed: row.first_target(),
            target: kernel.target,
        });
    }
    if !row.has_type(ty) {
        return Err(Error::NoSuchType {
            at,
            instruction: row.text,
            ty,
        });
    }
    if row.to.len() != to.len() || row.from.len() != from.len() {
        return Err(Error::OperandCount {
            at,
            instruction: row.text,
            wanted: row.to.len() + row.from.len(),
            found: to.len() + from.len(),
        });
    }
    let all = |kinds: &[Kind], operands: &[Operand], is_result| {
        let mut pairs = kinds.iter().zip(operands);
        pairs.all(|(kind, operand)| accepts(row, *kind, ty, operand, is_result))
    };
    let places = || (0..from.len()).all(|i| is_there(kernel, row.from[i], &from[..=i]));
    if all(row.to, to, true) && all(row.from, from, false) && (!row.refers || places()) {
        return Ok(());
    }
    let to = (0..to.len()).map(|i| (row.to[i], &to[..=i], true));
    let from = (0..from.len()).map(|i| (row.from[i], &from[..=i], false));
    for (i, (kind, operands, is_result)) in to.chain(from).enumerate() {
        let fits = |operand| accepts(row, kind, ty, operand, is_result);
        if !operands.last().is_some_and(fits) || !is_there(kernel, kind, operands) {
            return Err(Error::Operand {
                at,
                instruction: row.text,
                position: i + 1,
                wanted: describe(kernel, kind, ty, operands),
                found: operands
                    .last()
                    .map(|o| format!("{o:?}"))
                    .unwrap_or_default(),
            });
        }
    }
    Ok(())
}

/// Checks what a guard, a branch or a loop of the builder depends on.
pub(super) fn condition(what: &'static str, cond: Reg, at: Place) -> Result<()> {
    if cond.ty == PtxType::Pred {
        return Ok(());
    }
    Err(Error::Operand {
        at,
        instruction: what,
        position: 1,
        wanted: format!("a register of type {}", PtxType::Pred),
        found: format!("{:?}", Operand::Reg(cond)),
    })
}

/// Checks that registers are of the builder with this number.
#[inline]
pub(super) fn own(builder: u16, regs: &[Reg], what: &'static str, at: Place) -> Result<()> {
    match regs.iter().find(|reg| reg.builder != builder) {
        None => Ok(()),
        Some(reg) => Err(Error::OtherBuilder {
            at,
            instruction: what,
            ty: reg.ty,
        }),
    }
}

/// Whether what the last of `operands` refers to is there: a parameter, a shared array, or a size
/// before it that a part's constant is at most.
fn is_there(kernel: &PtxKernel, kind: Kind, operands: &[Operand]) -> bool {
    match (kind, operands) {
        (Kind::SharedName, [.., Operand::Shared(index)]) => *index < kernel.shared.len(),
        (Kind::Param, [.., Operand::Param(index)]) => *index < kernel.params.len(),
        (Kind::Part, [.., Operand::Int(all), Operand::Int(part)]) => (0..=*all).contains(part),
        _ => true,
    }
}

fn accepts(row: &Row, kind: Kind, ty: PtxType, operand: &Operand, is_result: bool) -> bool {
    match (kind, operand) {
        (Kind::Same, operand) => is_value(operand, ty, is_result),
        (Kind::Is(ty), operand) => is_value(operand, ty, is_result),
        (Kind::Wide, operand) => ty
            .doubled()
            .is_some_and(|wide| is_value(operand, wide, is_result)),
        (Kind::Int(allowed) | Kind::Word(allowed), Operand::Int(value)) => allowed.contains(*value),
        (Kind::Word(_) | Kind::Part, operand) => is_value(operand, PtxType::U32, is_result),
        (Kind::SharedName, Operand::Shared(_))
        | (Kind::Param, Operand::Param(_))
        | (Kind::Special, Operand::Special(_)) => true,
        (Kind::Global, Operand::At(base, _)) => base.ty.fits(PtxType::U64),
        (Kind::Shared, Operand::At(base, _)) => base.ty.fits(PtxType::U32),
        (Kind::Box, Operand::Box(map, at)) => {
            map.ty.fits(PtxType::U64)
                && at.len() == if row.text.contains(".3d.") { 3 } else { 2 }
                && at.iter().all(|c| c.ty.fits(PtxType::S32))
        }
        (Kind::Group(n, ty), Operand::Group(regs)) => {
            regs.len() == n && regs.iter().all(|reg| reg.ty.fits(ty))
        }
        (Kind::Factor(n), Operand::Group(regs)) => {
            regs.len() == n && regs.iter().all(|reg| reg.ty.class() == Class::B32)
        }
        (Kind::Sums(ty), Operand::Group(regs)) => {
            // n columns of a 64-row tile are n/2 registers in each of 128 threads.
            regs.len() % 4 == 0
                && (4..=128).contains(&regs.len())
                && regs.iter().all(|reg| reg.ty.fits(ty))
        }
        (Kind::Vector, Operand::Group(regs)) => {
            matches!(regs.len(), 2 | 4)
                && regs.len() as u32 * ty.bytes() <= 16
                && regs.iter().all(|reg| reg.ty.fits(ty))
        }
        (Kind::Vector, operand) => {
            // Bytes have no registers of their own.
            let short = ty.bytes() == 1;
            let register = if short { PtxType::U32 } else { ty };
            is_value(operand, register, is_result)
        }
        _ => false,
    }
}

/// Whether `operand` is a register of a type that fits, or a constant of it.
fn is_value(operand: &Operand, ty: PtxType, is_result: bool) -> bool {
    match operand {
        Operand::Reg(reg) => reg.ty.fits(ty),
        Operand::Float(_) => !is_result && ty == PtxType::F32,
        Operand::Int(value) => !is_result && holds(ty, *value),
        _ => false,
    }
}

/// Whether an integer constant can be written for `ty`.
fn holds(ty: PtxType, value: i64) -> bool {
    use PtxType::{BF16, BF16x2, F16, F16x2, F32, F64, Pred};
    let bits = ty.bytes() * 8;
    match ty {
        F16 | BF16 | F16x2 | BF16x2 | F32 | F64 | Pred => false,
        _ if bits == 64 => true,
        _ => (-(1 << (bits - 1))..1 << bits).contains(&value),
    }
}

/// What the last of `operands` should have been.
fn describe(kernel: &PtxKernel, kind: Kind, ty: PtxType, operands: &[Operand]) -> String {
    match kind {
        Kind::Same => format!("a value of type {ty}"),
        Kind::Vector => format!("one, two or four registers of type {ty}"),
        Kind::Wide => format!("a value twice as wide as {ty}"),
        Kind::Is(ty) => format!("a value of type {ty}"),
        Kind::Int(allowed) => format!("a constant, {allowed},"),
        Kind::Word(allowed) => format!("a register of type u32 or a constant, {allowed},"),
        Kind::Part => match operands {
            [.., Operand::Int(all), _] => {
                format!("a register of type u32 or a constant, 0 to {all},")
            }
            _ => "a register of type u32".to_owned(),
        },
        Kind::Global => "an address in global memory".to_owned(),
        Kind::Shared => "an address in shared memory".to_owned(),
        Kind::SharedName => format!("one of {} shared arrays", kernel.shared.len()),
        Kind::Param => format!("one of {} parameters", kernel.params.len()),
        Kind::Special => "a special register".to_owned(),
        Kind::Group(n, ty) => format!("{n} registers of type {ty}"),
        Kind::Factor(n) => format!("{n} registers of 32 bits that are not f32"),
        Kind::Sums(ty) => format!("4 to 128 registers of type {ty}, a multiple of 4"),
        Kind::Box => "a tensor map with two coordinates, or three".to_owned(),
    }
}

/// Checks a kernel as a whole.
pub(super) fn kernel(kernel: &PtxKernel) -> Result<()> {
    launch(kernel)?;
    limits(kernel)?;
    names::check(kernel)?;
    written::check(kernel)?;
    warps::check(kernel)?;
    uniform::check(kernel)?;
    flight::check(kernel)?;
    pressure::check(kernel)?;
    shared_bounds(kernel)
}

/// What must not be zero.
fn launch(kernel: &PtxKernel) -> Result<()> {
    let launch = &kernel.launch;
    let tiles = |extent: &&Extent| matches!(extent, Extent::Tiles(_, 0));
    let empty = kernel.shared.iter().find(|array| array.bytes == 0);
    let (what, value, requirement) = if launch.block.contains(&0) {
        let value = format!("{:?} threads", launch.block);
        ("block", value, "at least one thread along each axis")
    } else if launch.min_blocks == 0 {
        ("min_blocks", "0".to_owned(), "at least 1")
    } else if let Some(extent) = launch.grid.iter().find(tiles) {
        ("grid", format!("{extent:?}"), "of tiles of at least 1")
    } else if let Some(array) = empty {
        let value = format!("`{}` of 0 bytes", array.name);
        ("shared", value, "an array of at least one value")
    } else {
        return Ok(());
    };
    Err(Error::Invalid {
        what,
        value: format!("{}: {value}", kernel.name),
        requirement,
    })
}

fn limits(kernel: &PtxKernel) -> Result<()> {
    let within = |what: &str, value: u64, limit: u64| {
        let what = || format!("{}: {what}", kernel.name);
        let error = || Error::Limit {
            what: what(),
            value,
            limit,
        };
        (value <= limit).then_some(()).ok_or_else(error)
    };
    let threads = kernel.launch.threads();
    let (fixed, dynamic) = (kernel.bytes_of(false), kernel.bytes_of(true));
    let arrays = kernel.shared.iter().filter(|array| array.dynamic).count();
    // Each at a multiple of its alignment.
    let params = kernel.params.iter().fold(0, |end: u64, param| {
        let (bytes, align) = param.ty.layout();
        end.next_multiple_of(align.max(1).into()) + u64::from(bytes)
    });
    within("threads of a block", threads, MAX_THREADS)?;
    let [_, _, deep] = kernel.launch.block;
    within("threads of a block along z", deep.into(), MAX_DEEP)?;
    clusters(kernel, threads)?;
    within(
        "blocks of a cluster",
        kernel.launch.cluster_blocks(),
        MAX_CLUSTER,
    )?;
    within("arrays of dynamic shared memory", arrays as u64, 1)?;
    within("bytes of static shared memory", fixed, MAX_STATIC_SHARED)?;
    within(
        "bytes of shared memory",
        fixed.saturating_add(dynamic),
        kernel.target.max_shared().into(),
    )?;
    within("bytes of parameters", params, MAX_PARAMS)
}

/// Clusters exist, and their blocks are of whole warps.
fn clusters(kernel: &PtxKernel, threads: u64) -> Result<()> {
    let blocks = kernel.launch.cluster_blocks();
    if blocks == 1 {
        return Ok(());
    }
    if kernel.target.capability() < 90 {
        return Err(Error::Target {
            what: format!("{}: a cluster of blocks", kernel.name),
            needed: Target::Sm90,
            target: kernel.target,
        });
    }
    if blocks == 0 || !threads.is_multiple_of(32) {
        return Err(Error::Invalid {
            what: "cluster",
            value: format!("{blocks} blocks of {threads} threads"),
            requirement: "at least one block of whole warps",
        });
    }
    Ok(())
}

/// Accesses whose address is an array's name plus a constant lie within the array.
fn shared_bounds(kernel: &PtxKernel) -> Result<()> {
    let arrays = arrays(kernel);
    let code = &kernel.code;
    for inst in code.insts() {
        let accesses = matches!(inst.op, Op::LdShared | Op::StShared);
        let Some(Operand::At(base, offset)) = accesses.then(|| code.from(inst).next()).flatten()
        else {
            continue;
        };
        let Some(array) = arrays[base.id as usize] else {
            continue;
        };
        let array = &kernel.shared[array];
        // All operands but the address are values.
        let count = code.group(inst).unwrap_or(1);
        let from = i64::from(offset);
        let to = from + count as i64 * i64::from(inst.ty.bytes());
        if from < 0 || to > i64::from(array.bytes) {
            return Err(Error::SharedBounds {
                kernel: kernel.name.clone(),
                array: array.name.clone(),
                from,
                to,
                bytes: array.bytes,
            });
        }
    }
    Ok(())
}

/// The array whose address a register holds, of registers that are written once.
fn arrays(kernel: &PtxKernel) -> Vec<Option<usize>> {
    let code = &kernel.code;
    let (mut arrays, mut written) = (vec![None; kernel.registers], vec![false; kernel.registers]);
    for inst in code.insts() {
        for reg in code.regs_of(inst).0 {
            let id = reg.id as usize;
            arrays[id] = match (inst.op, code.from(inst).next()) {
                (Op::MovShared, Some(Operand::Shared(array))) if !written[id] => Some(array),
                _ => None,
            };
            written[id] = true;
        }
    }
    arrays
}

//! What is checked before text is written.
//!
//! Each instruction, as it is emitted: its types, operands and target, against the table. Each
//! kernel, when it is finished: that registers are written before they are read, that threads
//! which must execute an instruction together all reach it, that no accumulator is used while
//! tensor cores may write it, and that shared memory and the launch are within bounds.

mod flight;
mod uniform;
mod written;

use super::error::{Error, Place, Result};
use super::inst::{Inst, Kind, Op, Operand, Row};
use super::kernel::{Node, PtxKernel};
use super::types::{PtxType, Target};

/// The most threads of a block.
const MAX_THREADS: u64 = 1024;
/// The most shared memory of arrays whose size the text states.
const MAX_STATIC_SHARED: u64 = 48 * 1024;
/// The most bytes of parameters.
const MAX_PARAMS: u64 = 4096;

/// Checks one instruction against its row.
pub(super) fn instruction(inst: &Inst, target: Target, at: Place) -> Result<()> {
    let row = inst.op.row();
    if !row.runs_on(target) {
        return Err(Error::Target {
            what: row.text.to_owned(),
            needed: row.first_target(),
            target,
        });
    }
    if row.text.contains("{}") && !row.types.contains(&inst.ty) {
        return Err(Error::NoSuchType {
            at,
            instruction: row.text,
            ty: inst.ty,
        });
    }
    let kinds = row.to.iter().chain(row.from);
    let operands = inst.to.iter().chain(&inst.from);
    let wanted = row.to.len() + row.from.len();
    let found = inst.to.len() + inst.from.len();
    if wanted != found || row.to.len() != inst.to.len() {
        return Err(Error::OperandCount {
            at,
            instruction: row.text,
            wanted,
            found,
        });
    }
    for (i, (kind, operand)) in kinds.zip(operands).enumerate() {
        let is_result = i < row.to.len();
        if !accepts(row, *kind, inst.ty, operand, is_result) {
            return Err(Error::Operand {
                at,
                instruction: row.text,
                position: i + 1,
                wanted: describe(*kind, inst.ty),
                found: format!("{operand:?}"),
            });
        }
    }
    Ok(())
}

fn accepts(row: &Row, kind: Kind, ty: PtxType, operand: &Operand, is_result: bool) -> bool {
    match (kind, operand) {
        (Kind::Same, operand) => is_value(operand, ty, is_result),
        (Kind::Is(ty), operand) => is_value(operand, ty, is_result),
        (Kind::Wide, operand) => ty
            .doubled()
            .is_some_and(|wide| is_value(operand, wide, is_result)),
        (Kind::Int, Operand::Int(_))
        | (Kind::SharedName, Operand::Shared(_))
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
            let short = ty.bytes() == 1 && row.text.contains('{');
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
    let bits = ty.bytes() * 8;
    match ty {
        PtxType::F16 | PtxType::BF16 | PtxType::F32 | PtxType::F64 | PtxType::Pred => false,
        _ if bits == 64 => true,
        _ => (-(1 << (bits - 1))..1 << bits).contains(&value),
    }
}

fn describe(kind: Kind, ty: PtxType) -> String {
    match kind {
        Kind::Same => format!("a value of type {ty}"),
        Kind::Vector => format!("one, two or four registers of type {ty}"),
        Kind::Wide => format!("a value twice as wide as {ty}"),
        Kind::Is(ty) => format!("a value of type {ty}"),
        Kind::Int => "a constant".to_owned(),
        Kind::Global => "an address in global memory".to_owned(),
        Kind::Shared => "an address in shared memory".to_owned(),
        Kind::SharedName => "a shared array".to_owned(),
        Kind::Param => "a parameter".to_owned(),
        Kind::Special => "a special register".to_owned(),
        Kind::Group(n, ty) => format!("{n} registers of type {ty}"),
        Kind::Sums(ty) => format!("4 to 128 registers of type {ty}, a multiple of 4"),
        Kind::Box => "a tensor map with two coordinates, or three".to_owned(),
    }
}

/// Checks a kernel as a whole.
pub(super) fn kernel(kernel: &PtxKernel) -> Result<()> {
    limits(kernel)?;
    written::check(kernel)?;
    uniform::check(kernel)?;
    flight::check(kernel)?;
    shared_bounds(kernel)
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
    let threads: u64 = kernel.launch.block.iter().map(|&n| u64::from(n)).product();
    let fixed = u64::from(kernel.shared_bytes() - kernel.dynamic_shared());
    let params: u64 = kernel
        .params
        .iter()
        .map(|p| u64::from(p.ty.layout().0))
        .sum();
    within("threads of a block", threads, MAX_THREADS)?;
    within("bytes of static shared memory", fixed, MAX_STATIC_SHARED)?;
    within(
        "bytes of shared memory",
        kernel.shared_bytes().into(),
        kernel.target.max_shared().into(),
    )?;
    within("bytes of parameters", params, MAX_PARAMS)
}

/// Every instruction, in the order of the text.
pub(super) fn each<'a>(nodes: &'a [Node], visit: &mut dyn FnMut(&'a Inst)) {
    for node in nodes {
        match node {
            Node::Inst(inst) => visit(inst),
            Node::Comment(_) => {}
            Node::If {
                then, otherwise, ..
            } => {
                each(then, visit);
                each(otherwise, visit);
            }
            Node::Loop { body, .. } => each(body, visit),
        }
    }
}

/// Accesses whose address is an array's name plus a constant lie within the array.
fn shared_bounds(kernel: &PtxKernel) -> Result<()> {
    let mut arrays = std::collections::HashMap::new();
    let mut result = Ok(());
    each(&kernel.body, &mut |inst| {
        if let (Op::MovShared, Operand::Reg(reg), Operand::Shared(array)) =
            (inst.op, first(&inst.to), first(&inst.from))
        {
            arrays.insert(reg.id, *array);
            return;
        }
        let accesses = matches!(inst.op, Op::LdShared | Op::StShared);
        let Operand::At(base, offset) = first(&inst.from) else {
            return;
        };
        let (true, Some(&array)) = (accesses && result.is_ok(), arrays.get(&base.id)) else {
            return;
        };
        let values = inst.to.iter().chain(&inst.from[1..]);
        let count = values
            .map(|value| value.regs().count().max(1))
            .sum::<usize>();
        let (from, array) = (i64::from(*offset), &kernel.shared[array]);
        let to = from + count as i64 * i64::from(inst.ty.bytes());
        if from < 0 || to > i64::from(array.bytes) {
            result = Err(Error::SharedBounds {
                kernel: kernel.name.clone(),
                array: array.name.clone(),
                from,
                to,
                bytes: array.bytes,
            });
        }
    });
    result
}

fn first(operands: &[Operand]) -> &Operand {
    operands.first().unwrap_or(&Operand::Int(0))
}

//! What a warp does together needs all of its threads.

use super::super::code::Inst;
use super::super::error::{Error, Result};
use super::super::inst::{Op, Operand, Together};
use super::super::kernel::PtxKernel;

const WARP: u64 = 32;
/// Threads that multiply by `wgmma`, and share registers.
const GROUP: u64 = 128;

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    let threads = kernel.launch.threads();
    if threads.is_multiple_of(GROUP) {
        return Ok(());
    }
    let insts = kernel.code.insts().iter();
    let mut together = insts.filter(|inst| inst.op.row().together == Together::Warp);
    let missing = together.find_map(|inst| missing(kernel, inst, threads));
    missing.map_or(Ok(()), |requirement| {
        let value = format!("{threads} threads");
        Err(Error::invalid("block", value, requirement).of(&kernel.name))
    })
}

/// Why so many threads cannot execute an instruction, if they cannot.
fn missing(kernel: &PtxKernel, inst: &Inst, threads: u64) -> Option<&'static str> {
    let text = inst.op.row().text;
    if text.starts_with("wgmma") || matches!(inst.op, Op::SetMaxRegInc | Op::SetMaxRegDec) {
        return Some("of whole groups of 128 threads, which its instructions are for");
    }
    let whole = threads.is_multiple_of(WARP) || names_all(kernel, inst, threads);
    (!whole).then_some("of whole warps, which its instructions are for")
}

/// Whether the only warp is not whole, and the instruction's mask has just the lanes that are there.
fn names_all(kernel: &PtxKernel, inst: &Inst, threads: u64) -> bool {
    let mask = match kernel.code.from(inst).last() {
        Some(Operand::Int(mask)) if inst.op.row().ends_in_mask => mask as u32,
        _ => return false,
    };
    threads < WARP && u64::from(mask) == (1 << threads) - 1
}

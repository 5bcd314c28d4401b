//! Checks that blocks consist of whole warps if instructions of a warp are used.

use super::super::code::Inst;
use super::super::error::{Error, Result};
use super::super::inst::{Op, Operand, Together};
use super::super::kernel::PtxKernel;

const WARP: u64 = 32;
/// The number of threads that execute `wgmma` together.
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

/// Returns the requirement on the block that an instruction violates, if any.
fn missing(kernel: &PtxKernel, inst: &Inst, threads: u64) -> Option<&'static str> {
    let text = inst.op.row().text;
    if text.starts_with("wgmma") || matches!(inst.op, Op::SetMaxRegInc | Op::SetMaxRegDec) {
        return Some("a multiple of 128, since it uses instructions of warp groups");
    }
    let whole = threads.is_multiple_of(WARP) || names_all(kernel, inst, threads);
    (!whole).then_some("a multiple of 32, since it uses instructions of warps")
}

/// Whether the block is one partial warp, and the instruction's mask contains exactly its lanes.
fn names_all(kernel: &PtxKernel, inst: &Inst, threads: u64) -> bool {
    let mask = match kernel.code.from(inst).last() {
        Some(Operand::Int(mask)) if inst.op.row().ends_in_mask => mask as u32,
        _ => return false,
    };
    threads < WARP && u64::from(mask) == (1 << threads) - 1
}

//! Addresses, loads, stores, barriers and shuffles.

use super::{ALL_LANES, Builder};
use crate::error::Place;
use crate::inst::{Op, Operand, Reg};
use crate::types::PtxType;
use crate::verify;
use std::panic::Location;

impl Builder {
    /// Computes `base + index · bytes`, the address of an element in global memory. For shared
    /// memory use `fma(index, bytes, base)`.
    #[track_caller]
    pub fn at(&mut self, base: Reg, index: Reg, bytes: u32) -> Reg {
        self.check_global_base("at", base);
        let from = [index.into(), bytes.into(), base.into()];
        self.op(Op::MadWide, PtxType::U32, PtxType::U64, &from)
    }

    /// Computes `base + (row · stride + col) · bytes`, the address of an element of a row-major
    /// matrix. It is correct for more than 2³² elements.
    #[track_caller]
    pub fn at_2d(&mut self, base: Reg, row: Reg, stride: Reg, col: Reg, bytes: u32) -> Reg {
        self.check_global_base("at_2d", base);
        let col = self.widen(col);
        let from = [row.into(), stride.into(), col.into()];
        let index = self.op(Op::MadWide, PtxType::U32, PtxType::U64, &from);
        self.fma(index, i64::from(bytes), base)
    }

    /// Records an error if a base is not an address in global memory, of type `u64`.
    #[track_caller]
    fn check_global_base(&mut self, what: &'static str, base: Reg) {
        let at = Place(Location::caller());
        if let Err(error) = verify::global_base(what, base, at) {
            self.error.get_or_insert(error);
        }
    }

    /// Loads from global memory that nothing writes while the kernel runs.
    #[track_caller]
    pub fn ld_global(&mut self, ty: PtxType, address: Reg, offset: i32) -> Reg {
        self.ld(Op::LdGlobalNc, ty, address, offset)
    }

    /// Loads one element. An 8-bit type is loaded into a 32-bit register.
    #[track_caller]
    pub fn ld(&mut self, op: Op, ty: PtxType, address: Reg, offset: i32) -> Reg {
        let result = match ty {
            PtxType::U8 => PtxType::U32,
            PtxType::S8 => PtxType::S32,
            _ => ty,
        };
        self.op(op, memory_type(ty), result, &[Operand::At(address, offset)])
    }

    /// Loads two or four elements at once, from an address that is a multiple of their size.
    #[track_caller]
    pub fn ld_vector(&mut self, op: Op, ty: PtxType, n: usize, address: Reg, at: i32) -> Vec<Reg> {
        let to = self.regs(ty, n);
        let from = [Operand::At(address, at)];
        self.emit(op, memory_type(ty), &[to.as_slice().into()], &from);
        to
    }

    /// Loads from shared memory.
    #[track_caller]
    pub fn ld_shared(&mut self, ty: PtxType, address: Reg, offset: i32) -> Reg {
        self.ld(Op::LdShared, ty, address, offset)
    }

    /// Stores one element or a vector to global memory.
    #[track_caller]
    pub fn st_global<'a>(
        &mut self,
        ty: PtxType,
        address: Reg,
        at: i32,
        value: impl Into<Operand<'a>>,
    ) {
        self.st(Op::StGlobal, ty, address, at, value.into());
    }

    /// Stores one element or a vector to shared memory.
    #[track_caller]
    pub fn st_shared<'a>(
        &mut self,
        ty: PtxType,
        address: Reg,
        at: i32,
        value: impl Into<Operand<'a>>,
    ) {
        self.st(Op::StShared, ty, address, at, value.into());
    }

    #[track_caller]
    fn st(&mut self, op: Op, ty: PtxType, address: Reg, at: i32, value: Operand<'_>) {
        let from = [Operand::At(address, at), value];
        self.emit(op, memory_type(ty), &[], &from);
    }

    /// Synchronises all threads of the block, and makes their writes visible to each other.
    #[track_caller]
    pub fn barrier(&mut self) {
        self.act(Op::BarSync, &[0.into()]);
    }

    /// Synchronises all threads of the cluster, and makes their writes visible to each other.
    #[track_caller]
    pub fn cluster_barrier(&mut self) {
        self.act(Op::ClusterArrive, &[]);
        self.act(Op::ClusterWait, &[]);
    }

    /// Lets the next kernel begin and waits for the results of preceding kernels, in a kernel that
    /// [overlaps](crate::Launch::overlaps). Before this call the kernel may not read results of preceding kernels, and
    /// may not write anything.
    #[track_caller]
    pub fn wait_for_grid(&mut self) {
        if self.kernel.launch.overlaps {
            self.act(Op::GridLaunchNext, &[]);
            self.act(Op::GridWait, &[]);
        }
    }

    /// Returns the value of the lane whose index is the XOR of this lane's index and `mask`.
    #[track_caller]
    pub fn shuffle_xor(&mut self, a: Reg, mask: u32) -> Reg {
        let from = [a.into(), mask.into(), 31.into(), ALL_LANES.into()];
        self.op(Op::ShflBfly, PtxType::B32, a.ty, &from)
    }
}

/// Returns the type in memory instructions, which treat 16-bit floating-point numbers as bits.
fn memory_type(ty: PtxType) -> PtxType {
    match ty {
        PtxType::F16 | PtxType::BF16 | PtxType::F16x2 | PtxType::BF16x2 | PtxType::TF32 => {
            ty.untyped()
        }
        _ => ty,
    }
}

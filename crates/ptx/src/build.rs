//! The builder: kernels written in Rust, instruction by instruction, with loops and branches as
//! closures.
//!
//! Every method calls [`Builder::emit`], which checks the operands against the [instruction
//! table](super::inst). The builder records the first error with the line of Rust that caused it,
//! and [`Builder::finish`] returns it, so methods need no `?`.

mod arithmetic;
mod control;
mod memory;

use super::code::{Code, Node};
use super::error::{Error, Place, Result};
use super::inst::{Op, Operand, Reg, Special};
use super::kernel::{Launch, Param, ParamType, PtxKernel, SharedArray, TensorBox};
use super::types::{PtxType, Target};
use super::verify;
use std::panic::Location;
use std::sync::atomic::{AtomicU16, Ordering};

/// All lanes of a warp.
pub(crate) const ALL_LANES: u32 = u32::MAX;

/// A kernel under construction.
///
/// ```
/// use relampago_ptx::{Builder, Extent, Launch, PtxModule, PtxType::F32, Special, Target};
///
/// # fn main() -> Result<(), relampago_ptx::Error> {
/// // One block of 32 threads; thread `i` doubles element `i`.
/// let launch = Launch::new(32, [Extent::Fixed(1); 3]);
/// let mut k = Builder::new("double", Target::Sm80, launch);
/// let x = k.pointer("x", F32);
/// let i = k.special(Special::TidX);
/// let address = k.at(x, i, 4);
/// let value = k.ld_global(F32, address, 0);
/// let doubled = k.add(value, value);
/// k.st_global(F32, address, 0, doubled);
/// let text = PtxModule::new(Target::Sm80).with(k.finish()?)?.emit();
/// assert!(text.contains("add.rn.f32"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Builder {
    kernel: PtxKernel,
    /// The number that identifies the builder's registers. It repeats after 65,536 builders.
    number: u16,
    /// The open blocks of nodes. New nodes go to the last one.
    open: Vec<Vec<Node>>,
    /// The index of the first instruction that is not in a block yet.
    begun: usize,
    guard: Option<(Reg, bool)>,
    error: Option<Error>,
}

impl Builder {
    /// Creates an empty kernel. The names of the kernel, its parameters and its shared arrays must
    /// be [PTX identifiers](https://docs.nvidia.com/cuda/parallel-thread-execution/#identifiers).
    pub fn new(name: impl Into<String>, target: Target, launch: Launch) -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        Builder {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            kernel: PtxKernel {
                name: name.into(),
                target,
                params: Vec::new(),
                shared: Vec::new(),
                launch,
                code: Code::new(),
                registers: 0,
                since: target.since(),
            },
            open: vec![Vec::new()],
            begun: 0,
            guard: None,
            error: None,
        }
    }

    /// Returns the kernel's target.
    pub fn target(&self) -> Target {
        self.kernel.target
    }

    /// Verifies and returns the kernel.
    ///
    /// # Errors
    /// The first error of a builder method, or the error that the verifier found.
    pub fn finish(mut self) -> Result<PtxKernel> {
        self.emit(Op::Ret, PtxType::B32, &[], &[]);
        if let Some(error) = self.error {
            return Err(error);
        }
        self.end_run();
        self.kernel.code.nodes = self.open.pop().unwrap_or_default();
        // Registers of another builder with the same number may have higher ids.
        let numbers = self
            .kernel
            .code
            .regs()
            .iter()
            .map(|reg| reg.id as usize + 1);
        self.kernel.registers = numbers.fold(self.kernel.registers, usize::max);
        verify::kernel(&self.kernel)?;
        Ok(self.kernel)
    }

    // Registers and parameters.

    /// Creates a register without a value.
    pub fn reg(&mut self, ty: PtxType) -> Reg {
        self.kernel.registers += 1;
        Reg {
            id: self.kernel.registers as u32 - 1,
            ty,
            builder: self.number,
        }
    }

    /// Creates `count` registers without values.
    pub fn regs(&mut self, ty: PtxType, count: usize) -> Vec<Reg> {
        (0..count).map(|_| self.reg(ty)).collect()
    }

    /// Creates `count` registers with the same value.
    #[track_caller]
    pub fn filled<'a>(
        &mut self,
        ty: PtxType,
        count: usize,
        value: impl Into<Operand<'a>>,
    ) -> Vec<Reg> {
        let value = value.into();
        (0..count).map(|_| self.value(ty, value)).collect()
    }

    /// Creates a register with a value.
    #[track_caller]
    pub fn value<'a>(&mut self, ty: PtxType, value: impl Into<Operand<'a>>) -> Reg {
        let from = [value.into()];
        let op = match from[0] {
            Operand::Special(_) => Op::MovSpecial,
            _ => Op::Mov,
        };
        let bits = if ty.class() == ty.untyped().class() {
            ty.untyped()
        } else {
            ty
        };
        let ty_in_text = if op == Op::MovSpecial { ty } else { bits };
        self.op(op, ty_in_text, ty, &from)
    }

    /// Creates a register with the value of a special register.
    #[track_caller]
    pub fn special(&mut self, special: Special) -> Reg {
        self.value(PtxType::U32, special)
    }

    /// Declares the next parameter, an address of elements of type `ty` in global memory, and
    /// returns its value.
    #[track_caller]
    pub fn pointer(&mut self, name: &'static str, ty: PtxType) -> Reg {
        let generic = self.load_param(name, ParamType::Pointer(ty), PtxType::U64);
        self.op(
            Op::CvtaGlobal,
            PtxType::U64,
            PtxType::U64,
            &[generic.into()],
        )
    }

    /// Declares the next parameter, a number, and returns its value.
    #[track_caller]
    pub fn scalar(&mut self, name: &'static str, ty: PtxType) -> Reg {
        self.load_param(name, ParamType::Scalar(ty), ty)
    }

    /// Declares the next parameter, a tensor map, and returns its address.
    #[track_caller]
    pub fn tensor_map(&mut self, name: &'static str, tensor: TensorBox) -> Reg {
        let index = self.declare(name, ParamType::TensorMap(tensor));
        let from = [Operand::Param(index)];
        let address = self.op(Op::MovParam, PtxType::B64, PtxType::U64, &from);
        self.op(Op::CvtaParam, PtxType::U64, PtxType::U64, &[address.into()])
    }

    fn declare(&mut self, name: &'static str, ty: ParamType) -> usize {
        self.kernel.params.push(Param { name, ty });
        self.kernel.params.len() - 1
    }

    #[track_caller]
    fn load_param(&mut self, name: &'static str, param: ParamType, ty: PtxType) -> Reg {
        let index = self.declare(name, param);
        self.op(Op::LdParam, ty, ty, &[Operand::Param(index)])
    }

    /// Declares a shared array of `count` elements, at least one, and returns its address.
    #[track_caller]
    pub fn shared(&mut self, name: &str, ty: PtxType, count: u32) -> Reg {
        self.shared_bytes(name, count.saturating_mul(ty.bytes()), 16, false)
    }

    /// Declares a dynamic shared array, whose size is part of the launch, as it must be beyond 48
    /// KiB. Returns its address, which is a multiple of 1024. A kernel has at most one such array.
    #[track_caller]
    pub fn dynamic_shared(&mut self, name: &str, bytes: u32) -> Reg {
        self.shared_bytes(name, bytes, 1024, true)
    }

    #[track_caller]
    fn shared_bytes(&mut self, name: &str, bytes: u32, align: u32, dynamic: bool) -> Reg {
        self.kernel.shared.push(SharedArray {
            name: name.to_owned(),
            bytes,
            align,
            dynamic,
        });
        let from = [Operand::Shared(self.kernel.shared.len() - 1)];
        self.op(Op::MovShared, PtxType::U32, PtxType::U32, &from)
    }

    // Instructions.

    /// Appends an instruction of the table. `ty` replaces `{}` in its text, and is ignored for
    /// instructions without a type.
    #[track_caller]
    pub fn emit(&mut self, op: Op, ty: PtxType, to: &[Operand], from: &[Operand]) {
        let row = op.row();
        let kernel = &mut self.kernel;
        if !verify::accepts(kernel, row, ty, to, from) {
            let at = Place(Location::caller());
            let mistake = verify::mistake(kernel, op, ty, [to, from], at);
            self.error.get_or_insert(mistake);
            return;
        }
        kernel.since = kernel.since.max(row.since);
        let regs = kernel.code.push(op, ty, self.guard, to, from);
        let at = Place(Location::caller());
        if let Err(error) = verify::own(self.number, regs, || row.name(ty), at) {
            self.error.get_or_insert(error);
        }
    }

    /// Adds the instructions since the last branch, loop or comment to the open block.
    fn end_run(&mut self) {
        let end = self.kernel.code.insts().len();
        let run = self.begun..end;
        self.begun = end;
        if let Some(block) = self.open.last_mut().filter(|_| !run.is_empty()) {
            block.push(Node::Run(run));
        }
    }

    fn push(&mut self, node: Node) {
        self.end_run();
        if let Some(block) = self.open.last_mut() {
            block.push(node);
        }
    }

    /// Appends an instruction with one result, and returns a new register of type `result`.
    #[track_caller]
    pub fn op(&mut self, op: Op, ty: PtxType, result: PtxType, from: &[Operand]) -> Reg {
        let reg = self.reg(result);
        self.emit(op, ty, &[reg.into()], from);
        reg
    }

    /// Appends an instruction without a type and without a result.
    #[track_caller]
    pub fn act(&mut self, op: Op, from: &[Operand]) {
        self.emit(op, PtxType::B32, &[], from);
    }

    /// Appends a conversion, or another instruction whose text contains its types, and returns the
    /// result.
    #[track_caller]
    pub fn convert(&mut self, op: Op, result: PtxType, from: &[Operand]) -> Reg {
        self.op(op, PtxType::B32, result, from)
    }
}

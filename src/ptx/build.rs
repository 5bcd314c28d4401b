//! The builder: kernels written as Rust, instruction by instruction, with loops and branches as
//! closures.
//!
//! Every method goes through [`Builder::emit`], which checks the operands against the
//! [instruction table](super::inst). The first mistake is kept, with the line of Rust that made
//! it, and comes back from [`Builder::finish`]; so kernels read without a `?` on every line.

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
#[derive(Debug)]
pub struct Builder {
    kernel: PtxKernel,
    /// What its registers are known by: another one only after 65,536 builders.
    number: u16,
    /// Blocks that are open; what is written goes to the last.
    open: Vec<Vec<Node>>,
    /// The first instruction that is in no block yet.
    begun: usize,
    guard: Option<(Reg, bool)>,
    error: Option<Error>,
}

/// The type of the first register among `operands`, or `f32` for constants alone.
fn type_of(operands: &[Operand]) -> PtxType {
    let reg = operands.iter().find_map(|operand| match operand {
        Operand::Reg(reg) => Some(reg.ty),
        _ => None,
    });
    reg.unwrap_or(PtxType::F32)
}

fn is_real(ty: PtxType) -> bool {
    matches!(ty, PtxType::F32 | PtxType::F64)
}

/// Methods whose result has the type of their operands; integers and real numbers may have
/// different instructions.
macro_rules! arithmetic {
    ($($(#[$doc:meta])* $name:ident($($arg:ident),*) = $integer:ident | $real:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<'a>(&mut self, $($arg: impl Into<Operand<'a>>),*) -> Reg {
            let from = [$($arg.into()),*];
            let ty = type_of(&from);
            let op = if is_real(ty) { Op::$real } else { Op::$integer };
            self.op(op, ty, ty, &from)
        }
    )*};
}

/// Methods on untyped bits, whose result has the type of their first register.
macro_rules! bitwise {
    ($($(#[$doc:meta])* $name:ident($($arg:ident),*) = $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<'a>(&mut self, $($arg: impl Into<Operand<'a>>),*) -> Reg {
            let from = [$($arg.into()),*];
            let ty = type_of(&from);
            self.op(Op::$op, ty.untyped(), ty, &from)
        }
    )*};
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident = $integer:ident | $real:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<'a>(
            &mut self,
            a: impl Into<Operand<'a>>,
            b: impl Into<Operand<'a>>,
        ) -> Reg {
            let from = [a.into(), b.into()];
            let ty = type_of(&from);
            let op = if is_real(ty) { Op::$real } else { Op::$integer };
            self.op(op, ty, PtxType::Pred, &from)
        }
    )*};
}

impl Builder {
    /// An empty kernel. Its name, its parameters' and its shared arrays' are
    /// [identifiers of PTX](https://docs.nvidia.com/cuda/parallel-thread-execution/#identifiers).
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

    /// What the kernel is written for.
    pub fn target(&self) -> Target {
        self.kernel.target
    }

    /// The kernel, verified.
    ///
    /// # Errors
    /// The first mistake made while building, or what the verifier found.
    pub fn finish(mut self) -> Result<PtxKernel> {
        self.emit(Op::Ret, PtxType::B32, &[], &[]);
        if let Some(error) = self.error {
            return Err(error);
        }
        self.end_run();
        self.kernel.code.nodes = self.open.pop().unwrap_or_default();
        // A register of a builder of the same number may itself have a higher one.
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

    /// A register without a value yet.
    pub fn reg(&mut self, ty: PtxType) -> Reg {
        self.kernel.registers += 1;
        Reg {
            id: self.kernel.registers as u32 - 1,
            ty,
            builder: self.number,
        }
    }

    /// So many registers without a value yet.
    pub fn regs(&mut self, ty: PtxType, count: usize) -> Vec<Reg> {
        (0..count).map(|_| self.reg(ty)).collect()
    }

    /// So many registers with one value.
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

    /// A new register with a value.
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

    /// A register of the hardware.
    #[track_caller]
    pub fn special(&mut self, special: Special) -> Reg {
        self.value(PtxType::U32, special)
    }

    /// The next parameter, an address of values of type `ty` in global memory.
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

    /// The next parameter, a number.
    #[track_caller]
    pub fn scalar(&mut self, name: &'static str, ty: PtxType) -> Reg {
        self.load_param(name, ParamType::Scalar(ty), ty)
    }

    /// The next parameter, a tensor map; the result is its address.
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

    /// A shared array of so many values, one at least; the result is its address.
    #[track_caller]
    pub fn shared(&mut self, name: &str, ty: PtxType, count: u32) -> Reg {
        self.shared_bytes(name, count.saturating_mul(ty.bytes()), 16, false)
    }

    /// Shared memory whose size is part of the launch, as it must be beyond 48 KiB; 1024-byte
    /// aligned. A kernel has at most one such array.
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

    /// Appends one instruction of the table. `ty` replaces `{}` in its text; for instructions
    /// without a type it is ignored.
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
        if let Err(error) = verify::own(self.number, regs, row.text, Place(Location::caller())) {
            self.error.get_or_insert(error);
        }
    }

    /// Puts the instructions since the last branch, loop or comment into the block.
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

    /// An instruction with one result of type `result`.
    #[track_caller]
    pub fn op(&mut self, op: Op, ty: PtxType, result: PtxType, from: &[Operand]) -> Reg {
        let reg = self.reg(result);
        self.emit(op, ty, &[reg.into()], from);
        reg
    }

    /// An instruction without a type and without a result.
    #[track_caller]
    pub fn act(&mut self, op: Op, from: &[Operand]) {
        self.emit(op, PtxType::B32, &[], from);
    }

    /// A conversion, or another instruction whose text names its types.
    #[track_caller]
    pub fn convert(&mut self, op: Op, result: PtxType, from: &[Operand]) -> Reg {
        self.op(op, PtxType::B32, result, from)
    }

    arithmetic! {
        /// `a + b`.
        add(a, b) = Add | AddRn;
        /// `a − b`.
        sub(a, b) = Sub | SubRn;
        /// `a · b`, of integers the low half.
        mul(a, b) = MulLo | MulRn;
        /// `a · b + c`: of real numbers rounded once, of integers the low half.
        fma(a, b, c) = MadLo | Fma;
        /// `a / b`; integers are rounded towards zero.
        div(a, b) = Div | DivRn;
        /// The remainder of integers' division.
        rem(a, b) = Rem | Rem;
        /// The smaller one; the other one where one is NaN.
        min(a, b) = Min | Min;
        /// The larger one; the other one where one is NaN.
        max(a, b) = Max | Max;
        /// `−a`.
        neg(a) = Neg | Neg;
        /// `|a|`.
        abs(a) = Abs | Abs;
        /// Bits to the right, with zeros or the sign in front.
        shr(a, by) = Shr | Shr;
        /// √a, rounded to nearest.
        sqrt(a) = SqrtRn | SqrtRn;
        /// 1/a, rounded to nearest.
        rcp(a) = RcpRn | RcpRn;
        /// 1/√a, with a relative error below 2⁻²².
        rsqrt(a) = Rsqrt | Rsqrt;
        /// 2ᵃ, with a relative error below 2⁻²².
        ex2(a) = Ex2 | Ex2;
        /// log₂ a.
        lg2(a) = Lg2 | Lg2;
    }

    bitwise! {
        /// Bitwise and.
        and(a, b) = And;
        /// Bitwise or.
        or(a, b) = Or;
        /// Bitwise exclusive or.
        xor(a, b) = Xor;
        /// Bitwise complement.
        not(a) = Not;
        /// Bits to the left.
        shl(a, by) = Shl;
    }

    comparisons! {
        /// Whether `a = b`.
        eq = SetEq | SetEq;
        /// Whether `a ≠ b`; true of NaN.
        ne = SetNe | SetNeu;
        /// Whether `a < b`.
        lt = SetLt | SetLt;
        /// Whether `a ≤ b`.
        le = SetLe | SetLe;
        /// Whether `a > b`.
        gt = SetGt | SetGt;
        /// Whether `a ≥ b`.
        ge = SetGe | SetGe;
    }

    /// eᵃ as 2 to the power of `a · log₂ e`. The product's rounding makes the relative error
    /// grow with |a|, to |a| · 2⁻²⁴ · 1.45.
    #[track_caller]
    pub fn exp<'a>(&mut self, a: impl Into<Operand<'a>>) -> Reg {
        let a = self.mul(a, std::f32::consts::LOG2_E);
        self.ex2(a)
    }

    /// `a` where `cond` holds, `b` elsewhere.
    #[track_caller]
    pub fn select<'a>(
        &mut self,
        cond: Reg,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
    ) -> Reg {
        let from = [a.into(), b.into(), cond.into()];
        let ty = type_of(&from[..2]);
        self.op(Op::Selp, ty, ty, &from)
    }

    /// Writes a register again.
    #[track_caller]
    pub fn assign<'a>(&mut self, to: Reg, value: impl Into<Operand<'a>>) {
        let ty = if to.ty.class() == to.ty.untyped().class() {
            to.ty.untyped()
        } else {
            to.ty
        };
        self.emit(Op::Mov, ty, &[to.into()], &[value.into()]);
    }

    /// `to += a`.
    #[track_caller]
    pub fn add_assign<'a>(&mut self, to: Reg, a: impl Into<Operand<'a>>) {
        let op = if is_real(to.ty) { Op::AddRn } else { Op::Add };
        self.emit(op, to.ty, &[to.into()], &[to.into(), a.into()]);
    }

    /// `to = to · a`.
    #[track_caller]
    pub fn mul_assign<'a>(&mut self, to: Reg, a: impl Into<Operand<'a>>) {
        let op = if is_real(to.ty) { Op::MulRn } else { Op::MulLo };
        self.emit(op, to.ty, &[to.into()], &[to.into(), a.into()]);
    }

    /// `to += a · b`, rounded once.
    #[track_caller]
    pub fn fma_assign<'a>(
        &mut self,
        to: Reg,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
    ) {
        let from = [a.into(), b.into(), to.into()];
        self.emit(Op::Fma, to.ty, &[to.into()], &from);
    }

    /// `a + by`, or `a` itself if that is the same.
    #[track_caller]
    pub fn offset(&mut self, a: Reg, by: u32) -> Reg {
        if by == 0 { a } else { self.add(a, by) }
    }

    /// `base + index · bytes`, the address of a value in global memory.
    #[track_caller]
    pub fn at(&mut self, base: Reg, index: Reg, bytes: u32) -> Reg {
        let from = [index.into(), bytes.into(), base.into()];
        self.op(Op::MadWide, PtxType::U32, PtxType::U64, &from)
    }

    /// `base + (row · stride + col) · bytes`, the address of a value of a row-major matrix, right
    /// beyond 2³² values.
    #[track_caller]
    pub fn at_2d(&mut self, base: Reg, row: Reg, stride: Reg, col: Reg, bytes: u32) -> Reg {
        let col = self.widen(col);
        let from = [row.into(), stride.into(), col.into()];
        let index = self.op(Op::MadWide, PtxType::U32, PtxType::U64, &from);
        self.fma(index, i64::from(bytes), base)
    }

    /// A `u32` as `u64`.
    #[track_caller]
    pub fn widen(&mut self, a: Reg) -> Reg {
        self.convert(Op::CvtU64U32, PtxType::U64, &[a.into()])
    }

    /// Loads from global memory that nothing writes while the kernel runs.
    #[track_caller]
    pub fn ld_global(&mut self, ty: PtxType, address: Reg, offset: i32) -> Reg {
        self.ld(Op::LdGlobalNc, ty, address, offset)
    }

    /// Loads one value. A type of 8 bits is loaded into a register of 32.
    #[track_caller]
    pub fn ld(&mut self, op: Op, ty: PtxType, address: Reg, offset: i32) -> Reg {
        let result = match ty {
            PtxType::U8 => PtxType::U32,
            PtxType::S8 => PtxType::S32,
            _ => ty,
        };
        self.op(op, memory_type(ty), result, &[Operand::At(address, offset)])
    }

    /// Loads two or four values at once, from an address that is a multiple of their size.
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

    /// Stores one value, or a vector of them, to global memory.
    #[track_caller]
    pub fn st_global<'a>(
        &mut self,
        ty: PtxType,
        address: Reg,
        at: i32,
        value: impl Into<Operand<'a>>,
    ) {
        let from = [Operand::At(address, at), value.into()];
        self.emit(Op::StGlobal, memory_type(ty), &[], &from);
    }

    /// Stores one value, or a vector of them, to shared memory.
    #[track_caller]
    pub fn st_shared<'a>(
        &mut self,
        ty: PtxType,
        address: Reg,
        at: i32,
        value: impl Into<Operand<'a>>,
    ) {
        let from = [Operand::At(address, at), value.into()];
        self.emit(Op::StShared, memory_type(ty), &[], &from);
    }

    /// All threads of the block wait for each other, and see each other's writes.
    #[track_caller]
    pub fn barrier(&mut self) {
        self.act(Op::BarSync, &[0.into()]);
    }

    /// All threads of the cluster wait for each other, and see each other's writes.
    #[track_caller]
    pub fn cluster_barrier(&mut self) {
        self.act(Op::ClusterArrive, &[]);
        self.act(Op::ClusterWait, &[]);
    }

    /// In a kernel that [overlaps](Launch::overlaps): lets the next kernel begin, and waits for the
    /// results of those before. Before it nothing may be read that they write, and nothing written.
    #[track_caller]
    pub fn wait_for_grid(&mut self) {
        if self.kernel.launch.overlaps {
            self.act(Op::GridLaunchNext, &[]);
            self.act(Op::GridWait, &[]);
        }
    }

    /// The value of the lane whose number differs from this one's by an XOR with `mask`.
    #[track_caller]
    pub fn shuffle_xor(&mut self, a: Reg, mask: u32) -> Reg {
        let from = [a.into(), mask.into(), 31.into(), ALL_LANES.into()];
        self.op(Op::ShflBfly, PtxType::B32, a.ty, &from)
    }

    // Structure.

    /// A comment in the text, of one line or several. What is not ASCII is written as an escape.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.push(Node::Comment(text.into()));
    }

    /// Instructions that run where `cond` is `wanted`, each under a predicate of its own: for a
    /// few of them, without a branch. An instruction has one guard: no guard, branch or loop may
    /// stand under another, which [`Builder::finish`] says. For two conditions there is
    /// [`Builder::and`].
    #[track_caller]
    pub fn guarded(&mut self, cond: Reg, wanted: bool, body: impl FnOnce(&mut Self)) {
        self.check_condition("guarded", cond);
        let outer = self.guard.replace((cond, wanted));
        body(self);
        self.guard = outer;
    }

    /// Keeps a mistake in what a guard, a branch or a loop depends on, or that it stands under a
    /// guard itself.
    #[track_caller]
    fn check_condition(&mut self, what: &'static str, cond: Reg) {
        let at = Place(Location::caller());
        let checked = match self.guard {
            None => verify::condition(what, cond, at)
                .and_then(|()| verify::own(self.number, &[cond], what, at)),
            Some(_) => Err(Error::UnderGuard { at, what }),
        };
        if let Err(error) = checked {
            self.error.get_or_insert(error);
        }
    }

    fn block(&mut self, body: impl FnOnce(&mut Self)) -> Vec<Node> {
        self.end_run();
        self.open.push(Vec::new());
        body(self);
        self.end_run();
        self.open.pop().unwrap_or_default()
    }

    /// `body` where `cond` holds.
    #[track_caller]
    pub fn when(&mut self, cond: Reg, body: impl FnOnce(&mut Self)) {
        self.when_else(cond, body, |_| ());
    }

    /// `then` where `cond` holds, `otherwise` elsewhere.
    #[track_caller]
    pub fn when_else(
        &mut self,
        cond: Reg,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        self.check_condition("when", cond);
        let then = self.block(then);
        let otherwise = self.block(otherwise);
        self.push(Node::If {
            cond,
            then,
            otherwise,
        });
    }

    /// `body` once, and again for as long as the predicate that it returns holds.
    #[track_caller]
    pub fn repeat_while(&mut self, body: impl FnOnce(&mut Self) -> Reg) {
        let mut again = None;
        let body = self.block(|k| again = Some(body(k)));
        if let Some(again) = again {
            self.check_condition("repeat_while", again);
            self.push(Node::Loop { body, again });
        }
    }

    /// `body(i)` for `i` from `start` in steps of `step` while it is below `end`. The largest `i`
    /// plus `step` must fit its type.
    #[track_caller]
    pub fn for_range<'a>(
        &mut self,
        start: impl Into<Operand<'a>>,
        end: impl Into<Operand<'a>>,
        step: impl Into<Operand<'a>>,
        body: impl FnOnce(&mut Self, Reg),
    ) {
        let (end, step) = (end.into(), step.into());
        let i = self.value(PtxType::U32, start);
        let some = self.lt(i, end);
        self.when(some, |k| {
            k.repeat_while(|k| {
                body(k, i);
                k.add_assign(i, step);
                k.lt(i, end)
            });
        });
    }
}

/// Memory instructions know 16-bit floating-point numbers as bits.
fn memory_type(ty: PtxType) -> PtxType {
    match ty {
        PtxType::F16 | PtxType::BF16 | PtxType::F16x2 | PtxType::BF16x2 | PtxType::TF32 => {
            ty.untyped()
        }
        _ => ty,
    }
}

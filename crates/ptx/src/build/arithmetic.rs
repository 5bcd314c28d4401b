//! Arithmetic, comparisons, conversions and assignments.

use super::Builder;
use crate::inst::{Op, Operand, Reg};
use crate::types::PtxType;

/// Returns the type of the first register among `operands`, or `f32` if all are constants.
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

/// Declares methods whose result has the type of their operands. Integers and floating-point
/// numbers may have different instructions.
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

/// Declares methods on untyped bits, whose result has the type of their first register.
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
    arithmetic! {
        /// Computes `a + b`.
        add(a, b) = Add | AddRn;
        /// Computes `a − b`.
        sub(a, b) = Sub | SubRn;
        /// Computes `a · b`; for integers the low half.
        mul(a, b) = MulLo | MulRn;
        /// Computes `a · b + c`, rounded once; for integers the low half.
        fma(a, b, c) = MadLo | Fma;
        /// Computes `a / b`; integers are rounded towards zero.
        div(a, b) = Div | DivRn;
        /// Computes the remainder of an integer division.
        rem(a, b) = Rem | Rem;
        /// Returns the smaller operand; if one is NaN, the other one.
        min(a, b) = Min | Min;
        /// Returns the larger operand; if one is NaN, the other one.
        max(a, b) = Max | Max;
        /// Computes `−a`.
        neg(a) = Neg | Neg;
        /// Computes `|a|`.
        abs(a) = Abs | Abs;
        /// Shifts bits to the right, and fills with zeros or the sign.
        shr(a, by) = Shr | Shr;
        /// Computes √a, rounded to nearest.
        sqrt(a) = SqrtRn | SqrtRn;
        /// Computes 1/a, rounded to nearest.
        rcp(a) = RcpRn | RcpRn;
        /// Computes 1/√a, with a relative error below 2⁻²².
        rsqrt(a) = Rsqrt | Rsqrt;
        /// Computes 2ᵃ, with a relative error below 2⁻²².
        ex2(a) = Ex2 | Ex2;
        /// Computes log₂ a.
        lg2(a) = Lg2 | Lg2;
    }

    bitwise! {
        /// Computes the bitwise AND.
        and(a, b) = And;
        /// Computes the bitwise OR.
        or(a, b) = Or;
        /// Computes the bitwise XOR.
        xor(a, b) = Xor;
        /// Computes the bitwise complement.
        not(a) = Not;
        /// Shifts bits to the left.
        shl(a, by) = Shl;
    }

    comparisons! {
        /// Whether `a = b`.
        eq = SetEq | SetEq;
        /// Whether `a ≠ b`; true if either is NaN.
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

    /// Computes eᵃ as 2 to the power of `a · log₂ e`. The rounding of the product adds a relative
    /// error of |a| · 2⁻²⁴ · 1.45.
    #[track_caller]
    pub fn exp<'a>(&mut self, a: impl Into<Operand<'a>>) -> Reg {
        let a = self.mul(a, std::f32::consts::LOG2_E);
        self.ex2(a)
    }

    /// Returns `a` if `cond` is true, and `b` otherwise.
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

    /// Assigns a new value to a register.
    #[track_caller]
    pub fn assign<'a>(&mut self, to: Reg, value: impl Into<Operand<'a>>) {
        let ty = if to.ty.class() == to.ty.untyped().class() {
            to.ty.untyped()
        } else {
            to.ty
        };
        self.emit(Op::Mov, ty, &[to.into()], &[value.into()]);
    }

    /// Computes `to += a`.
    #[track_caller]
    pub fn add_assign<'a>(&mut self, to: Reg, a: impl Into<Operand<'a>>) {
        let op = if is_real(to.ty) { Op::AddRn } else { Op::Add };
        self.emit(op, to.ty, &[to.into()], &[to.into(), a.into()]);
    }

    /// Computes `to = to · a`.
    #[track_caller]
    pub fn mul_assign<'a>(&mut self, to: Reg, a: impl Into<Operand<'a>>) {
        let op = if is_real(to.ty) { Op::MulRn } else { Op::MulLo };
        self.emit(op, to.ty, &[to.into()], &[to.into(), a.into()]);
    }

    /// Computes `to += a · b`, rounded once.
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

    /// Computes `a + by`, or returns `a` if `by` is 0.
    #[track_caller]
    pub fn offset(&mut self, a: Reg, by: u32) -> Reg {
        if by == 0 { a } else { self.add(a, by) }
    }

    /// Converts a `u32` to `u64`.
    #[track_caller]
    pub fn widen(&mut self, a: Reg) -> Reg {
        self.convert(Op::CvtU64U32, PtxType::U64, &[a.into()])
    }
}

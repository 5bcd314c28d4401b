//! The instruction table: what can be emitted, on which types, with which operands, and from
//! which target and version of PTX on.
//!
//! A row is one instruction. The builder, the verifier and the emitter all read it; nothing
//! else says what an instruction looks like. Source: NVIDIA's *PTX ISA*, release 9.0.

mod kind;
mod operand;
mod row;
mod table;

pub(crate) use kind::Kind;
pub use operand::{Operand, Reg, Special};
pub(crate) use row::{Hole, Row, Together, Traits};
pub use table::Op;

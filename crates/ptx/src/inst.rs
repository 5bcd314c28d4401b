//! The instruction table: the instructions that can be emitted, with their types and operands, and
//! the first target and version of PTX that support them.
//!
//! A row is one instruction. The builder, the verifier and the emitter all read it; nothing
//! else describes instructions. Source: NVIDIA's *PTX ISA*, release 9.0.

mod kind;
mod operand;
mod row;
mod table;

pub(crate) use kind::Kind;
pub use operand::{Operand, Reg, Special};
pub(crate) use row::{Hole, Row, Together, Traits};
pub use table::Op;

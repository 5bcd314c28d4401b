//! Graphs of operations as data: recorded nodes, and the plans made of them.
//!
//! The files:
//!
//! - `node` is a recorded operation, `plan` a compiled graph.
//! - `rewrite` removes needless operations, `fuse` decides which operations share a kernel and which inputs are read in
//!   a pattern, `memory_plan` decides which values share memory, `partition` cuts a graph by rows, `index_arguments`
//!   finds the arguments of programs that are indices.
//! - `steps` has the steps of language models and the interface of back-ends that run them.

mod bindings;
#[cfg(feature = "llm-core")]
#[cfg_attr(not(any(feature = "gpu", feature = "cuda")), allow(dead_code))]
pub(crate) mod choice;
pub(crate) mod fuse;
mod index_arguments;
mod memory_plan;
pub(crate) mod node;
mod partition;
pub(crate) mod plan;
mod rewrite;
#[cfg(feature = "llm-core")]
#[cfg_attr(not(any(feature = "gpu", feature = "cuda")), allow(dead_code))]
pub(crate) mod steps;

pub(crate) use bindings::{Binding, Fetched, Repeat, in_memory};
pub(crate) use fuse::Kernel;
#[cfg(feature = "gpu")]
pub(crate) use fuse::{Chain, Operand, Repeated, Step};
pub(crate) use index_arguments::IndexArgument;
pub(crate) use node::{Node, Source};
pub(crate) use partition::{Division, Given};
pub(crate) use plan::Plan;
pub use plan::{BufferPlace, Explanation, KernelInfo, PlanSummary};

//! Graphs that tensors of JavaScript record, as a list of words of 32 bits. `js/npm/tensor/node.js` writes and reads the
//! same list. The module that computes plans such graphs, and that of `relampago/train` adds nodes to them.

//!
//! `read` reads nodes, and `write` writes them.

mod read;
#[cfg(feature = "js-train")]
mod write;

pub(crate) use read::{Words, read_node};
#[cfg(feature = "js-train")]
pub(crate) use write::written;

use crate::ops::AxisFold;

/// The reductions in the order of `FOLDS` in `js/npm/tensor/elementwise.js`.
const FOLDS: [AxisFold; 6] = [
    AxisFold::Sum,
    AxisFold::Mean,
    AxisFold::Max,
    AxisFold::Min,
    AxisFold::Argmax,
    AxisFold::Argmin,
];

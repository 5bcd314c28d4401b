//! Graphs that tensors of JavaScript record, as a list of words of 32 bits. `js/npm/tensor/node.js` writes and reads the
//! same list. The module that computes plans such graphs, and those of `relampago/train` and `relampago/numeric` add nodes
//! to them.
//!
//! `words` has lists of words, `read` reads nodes, and `write` writes them.

#[cfg(any(feature = "js", feature = "js-train"))]
mod read;
mod words;
#[cfg(any(feature = "js-train", feature = "js-numeric"))]
mod write;

#[cfg(any(feature = "js", feature = "js-train"))]
pub(crate) use read::read_node;
pub(crate) use words::Words;
#[cfg(feature = "js-train")]
pub(crate) use write::written;
#[cfg(feature = "js-numeric")]
pub(crate) use write::{write_leaf, write_list, write_node};

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

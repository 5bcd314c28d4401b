//! Arguments of programs that operations take as indices.

use super::node::{Node, Source};
use crate::error::Result;
use crate::ops::indices::{check_all, index_input};

/// A placeholder that an operation takes as its indices.
pub(crate) struct IndexArgument {
    pub(crate) placeholder: usize,
    /// The name of the operation's input.
    what: &'static str,
    /// The number that each index must be below.
    count: usize,
}

impl IndexArgument {
    /// Returns the arguments that are indices of some of a graph's operations.
    pub(crate) fn all(nodes: &[Node], operations: impl Iterator<Item = usize>) -> Vec<Self> {
        let argument = |node: usize| {
            let (op, inputs) = nodes[node].operation()?;
            let (place, count) = index_input(op)?;
            let Source::Placeholder(placeholder) = nodes[inputs[place]].source else {
                return None;
            };
            let what = op.inputs()[place];
            Some(Self {
                placeholder,
                what,
                count,
            })
        };
        operations.filter_map(argument).collect()
    }

    /// Checks the values of the argument.
    ///
    /// # Errors
    /// `InvalidArgument` with the first invalid index.
    pub(crate) fn check(&self, values: &[f32]) -> Result<()> {
        check_all(self.what, values, self.count)
    }
}

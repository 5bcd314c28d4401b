//! The graph that results need, in an order in which it can be computed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::lazy::node::{Kind, Node, Source, State};
use crate::lazy::structure::{Described, Structure};

/// A node as a graph has it, even if it becomes a leaf meanwhile.
pub(super) struct Entry {
    pub(super) node: Arc<Node>,
    pub(super) step: Step,
}

pub(super) enum Step {
    Leaf(Source),
    /// An operation with the indices of its inputs.
    Operation(Arc<Kind>, Vec<usize>),
}

pub(super) struct Graph {
    /// All nodes, each after its inputs.
    pub(super) entries: Vec<Entry>,
    /// The indices of the results.
    pub(super) results: Vec<usize>,
}

/// A node whose inputs are being ordered.
struct Open {
    node: Arc<Node>,
    state: State,
    /// The number of inputs that were visited.
    visited: usize,
}

impl Open {
    fn new(node: &Arc<Node>) -> Self {
        Self {
            node: Arc::clone(node),
            state: node.state(),
            visited: 0,
        }
    }

    fn next_input(&mut self) -> Option<Arc<Node>> {
        let State::Operation(_, inputs) = &self.state else {
            return None;
        };
        let input = inputs.get(self.visited).cloned();
        self.visited += 1;
        input
    }
}

impl Graph {
    /// Orders all nodes that results need. It does not recurse, since graphs may be deeper than the stack.
    pub(super) fn of(results: &[Arc<Node>]) -> Self {
        let mut entries = Vec::new();
        let mut places: HashMap<*const Node, usize> = HashMap::new();
        for result in results {
            let mut open = Vec::new();
            if !places.contains_key(&Arc::as_ptr(result)) {
                open.push(Open::new(result));
            }
            while let Some(last) = open.last_mut() {
                match last.next_input() {
                    Some(input) if places.contains_key(&Arc::as_ptr(&input)) => {}
                    Some(input) => open.push(Open::new(&input)),
                    None => {
                        let Some(done) = open.pop() else { break };
                        places.insert(Arc::as_ptr(&done.node), entries.len());
                        entries.push(entry(done, &places));
                    }
                }
            }
        }
        let results = results.iter().map(|node| places[&Arc::as_ptr(node)]);
        let results = results.collect();
        Self { entries, results }
    }

    /// Returns the structure of the graph.
    pub(super) fn structure(&self) -> Structure {
        let nodes = self.entries.iter().map(|Entry { node, step }| Described {
            shape: node.shape.clone(),
            operation: match step {
                Step::Leaf(_) => None,
                Step::Operation(kind, inputs) => Some((Arc::clone(kind), inputs.clone())),
            },
        });
        Structure {
            nodes: nodes.collect(),
            results: self.results.clone(),
        }
    }
}

fn entry(done: Open, places: &HashMap<*const Node, usize>) -> Entry {
    let step = match done.state {
        State::Leaf(source) => Step::Leaf(source),
        State::Operation(kind, inputs) => {
            let inputs = inputs.iter().map(|input| places[&Arc::as_ptr(input)]);
            Step::Operation(kind, inputs.collect())
        }
    };
    let node = done.node;
    Entry { node, step }
}

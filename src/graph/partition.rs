//! Graphs divided by rows: each part computes its rows of the outputs from its rows of some inputs
//! and all of others. Sums run over whole rows, so that every element equals that of the undivided
//! graph.

use crate::graph::node::{Node, Source, live};
use crate::ops::{Conv2d, Matmul, Op, OpClass, Padding};

/// A graph whose outputs are computed in parts of whole rows; of one row, if it cannot be cut.
#[derive(Default)]
pub(crate) struct Division {
    /// The number of rows to divide.
    pub(crate) rows: usize,
    /// The number of values of the widest row that is read, computed or written.
    pub(crate) width: usize,
    /// The inputs of each part, in the order of its placeholders.
    pub(crate) given: Vec<Given>,
    pieces: Vec<PartNode>,
    /// The outputs among the pieces, and the number of values of a row of each.
    outputs: Vec<(usize, usize)>,
}

/// The elements of a leaf that a part receives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Given {
    Whole(usize),
    Rows(usize, Window),
}

/// Values that belong to some rows: `each` for a row, and `more` after the last, or less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    each: usize,
    more: isize,
}

impl Window {
    fn len(self, rows: usize) -> usize {
        (rows * self.each).saturating_add_signed(self.more)
    }

    /// Returns the range of elements of some rows.
    pub(crate) fn range(self, rows: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let start = rows.start * self.each;
        start..start + self.len(rows.len())
    }
}

/// A node of every part.
enum PartNode {
    /// An index into `given`.
    Given(usize),
    /// All values of a leaf that is the same in each run.
    Constant(usize),
    /// All values of an operation.
    Whole(Op, Vec<usize>, usize),
    /// An operation by rows: the number of its rows for each row that is divided, and of elements.
    Rows(Op, Vec<usize>, [usize; 2]),
}

/// The part of an input that an operation by rows needs.
#[derive(Clone, Copy, PartialEq)]
enum Need {
    Rows,
    Whole,
    /// Rows and some after them.
    Band,
}

impl Division {
    /// A graph cut by rows where that is possible.
    pub(crate) fn new(nodes: &[Node], outputs: &[usize]) -> Self {
        let whole = || Needs::whole(nodes, outputs);
        Needs::by_rows(nodes, outputs)
            .unwrap_or_else(whole)
            .divide(outputs)
    }

    /// The number of values in a row of each output.
    pub(crate) fn widths(&self) -> impl Iterator<Item = usize> {
        self.outputs.iter().map(|&(_, width)| width)
    }

    /// The leaves that are the same in each run and that every part has whole.
    pub(crate) fn constants(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().filter_map(|piece| match piece {
            PartNode::Constant(leaf) => Some(*leaf),
            _ => None,
        })
    }

    /// Returns the graph for `rows` rows, its outputs, and the lengths of its placeholders;
    /// `constant` returns the buffer index of a leaf that is the same in each run.
    pub(crate) fn part(
        &self,
        nodes: &[Node],
        rows: usize,
        constant: &dyn Fn(usize) -> usize,
    ) -> (Vec<Node>, Vec<usize>, Vec<usize>) {
        let given = self.given.iter().map(|given| match *given {
            Given::Whole(leaf) => nodes[leaf].len,
            Given::Rows(_, window) => window.len(rows),
        });
        let placeholders: Vec<usize> = given.collect();
        let part = self.pieces.iter().map(|piece| match piece {
            &PartNode::Given(place) => Node {
                source: Source::Placeholder(place),
                len: placeholders[place],
            },
            &PartNode::Constant(leaf) => Node {
                source: Source::Input(constant(leaf)),
                len: nodes[leaf].len,
            },
            PartNode::Whole(op, inputs, len) => node(op.clone(), inputs, *len),
            PartNode::Rows(op, inputs, [each, width]) => {
                node(of_rows(op, rows * each), inputs, rows * width)
            }
        });
        let outputs = self.outputs.iter().map(|&(output, _)| output);
        (part.collect(), outputs.collect(), placeholders)
    }
}

fn node(op: Op, inputs: &[usize], len: usize) -> Node {
    let inputs = inputs.to_vec();
    let source = Source::Op { op, inputs };
    Node { source, len }
}

/// The nodes that are needed, the part of each, and the size of its rows.
struct Needs<'a> {
    nodes: &'a [Node],
    rows: usize,
    by_rows: Vec<bool>,
    whole: Vec<bool>,
}

impl<'a> Needs<'a> {
    /// All of the graph, in one part.
    fn whole(nodes: &'a [Node], outputs: &[usize]) -> Self {
        Self {
            nodes,
            rows: 1,
            by_rows: vec![false; nodes.len()],
            whole: live(nodes, outputs),
        }
    }

    /// Finds the needs from the last node to the first; `None` if there are fewer than two rows.
    fn by_rows(nodes: &'a [Node], outputs: &[usize]) -> Option<Self> {
        let mut by_rows = vec![false; nodes.len()];
        let mut whole = vec![false; nodes.len()];
        let mut rows = 0;
        for &output in outputs {
            by_rows[output] = true;
        }
        for (place, node) in nodes.iter().enumerate().rev() {
            let operation = node.operation();
            if by_rows[place] {
                let own = operation.map_or(Some(node.len), |(op, _)| rows_of(op, node.len));
                rows = common_divisor(rows, own?);
            }
            let Some((op, inputs)) = operation else {
                continue;
            };
            for (operand, &input) in inputs.iter().enumerate() {
                let need = need(op, operand);
                whole[input] |= whole[place] || (by_rows[place] && need == Need::Whole);
                by_rows[input] |= by_rows[place] && need == Need::Rows;
                // What lies beyond a part's rows is computed nowhere.
                if by_rows[place] && need == Need::Band && nodes[input].operation().is_some() {
                    return None;
                }
            }
        }
        (rows > 1).then_some(Self {
            nodes,
            rows,
            by_rows,
            whole,
        })
    }

    fn divide(&self, outputs: &[usize]) -> Division {
        let mut division = Division {
            rows: self.rows,
            ..Division::default()
        };
        // The places of nodes as a whole, and of their rows.
        let mut places = [(); 2].map(|()| vec![0; self.nodes.len()]);
        for (index, node) in self.nodes.iter().enumerate() {
            if self.whole[index] {
                let piece = self.whole_piece(&mut division, &places[0], index);
                places[0][index] = division.push(piece, 0);
            }
            if self.by_rows[index] {
                let each = node.len / self.rows;
                let piece = self.rows_piece(&mut division, &places, index);
                places[1][index] = division.push(piece, each);
            }
        }
        for &output in outputs {
            let rows = usize::from(self.by_rows[output]);
            let width = self.nodes[output].len / self.rows;
            division.outputs.push((places[rows][output], width));
        }
        division
    }

    fn whole_piece(&self, division: &mut Division, places: &[usize], index: usize) -> PartNode {
        let node = &self.nodes[index];
        match &node.source {
            Source::Op { op, inputs } => {
                let inputs = inputs.iter().map(|&input| places[input]).collect();
                PartNode::Whole(op.clone(), inputs, node.len)
            }
            Source::Placeholder(_) => division.give(Given::Whole(index)),
            Source::Upload(_) | Source::Input(_) => PartNode::Constant(index),
        }
    }

    fn rows_piece(
        &self,
        division: &mut Division,
        [whole, by_rows]: &[Vec<usize>; 2],
        index: usize,
    ) -> PartNode {
        let node = &self.nodes[index];
        let width = node.len / self.rows;
        let Some((op, inputs)) = node.operation() else {
            let window = Window {
                each: width,
                more: 0,
            };
            return division.give(Given::Rows(index, window));
        };
        let each = rows_of(op, node.len).unwrap_or(node.len) / self.rows;
        let mut operands = Vec::new();
        for (operand, &input) in inputs.iter().enumerate() {
            operands.push(match need(op, operand) {
                Need::Rows => by_rows[input],
                Need::Whole => whole[input],
                Need::Band => {
                    let window = band(op, each);
                    let piece = division.give(Given::Rows(input, window));
                    division.push(piece, window.each)
                }
            });
        }
        PartNode::Rows(op.clone(), operands, [each, width])
    }
}

impl Division {
    fn push(&mut self, piece: PartNode, width: usize) -> usize {
        self.width = self.width.max(width);
        self.pieces.push(piece);
        self.pieces.len() - 1
    }

    /// Adds an input of the parts, unless it is there already.
    fn give(&mut self, given: Given) -> PartNode {
        let known = self.given.iter().position(|&other| other == given);
        PartNode::Given(known.unwrap_or_else(|| {
            self.given.push(given);
            self.given.len() - 1
        }))
    }
}

/// Returns the number of rows into which an operation with a result of `len` elements can be
/// divided.
fn rows_of(op: &Op, len: usize) -> Option<usize> {
    match *op {
        Op::Matmul { m, .. } => Some(m),
        Op::MatmulWith { options } if !options.transpose_a => Some(options.m),
        // Padding would come between the parts.
        Op::Convolve2d { options } if options.padding == Padding::Valid => {
            Some(options.output_shape().0)
        }
        Op::ConvolveLayer { options } => Some(options.batch),
        Op::GatherRows { cols, .. } => len.checked_div(cols),
        Op::TakeAlongRows { rows, .. }
        | Op::ArgmaxRows { rows, .. }
        | Op::TopKRows { rows, .. } => Some(rows),
        _ if op.is_elementwise() => Some(len),
        _ => op.by_rows().map(|[rows, _]| rows),
    }
}

fn need(op: &Op, operand: usize) -> Need {
    // Biases, gains and weights.
    let shared =
        op.by_rows().is_some() || matches!(op.class(), OpClass::Matmul | OpClass::Convolution);
    match op {
        Op::Convolve2d { .. } if operand == 0 => Need::Band,
        Op::GatherRows { .. } if operand == 0 => Need::Whole,
        _ if shared && operand > 0 => Need::Whole,
        _ => Need::Rows,
    }
}

/// Returns the window of a convolution's input for `rows` rows of its result.
fn band(op: &Op, rows: usize) -> Window {
    let Op::Convolve2d { options } = *op else {
        return Window { each: 0, more: 0 };
    };
    let cols = options.input_cols;
    let after = options.kernel_rows as isize - options.stride_rows as isize;
    Window {
        each: rows * options.stride_rows * cols,
        more: after * cols as isize,
    }
}

/// The operation of fewer rows.
fn of_rows(op: &Op, rows: usize) -> Op {
    match *op {
        Op::BiasAdd { cols, .. } => Op::BiasAdd { rows, cols },
        Op::SoftmaxRows { cols, .. } => Op::SoftmaxRows { rows, cols },
        Op::LogSoftmaxRows { cols, .. } => Op::LogSoftmaxRows { rows, cols },
        Op::LayerNorm { cols, epsilon, .. } => Op::LayerNorm {
            rows,
            cols,
            epsilon,
        },
        Op::RmsNorm { cols, epsilon, .. } => Op::RmsNorm {
            rows,
            cols,
            epsilon,
        },
        Op::CumsumRows { cols, .. } => Op::CumsumRows { rows, cols },
        Op::CumprodRows { cols, .. } => Op::CumprodRows { rows, cols },
        Op::SortRows { cols, .. } => Op::SortRows { rows, cols },
        Op::ArgsortRows { cols, .. } => Op::ArgsortRows { rows, cols },
        Op::FftRows { len, .. } => Op::FftRows { rows, len },
        Op::TakeAlongRows { cols, k, .. } => Op::TakeAlongRows { rows, cols, k },
        Op::ArgmaxRows { cols, .. } => Op::ArgmaxRows { rows, cols },
        Op::TopKRows { cols, k, .. } => Op::TopKRows { rows, cols, k },
        Op::Matmul { k, n, .. } => Op::Matmul { m: rows, k, n },
        Op::MatmulWith { options } => Op::MatmulWith {
            options: Matmul { m: rows, ..options },
        },
        Op::Convolve2d { options } => Op::Convolve2d {
            options: Conv2d {
                input_rows: rows.saturating_sub(1) * options.stride_rows + options.kernel_rows,
                ..options
            },
        },
        Op::ConvolveLayer { options } => Op::ConvolveLayer {
            options: options.with_batch(rows),
        },
        ref other => other.clone(),
    }
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests;

//! Rewriting of graphs to fewer operations with the same results: common subexpressions are
//! computed once, and algebraic identities are applied. Only rules that hold for every `f32` are
//! used, −0, ∞ and NaN included.

use super::node::{Node, Source};
use crate::ops::{Matmul, Op};

/// A graph that is rewritten while it is copied, from its first node to its last.
#[derive(Default)]
struct Rewriter {
    nodes: Vec<Node>,
    /// The operations that have a node as their first input.
    users: Vec<Vec<usize>>,
}

/// Rewrites a graph. Returns the new nodes and the new index of each old node.
pub(crate) fn rewrite(nodes: &[Node]) -> (Vec<Node>, Vec<usize>) {
    let mut rewriter = Rewriter::default();
    let mut places: Vec<usize> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let place = match &node.source {
            Source::Op { op, inputs } => {
                let inputs = inputs.iter().map(|&input| places[input]).collect();
                rewriter.operation(op.clone(), inputs, node.len)
            }
            _ => rewriter.push(node.clone()),
        };
        places.push(place);
    }
    (rewriter.nodes, places)
}

/// The replacement of an operation.
enum Rewritten {
    Operation(Op, Vec<usize>),
    Node(usize),
}

impl Rewriter {
    fn push(&mut self, node: Node) -> usize {
        let place = self.nodes.len();
        if let Some(&first) = node.inputs().first() {
            self.users[first].push(place);
        }
        self.nodes.push(node);
        self.users.push(Vec::new());
        place
    }

    fn operation(&mut self, op: Op, inputs: Vec<usize>, len: usize) -> usize {
        match self.simplified(op, inputs, len) {
            Rewritten::Node(node) => node,
            Rewritten::Operation(op, inputs) => self.find(&op, &inputs).unwrap_or_else(|| {
                let source = Source::Op { op, inputs };
                self.push(Node { source, len })
            }),
        }
    }

    /// The node that computes the same already.
    fn find(&self, op: &Op, inputs: &[usize]) -> Option<usize> {
        let users = &self.users[*inputs.first()?];
        let same = |&user: &usize| {
            let (other, others) = self.nodes[user].operation()?;
            (other.is_same(op) && others == inputs).then_some(user)
        };
        users.iter().find_map(same)
    }

    /// The operation that computes a node, with its first input.
    fn of(&self, node: usize) -> Option<(&Op, usize)> {
        let (op, inputs) = self.nodes[node].operation()?;
        Some((op, inputs[0]))
    }

    fn simplified(&self, op: Op, mut inputs: Vec<usize>, len: usize) -> Rewritten {
        let x = inputs[0];
        let before = self.of(x);
        let neg = |node: usize| match self.of(node) {
            Some((Op::Neg, of)) => Some(of),
            _ => None,
        };
        match (&op, before) {
            (Op::Neg, Some((Op::Neg, of))) => Rewritten::Node(of),
            (Op::Abs, Some((Op::Neg, of))) => Rewritten::Operation(op, vec![of]),
            (Op::Abs, Some((Op::Abs | Op::Exp | Op::Sigmoid, _)))
            | (Op::Relu, Some((Op::Relu | Op::Abs | Op::Exp | Op::Sigmoid, _))) => {
                Rewritten::Node(x)
            }
            (Op::Clip { .. }, Some((earlier, _))) if earlier.is_same(&op) => Rewritten::Node(x),
            (Op::Scale { factor: 1.0 }, _) => Rewritten::Node(x),
            (Op::Scale { factor: -1.0 }, _) => {
                // Again from the start: it may be a second negation.
                self.simplified(Op::Neg, inputs, len)
            }
            (Op::Scale { factor }, Some((Op::Neg, of)))
            | (Op::Neg, Some((Op::Scale { factor }, of))) => {
                Rewritten::Operation(Op::Scale { factor: -factor }, vec![of])
            }
            (Op::Minimum | Op::Maximum, _) if inputs[1] == x => Rewritten::Node(x),
            (Op::VecAdd, _) => match (neg(x), neg(inputs[1])) {
                (_, Some(b)) => Rewritten::Operation(Op::Sub, vec![x, b]),
                (Some(a), None) => Rewritten::Operation(Op::Sub, vec![inputs[1], a]),
                _ => Rewritten::Operation(op, inputs),
            },
            (Op::Sub, _) => match neg(inputs[1]) {
                Some(b) => Rewritten::Operation(Op::VecAdd, vec![x, b]),
                None => Rewritten::Operation(op, inputs),
            },
            (&Op::Transpose { rows, cols }, _) if rows <= 1 || cols <= 1 => Rewritten::Node(x),
            (&Op::Transpose { rows, cols }, Some((&Op::Transpose { rows: r, cols: c }, of)))
                if (rows, cols) == (c, r) =>
            {
                Rewritten::Node(of)
            }
            // All elements in their order.
            (Op::Rearrange { options }, _)
                if len == self.nodes[x].len
                    && options.cycle(len).is_some_and(|cycle| cycle.inner == 1) =>
            {
                Rewritten::Node(x)
            }
            (&Op::Matmul { m, k, n }, _) => self.product(Matmul::new(m, k, n), &mut inputs),
            (&Op::MatmulWith { options }, _) => self.product(options, &mut inputs),
            _ => Rewritten::Operation(op, inputs),
        }
    }

    /// Lets a matmul read transposed operands in place.
    fn product(&self, mut options: Matmul, inputs: &mut Vec<usize>) -> Rewritten {
        let Matmul { m, k, n, .. } = options;
        let flags = [&mut options.transpose_a, &mut options.transpose_b];
        let shapes = [(m, k), (k, n)];
        for ((input, flag), (rows, cols)) in inputs.iter_mut().zip(flags).zip(shapes) {
            let stored = if *flag { (cols, rows) } else { (rows, cols) };
            if let Some((&Op::Transpose { rows, cols }, of)) = self.of(*input)
                && (cols, rows) == stored
            {
                (*input, *flag) = (of, !*flag);
            }
        }
        let op = if options == Matmul::new(m, k, n) {
            Op::Matmul { m, k, n }
        } else {
            Op::MatmulWith { options }
        };
        Rewritten::Operation(op, std::mem::take(inputs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations on one input of `len` values; the names of those that are left for the last.
    fn left(len: usize, ops: &[(Op, &[usize])]) -> Vec<&'static str> {
        let source = Source::Placeholder(0);
        let mut nodes = vec![Node { source, len }];
        for (op, inputs) in ops {
            let (op, inputs) = (op.clone(), inputs.to_vec());
            let source = Source::Op { op, inputs };
            nodes.push(Node { source, len });
        }
        let (rewritten, places) = rewrite(&nodes);
        let live = super::super::node::live(&rewritten, &[places[nodes.len() - 1]]);
        let named = rewritten.iter().zip(live).filter(|(_, live)| *live);
        let ops = named.filter_map(|(node, _)| node.operation());
        ops.map(|(op, _)| op.name()).collect()
    }

    #[test]
    fn inverse_operations_cancel() {
        assert!(left(4, &[(Op::Neg, &[0]), (Op::Neg, &[1])]).is_empty());
        let minus = Op::Scale { factor: -1.0 };
        assert!(left(4, &[(Op::Neg, &[0]), (minus, &[1])]).is_empty());
        assert!(left(4, &[(Op::Scale { factor: 1.0 }, &[0])]).is_empty());
        assert_eq!(left(4, &[(Op::Relu, &[0]), (Op::Relu, &[1])]), ["relu"]);
        let (there, back) = (
            Op::Transpose { rows: 2, cols: 3 },
            Op::Transpose { rows: 3, cols: 2 },
        );
        assert!(left(6, &[(there.clone(), &[0]), (back, &[1])]).is_empty());
        assert_eq!(left(6, &[(there.clone(), &[0]), (there, &[1])]).len(), 2);
    }

    #[test]
    fn common_subexpressions_are_merged() {
        let ops: &[(Op, &[usize])] = &[(Op::Exp, &[0]), (Op::Exp, &[0]), (Op::VecAdd, &[1, 2])];
        assert_eq!(left(4, ops), ["exp", "vec_add"]);
        let zero = |factor: f32| Op::Scale { factor };
        let ops: &[(Op, &[usize])] =
            &[(zero(0.0), &[0]), (zero(-0.0), &[0]), (Op::VecAdd, &[1, 2])];
        assert_eq!(left(4, ops), ["scale", "scale", "vec_add"]);
    }

    #[test]
    fn negation_folds_into_factors() {
        let scale = |factor: f32| Op::Scale { factor };
        assert_eq!(left(4, &[(Op::Neg, &[0]), (scale(3.0), &[1])]), ["scale"]);
        assert_eq!(left(4, &[(scale(3.0), &[0]), (Op::Neg, &[1])]), ["scale"]);
        let twice = [(Op::Neg, &[0][..]), (scale(3.0), &[1]), (Op::Neg, &[2])];
        assert_eq!(left(4, &twice), ["scale"]);
    }

    #[test]
    fn negation_folds_into_sums() {
        assert_eq!(left(4, &[(Op::Neg, &[0]), (Op::VecAdd, &[0, 1])]), ["sub"]);
        assert_eq!(left(4, &[(Op::Neg, &[0]), (Op::VecAdd, &[1, 0])]), ["sub"]);
        assert_eq!(left(4, &[(Op::Neg, &[0]), (Op::Sub, &[0, 1])]), ["vec_add"]);
    }

    #[test]
    fn matmul_absorbs_transposes() {
        let transpose = Op::Transpose { rows: 2, cols: 3 };
        let product = Op::Matmul { m: 3, k: 2, n: 3 };
        let ops: &[(Op, &[usize])] = &[(transpose.clone(), &[0]), (product, &[1, 0])];
        assert_eq!(left(6, ops), ["matmul_with"]);
        let product = Op::Matmul { m: 2, k: 3, n: 2 };
        let ops: &[(Op, &[usize])] = &[(transpose.clone(), &[0]), (product, &[0, 1])];
        assert_eq!(left(6, ops), ["matmul_with"]);
        // One row: a transposed vector is the same vector.
        assert!(left(6, &[(Op::Transpose { rows: 1, cols: 6 }, &[0])]).is_empty());
        // Read as if it had another shape.
        let product = Op::Matmul { m: 1, k: 6, n: 1 };
        let ops: &[(Op, &[usize])] = &[(transpose, &[0]), (product, &[1, 0])];
        assert_eq!(left(6, ops), ["transpose", "matmul"]);
    }
}
